package record

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// The files of a bundle that a store writes.
const (
	RequestsFile      = "requests.jsonl"
	WavesFile         = "waves.jsonl"
	LifecyclesFile    = "lifecycles.jsonl"
	TelemetryFile     = "telemetry.jsonl"      // only where the plan samples
	EngineMetricsFile = "engine-metrics.jsonl" // likewise
	EnvironmentFile   = "environment.json"
	LogsDir           = "logs"
)

// The plan of a bundle and the sums of its files, which others write.
const (
	PlanFile = "plan.yaml"
	SumsFile = "SHA256SUMS"
)

// Chained are the files whose lines form chains. The last two are there only
// where the plan samples.
var Chained = []string{RequestsFile, WavesFile, LifecyclesFile, TelemetryFile, EngineMetricsFile}

// Store is the append-only evidence of one run, in a directory. Each line
// names the SHA-256 of the line before it, and is on disk before the call that
// wrote it returns. It may be used from several goroutines.
type Store struct {
	dir            string
	plan, schedule string

	mu                          sync.Mutex
	requests, waves, lifecycles *chain
	telemetry, engineMetrics    *chain   // nil until there is a line
	lock                        *os.File // held while the run goes on
	closed                      bool
}

// Create makes dir, which must not hold a bundle already, and opens its three
// chained files. The hashes go into every record.
func Create(dir, planSHA256, scheduleSHA256 string) (*Store, error) {
	if err := os.MkdirAll(filepath.Join(dir, LogsDir), 0o755); err != nil {
		return nil, fmt.Errorf("no place for the evidence: %w; name another with -out", err)
	}
	s := &Store{dir: dir, plan: planSHA256, schedule: scheduleSHA256}
	for _, f := range []struct {
		name string
		to   **chain
	}{{RequestsFile, &s.requests}, {WavesFile, &s.waves}, {LifecyclesFile, &s.lifecycles}} {
		file, err := os.OpenFile(filepath.Join(dir, f.name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if err != nil {
			s.closeFiles()
			if errors.Is(err, os.ErrExist) {
				return nil, fmt.Errorf("%s holds the evidence of another run: name another directory with -out", dir)
			}
			return nil, fmt.Errorf("no place for the evidence: %w; name another with -out", err)
		}
		*f.to = &chain{file: file, head: Genesis}
	}
	var err error
	if s.lock, err = lock(dir); err != nil {
		return nil, errors.Join(err, s.closeFiles())
	}
	return s, syncDir(dir)
}

// Dir is where the store writes.
func (s *Store) Dir() string { return s.dir }

// AppendWave writes a wave's requests and then the wave itself; both are
// synced to disk before it returns. The records' schemas, hashes and places in
// the chain are filled in here, and are returned with them.
func (s *Store) AppendWave(wave Wave, requests []Request) (Wave, []Request, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Request, len(requests))
	var err error
	for i, r := range requests {
		r.Schema, r.PlanSHA256, r.ScheduleSHA256, r.PreviousSHA256 = RequestSchema, s.plan, s.schedule, s.requests.head
		out[i] = r
		if err == nil { // a chain that is broken takes no more, and has said so
			err = s.requests.append(r)
		}
	}
	err = errors.Join(err, s.requests.sync())
	wave.Schema, wave.PlanSHA256, wave.ScheduleSHA256, wave.PreviousSHA256 = WaveSchema, s.plan, s.schedule, s.waves.head
	err = errors.Join(err, s.waves.append(wave), s.waves.sync())
	return wave, out, err
}

// AppendLifecycle writes a lifecycle that has ended, or was never run, with
// the heads of the other two chains; it is on disk before the call returns.
func (s *Store) AppendLifecycle(l Lifecycle) (Lifecycle, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.Schema, l.PlanSHA256, l.ScheduleSHA256, l.PreviousSHA256 = LifecycleSchema, s.plan, s.schedule, s.lifecycles.head
	l.RequestsHead, l.WavesHead = s.requests.head, s.waves.head
	if s.telemetry != nil {
		l.TelemetryHead = s.telemetry.head
	}
	if s.engineMetrics != nil {
		l.EngineMetricsHead = s.engineMetrics.head
	}
	return l, errors.Join(s.lifecycles.append(l), s.lifecycles.sync())
}

// AppendTelemetry writes what was seen beside the load over a stretch: a line
// for each GPU, and one for the engine unless it is nil. They are on disk
// before the call returns.
func (s *Store) AppendTelemetry(gpus []Telemetry, engine *EngineMetrics) ([]Telemetry, *EngineMetrics, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	var out []Telemetry
	for _, t := range gpus {
		if t.Chain, err = s.next(TelemetryFile, &s.telemetry, TelemetrySchema); err != nil {
			return out, nil, err
		}
		out = append(out, t)
		err = errors.Join(err, s.telemetry.append(t))
	}
	if s.telemetry != nil {
		err = errors.Join(err, s.telemetry.sync())
	}
	if engine == nil {
		return out, nil, err
	}
	line := *engine
	var nextErr error
	if line.Chain, nextErr = s.next(EngineMetricsFile, &s.engineMetrics, EngineMetricsSchema); nextErr != nil {
		return out, nil, errors.Join(err, nextErr)
	}
	return out, &line, errors.Join(err, s.engineMetrics.append(line), s.engineMetrics.sync())
}

// next is the beginning of the next line of a file, which is made if there is
// none yet.
func (s *Store) next(name string, to **chain, schema string) (Chain, error) {
	if *to == nil {
		file, err := os.OpenFile(filepath.Join(s.dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return Chain{}, fmt.Errorf("no place for the evidence: %w", err)
		}
		*to = &chain{file: file, head: Genesis}
		if err := syncDir(s.dir); err != nil {
			return Chain{}, err
		}
	}
	return Chain{Schema: schema, PlanSHA256: s.plan, ScheduleSHA256: s.schedule, PreviousSHA256: (*to).head}, nil
}

// Heads are the SHA-256 of the last lines of requests, waves and lifecycles.
func (s *Store) Heads() (requests, waves, lifecycles string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests.head, s.waves.head, s.lifecycles.head
}

// WriteEnvironment writes environment.json and returns what it holds, with its
// schema and the plan's hash filled in.
func (s *Store) WriteEnvironment(e Environment) (Environment, error) {
	e.Schema, e.PlanSHA256 = EnvironmentSchema, s.plan
	data, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return e, err
	}
	return e, WriteFile(filepath.Join(s.dir, EnvironmentFile), append(data, '\n'))
}

// Close closes the files; what was appended is on disk already.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	return s.closeFiles()
}

