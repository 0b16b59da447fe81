package plan

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Source is where the requests of a workload come from, in place of a set of
// prompts: they are drawn, or taken from a file. It is what package workloads
// has under the same names; what is drawn is drawn from the plan's seed.
type Source struct {
	// Kind is "independent", "prefix" or "conversations", which are drawn, or the
	// format of a file: "jsonl", "azure", "mooncake" or "sharegpt".
	Kind string `yaml:"kind"`
	// Input and Output are the tokens of independent requests, and of their
	// answers. Requests of prefix families have Prefix tokens in common with
	// their family, and those of Suffix by themselves.
	Input    *Lengths `yaml:"input,omitempty"`
	Families int      `yaml:"families,omitempty"`
	Prefix   int      `yaml:"prefix,omitempty"`
	Suffix   *Lengths `yaml:"suffix,omitempty"`
	Output   *Lengths `yaml:"output,omitempty"`
	// Turns are those of each conversation, and User the tokens of what its user
	// says in a turn; Output are those of an answer.
	Turns int      `yaml:"turns,omitempty"`
	User  *Lengths `yaml:"user,omitempty"`

	DataFile `yaml:",inline"`
	// Window is the part of a trace's own time that is taken; nil: all, or there
	// are no times. When its requests come is for an arrival plan to say.
	Window *Window `yaml:"window,omitempty"`
	Sample int     `yaml:"sample,omitempty"` // entries drawn from a file; 0: all of them
}

// DataFile is a file that decides the experiment: its digest is part of the
// plan, and another file is refused.
type DataFile struct {
	File    string `yaml:"file,omitempty"` // a relative path starts at the module's root
	SHA256  string `yaml:"sha256,omitempty"`
	License string `yaml:"license,omitempty"`
}

// Window is a part of a trace, in its own time from its first entry: From is in
// it, To is not.
type Window struct {
	From Duration `yaml:"from"`
	To   Duration `yaml:"to,omitempty"` // 0: to the end
}

// Lengths is a distribution of numbers of tokens: exactly one member is set.
type Lengths struct {
	Fixed     int        `yaml:"fixed,omitempty"`
	Uniform   *Bounds    `yaml:"uniform,omitempty"`
	Lognormal *Lognormal `yaml:"lognormal,omitempty"`
	Empirical *Empirical `yaml:"empirical,omitempty"`
}

// Bounds are the smallest and the largest length, both included. What a
// distribution draws outside of them is drawn again.
type Bounds struct {
	Min int `yaml:"min"`
	Max int `yaml:"max"`
}

// Lognormal is a lognormal distribution within bounds.
type Lognormal struct {
	Median float64 `yaml:"median"` // without the bounds
	Sigma  float64 `yaml:"sigma"`  // standard deviation of the natural logarithm
	Bounds `yaml:",inline"`
}

// Empirical is the lengths of a file, each as likely as any other.
type Empirical struct {
	DataFile `yaml:",inline"`
	Column   string `yaml:"column,omitempty"` // of a CSV file; empty: one length a line
	Bounds   `yaml:",inline"`
}

// sourceKind is a kind of source and the keys that it has beside its kind.
type sourceKind struct {
	name       string
	needs, may []string
	// lengths: each of its entries has its own number of output tokens.
	lengths bool
	timed   bool // and its own moment
}

var fileKeys = []string{"file", "sha256", "license"}

var sourceKinds = []sourceKind{
	{name: "independent", needs: []string{"input", "output"}, lengths: true},
	{name: "prefix", needs: []string{"families", "prefix", "suffix", "output"}, lengths: true},
	{name: ConversationSource, needs: []string{"turns", "user", "output"}, lengths: true},
	{name: "jsonl", needs: fileKeys, may: []string{"sample"}},
	{name: "azure", needs: fileKeys, may: []string{"window", "sample"}, lengths: true, timed: true},
	{name: "mooncake", needs: fileKeys, may: []string{"window", "sample"}, lengths: true, timed: true},
	{name: "sharegpt", needs: fileKeys, may: []string{"sample"}},
}

// ConversationSource is the kind of source whose requests are the turns of
// conversations: only an arrival plan can wait for their answers.
const ConversationSource = "conversations"

