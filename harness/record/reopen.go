package record

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// CutOff is where, in a bundle, the beginning of a line is kept that was being
// written to a file when the process was killed.
func CutOff(file string) string { return LogsDir + "/cut-" + file }

// Reopen goes on with the evidence of a run that was interrupted, in its own
// directory. Lines that only say that something had not run yet are taken off
// the ends of the files, since now it may; everything that was observed stays,
// a line that was being written when the process was killed too, under logs.
// It returns what stays. The error says why nothing can go on from it: another
// plan, or evidence that does not hold.
func Reopen(dir, planSHA256, scheduleSHA256 string) (*Store, Run, error) {
	held, err := lock(dir)
	if err != nil {
		return nil, Run{}, err
	}
	s, run, err := reopenLocked(dir, planSHA256, scheduleSHA256)
	if err != nil {
		return nil, Run{}, errors.Join(err, held.Close())
	}
	s.lock = held
	return s, run, nil
}

func reopenLocked(dir, planSHA256, scheduleSHA256 string) (*Store, Run, error) {
	for _, name := range Chained {
		err := setAside(dir, name)
		sampled := name == TelemetryFile || name == EngineMetricsFile
		if err != nil && !(sampled && errors.Is(err, os.ErrNotExist)) {
			return nil, Run{}, err
		}
	}
	run, err := Read(dir)
	if err != nil {
		return nil, Run{}, fmt.Errorf("nothing can go on from %s, since its evidence does not hold: %w", dir, err)
	}
	if err := sameRun(run, planSHA256, scheduleSHA256); err != nil {
		return nil, Run{}, fmt.Errorf("nothing can go on from %s: %w", dir, err)
	}
	ran := map[int]bool{}
	lifecycles := 0
	for i, l := range run.Lifecycles {
		if l.Executed > 0 {
			lifecycles = i + 1
			ran[l.Number] = true
		}
	}
	waves := 0
	for i, w := range run.Waves {
		if w.Executed > 0 || ran[w.Lifecycle] {
			waves = i + 1
		}
	}
	run.Lifecycles, run.Waves = run.Lifecycles[:lifecycles], run.Waves[:waves]
	s := &Store{dir: dir, plan: planSHA256, schedule: scheduleSHA256}
	for _, f := range []struct {
		name  string
		lines int
		to    **chain
	}{{RequestsFile, len(run.Requests), &s.requests}, {WavesFile, waves, &s.waves}, {LifecyclesFile, lifecycles, &s.lifecycles}} {
		if *f.to, err = reopen(filepath.Join(dir, f.name), f.lines); err != nil {
			return nil, Run{}, errors.Join(err, s.closeFiles())
		}
	}
	for _, f := range []struct {
		name  string
		lines int
		to    **chain
	}{{TelemetryFile, len(run.Telemetry), &s.telemetry}, {EngineMetricsFile, len(run.EngineMetrics), &s.engineMetrics}} {
		if f.lines == 0 {
			continue // there is no such file, or nothing whole in it
		}
		if *f.to, err = reopen(filepath.Join(dir, f.name), f.lines); err != nil {
			return nil, Run{}, errors.Join(err, s.closeFiles())
		}
	}
	return s, run, syncDir(dir)
}

// setAside moves an unfinished last line out of a file.
func setAside(dir, name string) error {
	path := filepath.Join(dir, name)
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("nothing can go on from %s: %w", dir, err)
	}
	whole := bytes.LastIndexByte(data, '\n') + 1
	if whole == len(data) {
		return nil
	}
	if err := WriteFile(filepath.Join(dir, filepath.FromSlash(CutOff(name))), data[whole:]); err != nil {
		return err
	}
	return os.Truncate(path, int64(whole))
}

// sameRun is an error if records are of another plan or schedule.
func sameRun(run Run, planSHA256, scheduleSHA256 string) error {
	if got := run.Environment.PlanSHA256; got != planSHA256 {
		return fmt.Errorf("it is of another plan, %.12s…, and this one is %.12s…: name the plan that it began with", got, planSHA256)
	}
	for _, l := range run.Lifecycles {
		if l.ScheduleSHA256 != scheduleSHA256 {
			return fmt.Errorf("its schedule is another, %.12s…, and this one is %.12s…", l.ScheduleSHA256, scheduleSHA256)
		}
	}
	return nil
}

// reopen opens a chained file for more lines after its first n.
func reopen(path string, n int) (*chain, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	c := &chain{head: Genesis}
	for range n {
		line, _, _ := bytes.Cut(data[c.size:], []byte("\n"))
		c.size += int64(len(line)) + 1
		c.head = LineSHA256(line)
	}
	if c.file, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0); err != nil {
		return nil, err
	}
	return c, errors.Join(c.file.Truncate(c.size), c.file.Sync())
}
