package record

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// CutOff is where, in a bundle, is kept what was being written to a file when
// the process was killed: the beginning of a line, and attempts whose wave had
// no line yet.
func CutOff(file string) string { return LogsDir + "/cut-" + file }

// Reopen goes on with the evidence of a run that was interrupted, in its own
// directory. Lines that only say that something had not run yet are taken off
// the ends of the files, since now it may; everything that was observed stays,
// what was being written when the process was killed too, under logs: see
// [CutOff].
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
	if err := removeHalfWritten(dir); err != nil {
		return nil, Run{}, err
	}
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
	if run.Requests, err = withoutWave(dir, run); err != nil {
		return nil, Run{}, err
	}
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
	if err := keepCutOff(dir, name, data[whole:]); err != nil {
		return err
	}
	return os.Truncate(path, int64(whole))
}

// keepCutOff puts what is taken off the end of a file behind what was taken off
// it before.
func keepCutOff(dir, name string, cut []byte) error {
	path := filepath.Join(dir, filepath.FromSlash(CutOff(name)))
	before, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if bytes.HasSuffix(before, cut) {
		return nil // a start that was killed in its turn had kept it
	}
	return WriteFile(path, append(before, cut...))
}

// withoutWave sets aside the attempts at the end whose wave has no line: the
// process was killed while it wrote them, and what is known of a wave stands in
// its line alone. It returns those that stay.
func withoutWave(dir string, run Run) ([]Request, error) {
	type place struct{ lifecycle, wave int }
	waves := map[place]bool{}
	for _, w := range run.Waves {
		waves[place{w.Lifecycle, w.Number}] = true
	}
	kept := len(run.Requests)
	for kept > 0 && !waves[place{run.Requests[kept-1].Lifecycle, run.Requests[kept-1].Wave}] {
		kept--
	}
	if kept == len(run.Requests) {
		return run.Requests, nil
	}
	data, err := os.ReadFile(filepath.Join(dir, RequestsFile))
	if err != nil {
		return nil, err
	}
	cut := bytes.Join(bytes.SplitAfter(data, []byte("\n"))[kept:], nil)
	return run.Requests[:kept], keepCutOff(dir, RequestsFile, cut)
}

// removeHalfWritten removes what [WriteFile] had not given its name when the
// process was killed.
func removeHalfWritten(dir string) error {
	for _, folder := range []string{dir, filepath.Join(dir, LogsDir)} {
		half, err := filepath.Glob(filepath.Join(folder, ".*-*"))
		if err != nil {
			return err
		}
		for _, path := range half {
			if err := os.Remove(path); err != nil {
				return fmt.Errorf("what was left half written can't be removed: %w", err)
			}
		}
	}
	return nil
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
