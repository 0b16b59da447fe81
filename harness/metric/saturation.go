package metric

import (
	"fmt"
	"strings"

	"assay/harness/record"
)

// Saturated is the share of what a machine has from which on a client is
// saturated: what is left is used up by what nobody counts.
const Saturated = 0.95

// exhausted are the system's own words (strerror(3) for EMFILE, ENFILE and
// EADDRNOTAVAIL) for an attempt that this machine could not make, and what to
// do about it.
var exhausted = []struct{ says, what, remedy string }{
	{"too many open files", "open_files", "raise the limit (ulimit -n)"},
	{"cannot assign requested address", "ports", "widen net.ipv4.ip_local_port_range, or wait until the sockets of earlier waves have gone"},
}

// saturation is what the client's own use of its machine says against a wave.
// The processors say nothing about the client where the server is emulated, and
// so part of this process.
func (s *summarizer) saturation(w record.Wave, p record.Population, against func(string, ...any)) {
	c := w.Client
	if c != nil && c.Busiest != nil && *c.Busiest >= Saturated && s.plan.Arm(w.Arm).Engine.Emulated == nil {
		against("client_saturated: cpu: the client used %.0f %% of the processors it may use over a second: give it more, or ask for less", *c.Busiest*100)
	}
	held := ""
	if c != nil && c.Held != nil {
		h := c.Held
		held = fmt.Sprintf(" (at release %d of %d files were open, and %d TCP sockets for %d ports)", h.Files, h.FilesLimit, h.Sockets, h.Ports)
		if float64(h.Files) >= Saturated*float64(h.FilesLimit) {
			against("client_saturated: open_files: %d of the %d files that the client may open were open at release: %s", h.Files, h.FilesLimit, exhausted[0].remedy)
		}
	}
	for _, e := range exhausted {
		n := 0
		for _, r := range p.Attempts {
			if r.Error != nil && strings.Contains(*r.Error, e.says) {
				n++
			}
		}
		if n > 0 {
			against("client_saturated: %s: %d attempts were not made, since this machine had none left%s: %s", e.what, n, held, e.remedy)
		}
	}
}