// Drawn says whether the requests are drawn, and from no file.
func (s *Source) Drawn() bool {
	return s.Kind == "independent" || s.Kind == "prefix" || s.Kind == ConversationSource
}

// Segments says whether the entries are so many tokens of text that has to be
// written, and not messages.
func (s *Source) Segments() bool { return s.kind().lengths }

// kind is the zero value for an unknown one.
func (s *Source) kind() sourceKind {
	for _, k := range sourceKinds {
		if k.name == s.Kind {
			return k
		}
	}
	return sourceKind{}
}

// Distribution is one of a source's, by the key that it has in the plan.
type Distribution struct {
	Key     string
	Lengths *Lengths
}

// Distributions are those that the source has.
func (s *Source) Distributions() []Distribution {
	var out []Distribution
	for _, d := range []Distribution{{"input", s.Input}, {"suffix", s.Suffix}, {"user", s.User}, {"output", s.Output}} {
		if d.Lengths != nil {
			out = append(out, d)
		}
	}
	return out
}

// files are the source's own file and those of its distributions.
func (s *Source) files() []*DataFile {
	out := []*DataFile{&s.DataFile}
	for _, d := range s.Distributions() {
		if e := d.Lengths.Empirical; e != nil {
			out = append(out, &e.DataFile)
		}
	}
	return out
}

// Timed says whether the source's requests have moments of their own; nil is no
// source.
func (s *Source) Timed() bool { return s != nil && s.kind().timed }

// LargestWave is the most requests that any wave of the schedule has: each wave
// asks the workload's entries from the first on.
func (p *Plan) LargestWave() int {
	most := 0
	for _, l := range p.Schedule().Lifecycles {
		for _, w := range l.Waves {
			most = max(most, w.Attempts())
		}
	}
	return most
}

// source puts what the variables stand for into a copy of the source.
func (e *expansion) source(s *Source) *Source {
	if s == nil {
		return nil
	}
	out := *s
	for _, to := range []**Lengths{&out.Input, &out.Suffix, &out.User, &out.Output} {
		if *to != nil && (*to).Empirical != nil {
			values := *(*to).Empirical
			*to = &Lengths{Empirical: &values}
		}
	}
	for _, f := range out.files() {
		if f.File != "" {
			e.needed("the workload's source", "file", &f.File)
		}
	}
	return &out
}

// source checks what a schema can't say of a workload: which keys go together.
func (d *document) source(p *Plan) {
	s := p.Workload.Source
	const at = "workload.source"
	if s == nil || d.covered(at) {
		return
	}
	if d.has("workload.prompts") {
		d.odd(at, "it stands beside prompts, %q: a workload has one of them", p.Workload.Prompts)
	}
	k := s.kind()
	if k.name == "" {
		return // said already
	}
	document := compile()[Concurrency].document
	for _, key := range properties(document, "#/$defs/source") {
		below := join(at, key)
		switch written := d.has(below); {
		case key == "kind":
		case written && !slices.Contains(k.needs, key) && !slices.Contains(k.may, key):
			d.odd(below, "a source of the kind %s has none: it has %s", k.name, strings.Join(slices.Concat(k.needs, k.may), ", "))
		case !written && slices.Contains(k.needs, key) && !d.meant[below]:
			d.odd(below, missing+"write %s", property(document, "#/$defs/source", key))
		}
	}
	switch most := d.has("workload.max_tokens"); {
	case most && k.lengths:
		d.odd("workload.max_tokens", "each request of a source of the kind %s has its own number: leave it out", k.name)
	case !most && !k.lengths:
		d.odd("workload.max_tokens", missing+"write how many tokens a request may get whose line doesn't say, such as 128")
	}
	if k.name == ConversationSource && p.Arrivals == nil {
		d.odd(at+".kind", "only an arrival plan waits for an answer before it asks the next turn: write prefix, or make it an arrival plan")
	}
	if k.name == "sharegpt" && p.Workload.API == Completions {
		d.odd("workload.api", "completions takes one prompt, and a request of sharegpt is the messages of a chat: write chat")
	}
	if w := s.Window; w != nil {
		d.span(at+".window.from", w.From, 0)
		if d.span(at+".window.to", w.To, 0); w.To >= 0 && w.From >= 0 && d.has(at+".window.to") && w.To <= w.From {
			d.odd(at+".window.to", "%s is not after from, %s: write a later time, or leave it out for the trace's end", w.To, w.From)
		}
	}
	for _, l := range s.Distributions() {
		d.lengths(join(at, l.Key), l.Lengths)
	}
}

