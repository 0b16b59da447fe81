package record

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
)

// Sum is the SHA-256 of a line of a chained file, without its line feed.
type Sum [sha256.Size]byte

// String writes it in hex, as records have it.
func (s Sum) String() string { return hex.EncodeToString(s[:]) }

// Reader reads the records of a bundle, of which requests.jsonl may be far
// larger than what a program wants to hold. Its zero value reads all there is
// and no more.
type Reader struct {
	// Line is shown each line of the chained files as it stands there, numbered
	// from 1, without its line feed: from several goroutines at once and in no
	// order. It must not keep the line, whose bytes are written over. Short is the
	// same, but that in a request's line its events, client lags and token ids are
	// empty lists, where they are nothing but what they should be: events of two
	// whole numbers and a third or null, and whole numbers.
	Line func(file string, number int, line, short []byte)
	// Request is given each request that was read, likewise, before it is kept.
	// It may put what nobody will look at again into fewer bytes. Of the request's
	// lists it must keep no part: they are written over, too.
	Request func(*Request)
	// Sums are, after Read, those of the lines of each chained file that is
	// there, in order.
	Sums map[string][]Sum
}

// Read reads the records of a bundle's directory. The error holds every fault
// met; the run holds what could be read all the same.
func Read(dir string) (Run, error) { return new(Reader).Read(dir) }

// Read is [Read], with what the reader wants besides.
func (r *Reader) Read(dir string) (Run, error) {
	r.Sums = map[string][]Sum{}
	var run Run
	var faults []error
	data, err := os.ReadFile(filepath.Join(dir, EnvironmentFile))
	if err == nil {
		err = strictly(data, &run.Environment)
	}
	if err != nil {
		faults = append(faults, fmt.Errorf("%s: %w", EnvironmentFile, err))
	}
	took := func(err error) { faults = append(faults, err) }
	requests := reading[Request]{previous: func(r *Request) string { return r.PreviousSHA256 }, decoder: requestDecoders, then: r.Request}
	run.Requests, err = readFile(r, dir, RequestsFile, requests)
	took(err)
	run.Waves, err = readFile(r, dir, WavesFile, reading[Wave]{previous: func(w *Wave) string { return w.PreviousSHA256 }})
	took(err)
	run.Lifecycles, err = readFile(r, dir, LifecyclesFile, reading[Lifecycle]{previous: func(l *Lifecycle) string { return l.PreviousSHA256 }})
	took(err)
	run.Telemetry, err = readFile(r, dir, TelemetryFile, reading[Telemetry]{previous: func(t *Telemetry) string { return t.PreviousSHA256 }})
	took(ifThere(err))
	run.EngineMetrics, err = readFile(r, dir, EngineMetricsFile, reading[EngineMetrics]{previous: func(m *EngineMetrics) string { return m.PreviousSHA256 }})
	took(ifThere(err))
	run.Entries, run.EntriesSHA256, err = readEntries(dir)
	took(err)
	return run, errors.Join(faults...)
}