func (s *Store) closeFiles() error {
	var err error
	for _, c := range []*chain{s.requests, s.waves, s.lifecycles, s.telemetry, s.engineMetrics} {
		if c != nil {
			err = errors.Join(err, c.file.Close())
		}
	}
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
	}
	return err
}

// A chain is one file of JSON lines.
type chain struct {
	file   *os.File
	head   string
	size   int64 // bytes of whole lines
	broken error
}

// append writes one line. A line that could only be written in part (a full
// disk) is cut off again, so that the file stays valid JSON lines.
func (c *chain) append(v any) error {
	if c.broken != nil {
		return c.broken
	}
	line, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("a record that is no JSON: %w", err)
	}
	if _, err := c.file.Write(append(line, '\n')); err != nil {
		c.broken = fmt.Errorf("the evidence could not be written: %w; what was written before it is whole: make room, or name another directory with -out, and run again", err)
		return errors.Join(c.broken, c.file.Truncate(c.size))
	}
	c.size += int64(len(line)) + 1
	c.head = LineSHA256(line)
	return nil
}

func (c *chain) sync() error {
	if c.broken != nil {
		return nil // append has said it
	}
	if err := c.file.Sync(); err != nil {
		return fmt.Errorf("the evidence is not safely on disk: %w", err)
	}
	return nil
}

// LineSHA256 is a line's place in the chain: the SHA-256 of its bytes without
// the line feed, in hex.
func LineSHA256(line []byte) string {
	sum := sha256.Sum256(line)
	return hex.EncodeToString(sum[:])
}

// WriteFile writes a whole file beside its place, syncs it and renames it
// there, so that a file of that name is never half written.
func WriteFile(path string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	err = errors.Join(err, tmp.Chmod(0o644), tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