// has is whether a key is written.
func (d *document) has(path string) bool { return d.at[path+"#"] != nil }

// leastInside is the share of a distribution that its bounds have to hold, the
// same as in package workloads: with less, what is drawn is no longer what was
// declared.
const leastInside = 0.1

func (d *document) lengths(at string, l *Lengths) {
	var kinds []string
	for _, kind := range properties(compile()[Concurrency].document, "#/$defs/lengths") {
		if d.has(join(at, kind)) {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) != 1 {
		said := "none of them"
		if len(kinds) > 1 {
			said = strings.Join(kinds, " and ")
		}
		d.odd(at, "it is %s: write exactly one of fixed, uniform, lognormal, empirical, such as {fixed: 64}", said)
		return
	}
	at = join(at, kinds[0])
	var b Bounds
	switch {
	case l.Uniform != nil:
		b = *l.Uniform
	case l.Lognormal != nil:
		b = l.Lognormal.Bounds
	case l.Empirical != nil:
		b = l.Empirical.Bounds
	}
	if b.Min == 0 || b.Max == 0 {
		return // it has none, or they were found wrong
	}
	if b.Max < b.Min {
		d.odd(at+".max", "%d is smaller than min, %d: write that or more", b.Max, b.Min)
		return
	}
	if n := l.Lognormal; n != nil && n.Median > 0 && n.Sigma > 0 {
		if inside := n.above(n.Min-1) - n.above(n.Max); inside < leastInside {
			d.odd(at, "the bounds %d to %d hold %.3g %% of the distribution: widen them to %g %% at least", n.Min, n.Max, 100*inside, 100*leastInside)
		}
	}
}

// above is the share of the distribution that, rounded to the nearest whole
// number, is more than length.
func (n Lognormal) above(length int) float64 {
	return math.Erfc((math.Log(float64(length)+0.5)-math.Log(n.Median))/n.Sigma/math.Sqrt2) / 2
}

// String writes what is drawn, such as "lognormal, median 256, sigma 0.8, 16 to
// 2048".
func (l Lengths) String() string {
	switch {
	case l.Uniform != nil:
		return fmt.Sprintf("uniform, %d to %d", l.Uniform.Min, l.Uniform.Max)
	case l.Lognormal != nil:
		return fmt.Sprintf("lognormal, median %g, sigma %g, %d to %d", l.Lognormal.Median, l.Lognormal.Sigma, l.Lognormal.Min, l.Lognormal.Max)
	case l.Empirical != nil:
		return fmt.Sprintf("empirical, of %s, %d to %d", l.Empirical.File, l.Empirical.Min, l.Empirical.Max)
	}
	return fmt.Sprintf("fixed, %d", l.Fixed)
}

// String says in one line where the requests come from.
func (s Source) String() string {
	var parts []string
	if s.Families > 0 {
		parts = append(parts, fmt.Sprintf("%d families of a prefix of %d tokens", s.Families, s.Prefix))
	}
	if s.Turns > 0 {
		parts = append(parts, fmt.Sprintf("%d turns each", s.Turns))
	}
	for _, l := range s.Distributions() {
		parts = append(parts, l.Key+" "+l.Lengths.String())
	}
	if s.File != "" {
		parts = append(parts, fmt.Sprintf("%s (%s)", s.File, s.License))
	}
	if w := s.Window; w != nil {
		to := "its end"
		if w.To > 0 {
			to = w.To.String()
		}
		parts = append(parts, fmt.Sprintf("from %s to %s", w.From, to))
	}
	if s.Sample > 0 {
		parts = append(parts, fmt.Sprintf("a sample of %d", s.Sample))
	}
	return s.Kind + ": " + strings.Join(parts, "; ")
}
