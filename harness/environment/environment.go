package environment

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/host"
	"github.com/shirou/gopsutil/v4/load"
	"github.com/shirou/gopsutil/v4/mem"

	"assay/harness/record"
)

// Facts reads what this machine says of itself. dir is inside the project's
// checkout, for its revision. It never fails: what can't be read is a null
// with the reason.
func Facts(ctx context.Context, dir string) map[string]record.Fact {
	facts := map[string]record.Fact{
		"os":           reported(runtime.GOOS),
		"architecture": reported(runtime.GOARCH),
		"go_version":   reported(runtime.Version()),
		"gomaxprocs":   reported(runtime.GOMAXPROCS(0)),
		"cpu_count":    reported(runtime.NumCPU()),
		"cgo":          reported(cgoEnabled),
	}
	facts["kernel"] = fact(host.KernelVersionWithContext(ctx))
	facts["cpu_model"] = fact(cpuModel(ctx))
	facts["memory_bytes"] = fact(memory(ctx))
	facts["load_average_1m"] = fact(loadAverage(ctx))
	facts["clock_source"] = fact(ClockSource())
	facts["file_descriptor_limit"] = fact(FileDescriptors())
	facts["revision"] = fact(revision(ctx, dir))
	return facts
}

func reported(v any) record.Fact {
	return record.Fact{Value: v, Provenance: record.ClientObserved}
}

func fact[T any](v T, err error) record.Fact {
	if err != nil {
		return record.Fact{Reason: err.Error()}
	}
	return reported(v)
}

func cpuModel(ctx context.Context) (string, error) {
	infos, err := cpu.InfoWithContext(ctx)
	if err == nil && (len(infos) == 0 || infos[0].ModelName == "") {
		err = errors.New("the kernel names no processor model")
	}
	if err != nil {
		return "", err
	}
	return infos[0].ModelName, nil
}

func memory(ctx context.Context) (uint64, error) {
	m, err := mem.VirtualMemoryWithContext(ctx)
	if err != nil {
		return 0, err
	}
	return m.Total, nil
}

func loadAverage(ctx context.Context) (float64, error) {
	l, err := load.AvgWithContext(ctx)
	if err != nil {
		return 0, err
	}
	return l.Load1, nil
}

// ClockSource is what the kernel reads its monotonic clock from: "tsc",
// "kvm-clock", "hpet". Reading an hpet takes microseconds.
func ClockSource() (string, error) {
	if runtime.GOOS != "linux" {
		return "", errors.New("only Linux names its clock source")
	}
	data, err := os.ReadFile("/sys/devices/system/clocksource/clocksource0/current_clocksource")
	return strings.TrimSpace(string(data)), err
}

// revision is the checkout's commit, "+dirty" if files differ from it.
func revision(ctx context.Context, dir string) (string, error) {
	if info, ok := debug.ReadBuildInfo(); ok {
		settings := map[string]string{}
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
		if rev := settings["vcs.revision"]; rev != "" {
			return dirty(rev, settings["vcs.modified"] == "true"), nil
		}
	}
	head, err := exec.CommandContext(ctx, "git", "-C", dir, "rev-parse", "HEAD").Output()
	if err != nil {
		return "", errors.New("neither the build nor git says the revision: no git, or no checkout")
	}
	status, err := exec.CommandContext(ctx, "git", "-C", dir, "status", "--porcelain").Output()
	if err != nil {
		return "", errors.New("git knows the commit but not whether files differ from it")
	}
	return dirty(strings.TrimSpace(string(head)), len(status) > 0), nil
}

func dirty(rev string, modified bool) string {
	if modified {
		return rev + "+dirty"
	}
	return rev
}

// Enough is an error if this process can't open n connections beside what it
// has open, with the command that raises the limit.
func Enough(n int) error {
	limit, err := FileDescriptors()
	if err != nil {
		return nil // unknown is no reason to refuse; dialling would say
	}
	if need := uint64(n) + 64; limit < need {
		return errors.New("the limit of open files is " + strconv.FormatUint(limit, 10) + ", and a wave of " +
			strconv.Itoa(n) + " connections needs " + strconv.FormatUint(need, 10) + ": raise it with ulimit -n " + strconv.FormatUint(need, 10))
	}
	return nil
}
