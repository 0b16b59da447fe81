package lifecycle

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"assay/harness/record"
)

// Redactor blacks out secrets and identities. It is safe for several
// goroutines.
type Redactor struct {
	words    *strings.Replacer
	patterns []*regexp.Regexp
}

// GPU identifiers as the driver writes them, and bearer keys wherever they
// appear.
var identityPatterns = []*regexp.Regexp{
	regexp.MustCompile(`\b(?:GPU|MIG)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`),
	regexp.MustCompile(`(?i)\bbearer\s+[a-z0-9._~+/=-]{8,}`),
	regexp.MustCompile(`\bhf_[A-Za-z0-9]{20,}\b`),
	regexp.MustCompile(`\bsk-[A-Za-z0-9_-]{20,}\b`),
}

// NewRedactor knows this machine's host name, the user's name in paths, and
// the secrets given to it. Empty secrets are ignored.
func NewRedactor(secrets ...string) *Redactor {
	var pairs []string
	for _, s := range secrets {
		if len(s) >= 4 {
			pairs = append(pairs, s, "[redacted secret]")
		}
	}
	if host, err := os.Hostname(); err == nil && len(host) >= 4 && host != "localhost" {
		pairs = append(pairs, host, "[redacted host]")
	}
	if home, err := os.UserHomeDir(); err == nil && len(home) > 1 {
		pairs = append(pairs, home+"/", "~/")
	}
	if u, err := user.Current(); err == nil && u.Username != "root" && len(u.Username) >= 3 {
		pairs = append(pairs, "/"+u.Username+"/", "/[redacted user]/")
	}
	return &Redactor{words: strings.NewReplacer(pairs...), patterns: identityPatterns}
}

// Redact returns the text without what must not enter a bundle.
func (r *Redactor) Redact(text string) string {
	text = r.words.Replace(text)
	for _, p := range r.patterns {
		text = p.ReplaceAllString(text, "[redacted]")
	}
	return text
}

// stopMark begins each line that came after the stop was asked for: an engine
// that complains while it is being stopped did not die.
const stopMark = "[after stop] "

// Log keeps a server's output: redacted as it streams, whole otherwise.
type Log struct {
	name   string
	redact *Redactor

	mu       sync.Mutex
	file     *os.File
	original hash.Hash
	kept     hash.Hash
	partial  []byte
	facts    record.Log
	stopping bool
	err      error
	tail     []string
}

// OpenLog begins a log named such as "01-naive.log" in a bundle's folder.
func OpenLog(dir, name string, redact *Redactor) (*Log, error) {
	file, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("no place for the server's log: %w", err)
	}
	return &Log{name: name, redact: redact, file: file, original: sha256.New(), kept: sha256.New(), facts: record.Log{File: name}}, nil
}

// longestLine bounds what is held back for the end of a line, in bytes.
const longestLine = 64 << 10

// Write takes output in pieces of any size. It never fails: an engine must
// not stall on its log; what could not be written is said by Close. A line that
// goes on for longer than 64 KiB becomes several.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return len(p), nil
	}
	l.original.Write(p)
	for rest := p; len(rest) > 0; {
		i := bytes.IndexByte(rest, '\n')
		if i < 0 {
			i = len(rest)
		}
		if i = min(i, longestLine-len(l.partial)); i == len(rest) || rest[i] != '\n' {
			l.partial, rest = append(l.partial, rest[:i]...), rest[i:]
			if len(l.partial) == longestLine {
				l.split()
			}
			continue
		}
		l.partial, rest = append(l.partial, rest[:i]...), rest[i+1:]
		l.line(string(bytes.TrimSuffix(l.partial, []byte("\r"))))
		l.partial = l.partial[:0]
	}
	return len(p), nil
}

// split makes a line of the beginning of what is held back, up to a place near
// its end across which nothing stands that is to be blacked out.
func (l *Log) split() {
	const around, places = 4 << 10, 16 << 10
	end := len(l.partial) // no secret is so long that there is no such place
	for at := end - around; at > end-around-places; at-- {
		left, right := string(l.partial[at-around:at]), string(l.partial[at:min(at+around, end)])
		if utf8.RuneStart(l.partial[at]) && l.redact.Redact(left+right) == l.redact.Redact(left)+l.redact.Redact(right) {
			end = at
			break
		}
	}
	l.line(string(l.partial[:end]))
	l.partial = append(l.partial[:0], l.partial[end:]...)
}

func (l *Log) line(text string) {
	clean := l.redact.Redact(text)
	l.facts.Lines++
	if clean != text {
		l.facts.Redacted++
	}
	if l.stopping {
		l.facts.AfterStop++
		clean = stopMark + clean
	}
	if l.tail = append(l.tail, clean); len(l.tail) > 50 {
		l.tail = l.tail[1:]
	}
	l.kept.Write([]byte(clean + "\n"))
	if _, err := l.file.WriteString(clean + "\n"); err != nil && l.err == nil {
		l.err = err
	}
}

// Stopping marks every line from now on.
func (l *Log) Stopping() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopping = true
}

// Tail is the last 50 lines, redacted.
func (l *Log) Tail() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.tail...)
}

// Close ends the log and says what it holds.
func (l *Log) Close() (record.Log, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return l.facts, l.err
	}
	if len(l.partial) > 0 {
		l.line(string(l.partial))
		l.partial = nil
	}
	l.facts.SHA256 = hex.EncodeToString(l.original.Sum(nil))
	l.facts.KeptSHA256 = hex.EncodeToString(l.kept.Sum(nil))
	for _, err := range []error{l.file.Sync(), l.file.Close()} {
		if err != nil && l.err == nil {
			l.err = err
		}
	}
	l.file = nil
	return l.facts, l.err
}
