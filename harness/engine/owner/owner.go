package owner

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Owner is one process. Its text goes into labels and environments; machine
// and boot are digests, so that no host name leaves the machine with them.
type Owner struct {
	Machine string // the machine and its process ids' namespace
	Boot    string // this boot of it; empty where the system doesn't say
	PID     int
	Began   string // the process's start in the kernel's ticks; empty where it isn't known
}

// Self is this process.
func Self() Owner { return Of(os.Getpid()) }

// Of is the process with an id on this machine, whether it is there or not.
func Of(pid int) Owner {
	began, _ := stat(pid)
	return Owner{Machine: machine(), Boot: boot(), PID: pid, Began: began}
}

// String is what [Parse] reads: machine/boot/pid@began.
func (o Owner) String() string {
	return fmt.Sprintf("%s/%s/%d@%s", o.Machine, o.Boot, o.PID, o.Began)
}

// Parse reads what String wrote.
func Parse(text string) (Owner, error) {
	machine, rest, ok := strings.Cut(text, "/")
	boot, process, ok2 := strings.Cut(rest, "/")
	id, began, ok3 := strings.Cut(process, "@")
	pid, err := strconv.Atoi(id)
	if !ok || !ok2 || !ok3 || machine == "" || err != nil || pid <= 0 {
		return Owner{}, fmt.Errorf("%q names no owner: want machine/boot/pid@began", text)
	}
	return Owner{Machine: machine, Boot: boot, PID: pid, Began: began}, nil
}

// Gone says that the owner is surely dead: a process of this machine that has
// ended, or one of an earlier boot. Of another machine, which may share a
// Docker daemon with this one, or of another namespace of process ids, nothing
// can be known, and so it is not gone.
func (o Owner) Gone() bool {
	if o.Machine != machine() {
		return false
	}
	if o.Boot != boot() {
		return o.Boot != "" && boot() != ""
	}
	began, alive := stat(o.PID)
	return !alive || began != o.Began
}

func digest(parts ...string) string {
	sum := sha256.Sum256([]byte("assay\x00" + strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:8])
}

func machine() string {
	id, _ := os.ReadFile("/etc/machine-id")
	namespace, _ := os.Readlink("/proc/self/ns/pid")
	name, _ := os.Hostname()
	return digest(string(id), namespace, name)
}

func boot() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return digest(string(id))
}

// stat says when a process began, and whether it is alive: one that has ended
// and only waits for its parent to ask how is not.
func stat(pid int) (began string, alive bool) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, os.ErrNotExist) {
		if _, err := os.Stat("/proc/self/stat"); err == nil {
			return "", false
		}
		// No /proc here: an id that was given away again passes for alive.
		return "", syscall.Kill(pid, 0) == nil
	}
	if err != nil {
		return "", !errors.Is(err, syscall.ESRCH)
	}
	// The second field is the command in parentheses, which may itself hold
	// spaces and parentheses.
	text := string(data)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	const state, start = 0, 19 // fields 3 and 22 of proc(5), counted behind the command
	if len(fields) <= start {
		return "", true
	}
	return fields[start], fields[state] != "Z" && fields[state] != "X"
}