// ifThere lets a file be missing that a run without samples does not have. That
// one which should be there is not, a lifecycle's head of it shows.
func ifThere(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

func readFile[T any](r *Reader, dir, name string, how reading[T]) ([]T, error) {
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil {
		how.size = info.Size()
	}
	if r.Line != nil {
		how.line = func(number int, line, short []byte) { r.Line(name, number, line, short) }
	}
	out, sums, err := how.all(f, name)
	r.Sums[name] = sums
	return out, err
}

// ReadLines decodes a file of chained JSON lines. Unknown fields are refused,
// since a reader that skips what it does not know would call a forged record
// whole. It returns what it could decode and the last line's SHA-256, with every
// fault it met: a line that is no record, and a broken chain, each with its line
// number.
func ReadLines[T any](from io.Reader, name string, previous func(T) string) ([]T, string, error) {
	how := reading[T]{previous: func(v *T) string { return previous(*v) }}
	if of, is := any(requestDecoders).(func() decoder[T]); is {
		how.decoder = of
	}
	out, sums, err := how.all(from, name)
	return out, head(sums), err
}

// head is the last of a chain's sums, or its beginning.
func head(sums []Sum) string {
	if len(sums) == 0 {
		return Genesis
	}
	return sums[len(sums)-1].String()
}

// reading is how a chained file of one kind of record is read.
type reading[T any] struct {
	previous func(*T) string
	decoder  func() decoder[T]                    // a new one; nil: encoding/json, strictly
	line     func(number int, line, short []byte) // nil: nobody wants it
	then     func(*T)                             // likewise
	size     int64                                // of the file; 0: not known
}

// decoder decodes one line after the other. What it decoded is the caller's once
// keep was called with it; short is that line without its lists.
type decoder[T any] interface {
	decode(line []byte, to *T) error
	short(line []byte) []byte
	keep(*T)
}

func requestDecoders() decoder[Request] { return new(requestDecoder) }

// strict is a decoder by encoding/json.
type strict[T any] struct{}

func (strict[T]) decode(line []byte, to *T) error { return strictly(line, to) }
func (strict[T]) short(line []byte) []byte        { return line }
func (strict[T]) keep(*T)                         {}

// About so many bytes are read at a time, of a small file no more than it needs,
// and so many lines of them at most are decoded together: lines of nothing are
// many.
const (
	firstBlock = 1 << 14
	blockSize  = 1 << 20
	blockLines = 1 << 10
)

// block is some whole lines of a file, and what is made of them.
type block[T any] struct {
	text  []byte // the lines with their line feeds; the file's last may lack its own
	first int    // the number of the first line
	done  chan struct{}
	lines []decoded[T]
	// buffer is what the text lies in, where it is the last of it.
	buffer []byte
}

type decoded[T any] struct {
	value T
	sum   Sum
	fault error // it is no record, and the value is none
	more  bool  // there is more than one record on the line
}

// all reads every line: several goroutines decode blocks of them, and one puts
// them together in order, so that no more than a few blocks are held beside what
// is kept.
func (how reading[T]) all(from io.Reader, name string) ([]T, []Sum, error) {
	workers := runtime.GOMAXPROCS(0)
	free, work, order := make(chan []byte, 2*workers), make(chan *block[T]), make(chan *block[T], 2*workers)
	for range 2 * workers {
		free <- nil
	}
	for range workers {
		go func() {
			var d decoder[T] = strict[T]{}
			if how.decoder != nil {
				d = how.decoder()
			}
			for b := range work {
				how.decodeBlock(b, d)
				close(b.done)
			}
		}()
	}
	var readErr error // set before order is closed
	go func() {
		defer close(order)
		defer close(work)
		readErr = cut(from, free, func(text, buffer []byte, first int) {
			b := &block[T]{text: text, buffer: buffer, first: first, done: make(chan struct{})}
			order <- b
			work <- b
		})
	}()
	c := collected[T]{name: name, previous: how.previous, last: Genesis}
	for b := range order {
		<-b.done
		c.reserve(how.size, b)
		c.take(b)
		if b.buffer != nil {
			free <- b.buffer
		}
	}
	if readErr != nil {
		c.found(len(c.sums)+1, "%w", readErr)
	}
	return c.records, c.sums, errors.Join(c.faults...)
}

// cut reads whole lines into buffers that are free, and hands them on in blocks,
// each with the number of its first line. The last block of a buffer has the
// buffer with it, for it to be free again.
func cut(from io.Reader, free <-chan []byte, hand func(text, buffer []byte, first int)) error {
	var rest []byte // the beginning of a line
	first := 1
	for size := firstBlock; ; size = min(2*size, blockSize) {
		buffer := append((<-free)[:0], rest...)
		var err error
		for whole := false; err == nil && !whole; {
			buffer = slices.Grow(buffer, max(size-len(buffer), size/2))
			had, n := len(buffer), 0
			n, err = io.ReadFull(from, buffer[had:cap(buffer)])
			buffer = buffer[:had+n]
			whole = bytes.IndexByte(buffer[had:], '\n') >= 0
		}
		ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		text := buffer
		if !ended {
			text = buffer[:bytes.LastIndexByte(buffer, '\n')+1]
		}
		rest = append(rest[:0], buffer[len(text):]...)
		for len(text) > 0 {
			part, n := upTo(text, blockLines)
			if text = text[len(part):]; len(text) > 0 {
				hand(part, nil, first)
			} else {
				hand(part, buffer, first)
			}
			first += n
		}
		switch {
		case ended:
			return nil
		case err != nil:
			return err
		}
	}
}

// upTo is the beginning of a text, so many lines at most, and how many.
func upTo(text []byte, most int) (part []byte, lines int) {
	at := 0
	for lines < most && at < len(text) {
		lines++
		end := bytes.IndexByte(text[at:], '\n')
		if end < 0 {
			return text, lines
		}
		at += end + 1
	}
	return text[:at], lines
}

func (how reading[T]) decodeBlock(b *block[T], d decoder[T]) {
	b.lines = make([]decoded[T], 0, bytes.Count(b.text, []byte("\n"))+1)
	for text, number := b.text, b.first; len(text) > 0; number++ {
		line, after, _ := bytes.Cut(text, []byte("\n"))
		text = after
		l := decoded[T]{sum: sha256.Sum256(line)}
		if l.fault = d.decode(line, &l.value); errors.Is(l.fault, errMore) {
			l.fault, l.more = nil, true
		}
		if how.line != nil {
			how.line(number, line, d.short(line))
		}
		if l.fault == nil && how.then != nil {
			how.then(&l.value)
		}
		d.keep(&l.value)
		b.lines = append(b.lines, l)
	}
}

// collected is what was read so far of a file.
type collected[T any] struct {
	name     string
	previous func(*T) string
	last     string
	bytes    int64
	records  []T
	sums     []Sum
	faults   []error
}

func (c *collected[T]) found(number int, format string, args ...any) {
	c.faults = append(c.faults, fmt.Errorf("%s:%d: "+format, append([]any{c.name, number}, args...)...))
}

// reserve makes room for a block's records, and where it has to be made in a file
// of more than a block for all that will come, going by what came: lines of a
// file are about as long as one another, and its records take too much to be
// moved again and again.
func (c *collected[T]) reserve(size int64, b *block[T]) {
	c.bytes += int64(len(b.text))
	if cap(c.records)-len(c.records) >= len(b.lines) {
		return
	}
	more := len(b.lines)
	if left := size - c.bytes; c.bytes > blockSize && left > 0 {
		more += int(float64(left) / float64(c.bytes) * float64(len(c.sums)+more) * 1.02)
	}
	c.records, c.sums = slices.Grow(c.records, more), slices.Grow(c.sums, more)
}

func (c *collected[T]) take(b *block[T]) {
	for i := range b.lines {
		l, number := &b.lines[i], b.first+i
		if i == len(b.lines)-1 && b.text[len(b.text)-1] != '\n' {
			c.found(number, "the last line has no end: it was cut off")
		}
		if l.more {
			c.found(number, "more than one record on the line")
		}
		if l.fault != nil {
			c.found(number, "no record: %w", l.fault)
		} else {
			if p := c.previous(&l.value); p != c.last {
				c.found(number, "the chain is broken: previous_sha256 is %s, the line before has %s", short(p), short(c.last))
			}
			c.records = append(c.records, l.value)
		}
		c.sums, c.last = append(c.sums, l.sum), l.sum.String()
	}
}

func short(sum string) string {
	if len(sum) > 12 {
		return sum[:12] + "…"
	}
	return sum
}

// errMore says that something stands behind a JSON value.
var errMore = errors.New("there is more than one document in it")

// strictly decodes one JSON value and refuses members that its type has not.
func strictly(data []byte, to any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(to); err != nil {
		return err
	}
	if rest := data[dec.InputOffset():]; len(bytes.TrimLeft(rest, " \t\r\n")) > 0 {
		return errMore
	}
	return nil
}
