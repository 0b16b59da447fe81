package container

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"assay/harness/engine"
)

// The labels that every container of a run carries.
const (
	RunLabel       = "assay.run"
	LifecycleLabel = "assay.lifecycle"
	ownerLabel     = "assay.owner" // the process that must stop it: its id and when it began
	hostLabel      = "assay.host"  // where that process is: a digest, no name
)

// LabelsOf are the labels of a lifecycle's container that the process pid on
// this host must remove.
func LabelsOf(l engine.Launch, pid int) map[string]string {
	return map[string]string{RunLabel: l.Run, LifecycleLabel: l.Name, ownerLabel: owner(pid), hostLabel: host()}
}

// RemoveLeftovers removes the containers of runs whose process on this host is
// gone. A living run's are never touched, nor another host's, which may share
// the daemon.
func RemoveLeftovers(ctx context.Context, docker client.APIClient) error {
	found, err := docker.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: client.Filters{}.Add("label", hostLabel+"="+host())})
	if err != nil {
		return fmt.Errorf("what a killed run may have left can't be listed: %w", err)
	}
	var errs []error
	for _, c := range found.Items {
		if alive(c.Labels[ownerLabel]) {
			continue
		}
		_, err := docker.ContainerRemove(ctx, c.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		if err != nil && !errdefs.IsNotFound(err) && !errdefs.IsConflict(err) {
			errs = append(errs, fmt.Errorf("the container %.12s of the killed run %s can't be removed: %w; docker rm -f it", c.ID, c.Labels[RunLabel], err))
		}
	}
	return errors.Join(errs...)
}

// host stands for this boot of this machine and its process ids' namespace.
func host() string {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	namespace, _ := os.Readlink("/proc/self/ns/pid")
	name, _ := os.Hostname()
	sum := sha256.Sum256([]byte(strings.Join([]string{"assay", string(boot), namespace, name}, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// owner names a process for good: ids are used again, the moment of a
// process's start with its id is not.
func owner(pid int) string { return strconv.Itoa(pid) + "@" + began(pid) }

// began is when a process started, in the kernel's ticks since boot.
func began(pid int) string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	// The second field is the command in parentheses, which may hold spaces.
	_, rest, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	const startTime = 19 // field 22 of proc(5), counted behind the command
	if len(fields) <= startTime {
		return ""
	}
	return fields[startTime]
}

func alive(label string) bool {
	id, _, ok := strings.Cut(label, "@")
	pid, err := strconv.Atoi(id)
	if !ok || err != nil {
		return false
	}
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		return syscall.Kill(pid, 0) == nil
	}
	return owner(pid) == label && began(pid) != ""
}
