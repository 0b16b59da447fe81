package signature

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// Signers are those whom somebody trusts: an allowed signers file, as
// ssh-keygen(1) has it under ALLOWED SIGNERS.
type Signers struct {
	file    string
	entries []entry
}

// entry is a line of it.
type entry struct {
	principals string // patterns, with commas
	key        ssh.PublicKey
	namespaces string // likewise; empty: any
	after      time.Time
	before     time.Time // zero: no limit
	authority  bool      // it signs certificates, and nothing itself
}

// ParseSigners reads an allowed signers file; the name is for what is said of it.
// The error has every line that is none of it.
func ParseSigners(name string, data []byte) (Signers, error) {
	s := Signers{file: name}
	var errs []error
	for i, line := range bytes.Split(data, []byte("\n")) {
		text := strings.TrimSpace(string(line))
		if text == "" || text[0] == '#' {
			continue
		}
		e, faults := parseEntry(text)
		for _, f := range faults {
			errs = append(errs, fmt.Errorf("%s:%d: %s", name, i+1, f))
		}
		if len(faults) == 0 {
			s.entries = append(s.entries, e)
		}
	}
	if len(s.entries)+len(errs) == 0 {
		errs = append(errs, fmt.Errorf("%s: it has no signer: a line of it is a name, such as you@example.com, and a public key", name))
	}
	return s, errors.Join(errs...)
}

func parseEntry(text string) (e entry, faults []string) {
	principals, rest, quoted := strings.Cut(strings.TrimPrefix(text, `"`), `"`)
	if quoted = quoted && text[0] == '"'; !quoted {
		at := strings.IndexAny(text, " \t")
		if at < 0 {
			return entry{}, []string{"it has no key behind the name"}
		}
		principals, rest = text[:at], text[at:]
	}
	if principals == "" {
		return entry{}, []string{"it has no name before the key"}
	}
	key, _, options, more, err := ssh.ParseAuthorizedKey([]byte(strings.TrimSpace(rest)))
	if err != nil || len(more) > 0 {
		return entry{}, []string{"it has no public key behind the name and the options"}
	}
	at := func(text string) time.Time {
		t, err := moment(text)
		if err != nil {
			faults = append(faults, err.Error())
		}
		return t
	}
	e = entry{principals: principals, key: key}
	for _, o := range options {
		name, value, _ := strings.Cut(o, "=")
		value = strings.Trim(value, `"`)
		switch strings.ToLower(name) {
		case "cert-authority":
			e.authority = true
		case "namespaces":
			e.namespaces = value
		case "valid-after":
			e.after = at(value)
		case "valid-before":
			e.before = at(value)
		default:
			faults = append(faults, fmt.Sprintf("%q is no option: there are cert-authority, namespaces, valid-after and valid-before", name))
		}
	}
	return e, faults
}

// moment reads a time as ssh-keygen has it: YYYYMMDD[HHMM[SS]], of this machine's
// time zone unless a Z follows.
func moment(text string) (time.Time, error) {
	zone := time.Local
	digits, utc := strings.CutSuffix(text, "Z")
	if utc {
		zone = time.UTC
	}
	layout, known := map[int]string{8: "20060102", 12: "200601021504", 14: "20060102150405"}[len(digits)]
	if known {
		if t, err := time.ParseInLocation(layout, digits, zone); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no time: write YYYYMMDD, YYYYMMDDHHMM or YYYYMMDDHHMMSS, with a Z behind it for UTC", text)
}

// matches is whether a text is among patterns: * is any text, ? any character,
// and one behind a ! is not among them, whatever others say.
func matches(patterns, text string) bool {
	found := false
	for _, p := range strings.Split(patterns, ",") {
		p, not := strings.CutPrefix(p, "!")
		if !wild(p, text) {
			continue
		}
		if not {
			return false
		}
		found = true
	}
	return found
}

// wild goes back to the last * only, so that no pattern takes long.
func wild(pattern, text string) bool {
	p, t, star, from := 0, 0, -1, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, t
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == text[t]):
			p, t = p+1, t+1
		case star >= 0:
			from++
			p, t = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
