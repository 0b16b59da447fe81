package workloads

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Source declares a file of requests and what of it is taken.
type Source struct {
	Kind    string // one of [Kinds]
	License string // of the file, in the words of whoever declares it; "unknown" is one
	// Window and Speed are for traces. Speed divides the times: at 2 the trace
	// is replayed in half its time, at twice its rate; 0 is 1.
	Window Window
	Speed  float64
	// Sample is how many entries are drawn, from the seed and without putting
	// any back; they keep the file's order, and a larger sample holds a smaller
	// one. 0 takes all.
	Sample int
	Seed   uint64
}

// format is how a kind of file is read.
type format struct {
	name  string
	timed bool
	place string // what its entries are counted in
	read  func(io.Reader, *intake) error
}

var formats = []format{
	{name: "jsonl", place: "line", read: readJSONL},
	{name: "azure", timed: true, place: "line", read: readAzure},
	{name: "mooncake", timed: true, place: "line", read: readMooncake},
	{name: "sharegpt", place: "element", read: readShareGPT},
}

// Kinds are the kinds of files of requests.
func Kinds() []string {
	var names []string
	for _, f := range formats {
		names = append(names, f.name)
	}
	return names
}

// The slowest and fastest replay: beyond them a unit was mistaken for another.
const (
	leastSpeed = 1e-3
	mostSpeed  = 1e3
)

// Check says everything that is wrong with a declaration.
func (s Source) Check() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	at := slices.IndexFunc(formats, func(f format) bool { return f.name == s.Kind })
	if at < 0 {
		fault("there is no kind of dataset %q: there are %s", s.Kind, strings.Join(Kinds(), ", "))
	}
	if strings.TrimSpace(s.License) == "" {
		fault("the file's licence is not declared: write it, or unknown")
	}
	w := s.Window
	if w.From < 0 || w.To < 0 || w.To > 0 && w.To <= w.From {
		fault("the window is from %s to %s: write 0 or more, and an end after its beginning or 0 for the trace's", w.From, w.To)
	}
	if s.Speed != 0 && !(s.Speed >= leastSpeed && s.Speed <= mostSpeed) {
		fault("speed is %v: write %g to %g; 2 replays a trace in half its time", s.Speed, leastSpeed, mostSpeed)
	}
	if at >= 0 && !formats[at].timed && (w != Window{} || s.Speed != 0) {
		fault("%s files have no times: leave window and speed out", s.Kind)
	}
	if s.Sample < 0 {
		fault("sample is %d: write how many entries to draw, or 0 for all", s.Sample)
	}
	return errors.Join(faults...)
}

// Load reads the requests of a file. The error says everything that is wrong
// with the declaration, or with the file: each faulty line by its number, the
// first 20 of them. A file in which anything is wrong gives no entries at all.
func Load(path string, s Source) ([]Entry, Dataset, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, Dataset{}, fmt.Errorf("the dataset can't be read: %w", err)
	}
	defer file.Close()
	entries, d, err := Read(file, s)
	if err != nil {
		return nil, Dataset{}, fmt.Errorf("%s: %w", path, err)
	}
	d.File = filepath.Base(path)
	return entries, d, nil
}

// Read is [Load] of what has no path; its Dataset names no file.
func Read(r io.Reader, s Source) ([]Entry, Dataset, error) {
	if err := s.Check(); err != nil {
		return nil, Dataset{}, err
	}
	f := formats[slices.IndexFunc(formats, func(f format) bool { return f.name == s.Kind })]
	in := intake{source: s, faults: faults{place: f.place}, Dataset: Dataset{Kind: s.Kind, License: s.License, LeftOut: map[string]int{}}}
	if in.source.Speed == 0 {
		in.source.Speed = 1
	}
	if f.timed {
		in.Window, in.Speed = &in.source.Window, &in.source.Speed
	}
	var err error
	in.SHA256, err = hashed(r, func(r io.Reader) error { return f.read(r, &in) })
	if err := errors.Join(err, in.faults.err()); err != nil {
		return nil, Dataset{}, err
	}
	if err := in.sample(); err != nil {
		return nil, Dataset{}, err
	}
	if in.Taken = len(in.entries); in.Taken == 0 {
		return nil, Dataset{}, fmt.Errorf("nothing is left to ask: %s", in.Dataset)
	}
	return in.entries, in.Dataset, nil
}

// hashed has a reader read, and is the SHA-256 of all that there was to read,
// in hex.
func hashed(r io.Reader, read func(io.Reader) error) (string, error) {
	h := sha256.New()
	tee := io.TeeReader(r, h)
	if err := read(tee); err != nil {
		return "", err
	}
	if _, err := io.Copy(io.Discard, tee); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// intake is what a file's reader hands its entries to. Each entry is taken or
// left out, and counted.
type intake struct {
	Dataset
	source  Source
	entries []Entry
	faults  faults
	// first and last are the times of the first and the latest entry.
	first, last time.Duration
	timed       bool // there was one
}

// take takes an entry that has no time.
func (in *intake) take(e Entry) {
	in.Entries++
	in.entries = append(in.entries, e)
}

// skip leaves n entries out.
func (in *intake) skip(n int, reason string) {
	in.Entries += n
	for range n {
		in.leave(reason)
	}
}

// at takes note of an entry's time, counted from anywhere. It is false where
// the entry is not to be taken: it is out of order, which is a fault, or
// outside the window, and then it has been left out. Times are from the first
// entry's, whatever becomes of that.
func (in *intake) at(line int, at time.Duration) (offset time.Duration, ok bool) {
	if !in.timed {
		in.first, in.last, in.timed = at, at, true
	}
	if at < in.last {
		in.faults.add(line, fmt.Sprintf("it is %s earlier than an entry before it: sort the trace by time", in.last-at))
		return 0, false
	}
	in.last = at
	w := in.source.Window
	switch at -= in.first; {
	case at < w.From:
		in.skip(1, "before the window")
		return 0, false
	case w.To > 0 && at >= w.To:
		in.skip(1, "after the window")
		return 0, false
	}
	return time.Duration(math.Round(float64(at-w.From) / in.source.Speed)), true
}

// sample draws so many of the entries as are asked for.
func (in *intake) sample() error {
	n := in.source.Sample
	if n == 0 {
		return nil
	}
	if n > len(in.entries) {
		return fmt.Errorf("a sample of %d can't be drawn from %d entries: ask for fewer, or leave sample out (%d in the file)", n, len(in.entries), in.Entries)
	}
	drawn := stream(in.source.Seed, "sample").Perm(len(in.entries))[:n]
	slices.Sort(drawn)
	sampled := make([]Entry, n)
	for i, at := range drawn {
		sampled[i] = in.entries[at]
	}
	for range len(in.entries) - n {
		in.leave("not drawn")
	}
	in.entries, in.Seed = sampled, &in.source.Seed
	return nil
}
