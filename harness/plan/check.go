package plan

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Parameters are the parameter sets that the emulated engine ships.
var Parameters = []string{"t4-naive", "t4-vllm", "rtx4090-eager", "rtx4090-compiled"}

// Prompts are the sets of prompts that are shipped.
var Prompts = []string{"eight"}

// Families are the families of tasks that are shipped.
var Families = []string{"retrieval", "arithmetic", "copy", "json", "mixed"}

// What a plan may ask for at most: beyond it, a slip of the finger is likelier
// than a wish, and the schedule would not fit in memory.
const (
	mostWaves    = 100_000
	mostRequests = 10_000_000
	longest      = 366 * 24 * time.Hour
)

// odd adds a mistake that a check found, unless the same thing was found wrong
// already.
func (d *document) odd(path, format string, args ...any) {
	if !d.covered(path) {
		d.wrong(path, format, args...)
	}
}

// writtenSpan is a time that is checked where the plan has its key, and the least
// that it may be.
type writtenSpan struct {
	path     string
	d, least Duration
}

// spans checks the times that are written out, before defaults stand where
// none is: a default must not take the place of a zero.
func (d *document) spans(p *Plan) {
	for _, s := range append(arrivalSpans(p),
		writtenSpan{"timeouts.image", p.Timeouts.Image, 1}, writtenSpan{"timeouts.ready", p.Timeouts.Ready, 1},
		writtenSpan{"timeouts.poll", p.Timeouts.Poll, 1}, writtenSpan{"schedule.poll", p.Timeouts.Poll, 1},
		writtenSpan{"timeouts.connect", p.Timeouts.Connect, 1}, writtenSpan{"timeouts.request", p.Timeouts.Request, 1},
		writtenSpan{"timeouts.stop", p.Timeouts.Stop, 1}, writtenSpan{"schedule.settle.idle", p.Sweep.Settle.Idle, 1},
		writtenSpan{"gates.client_lag", p.Gates.ClientLag, 1}, writtenSpan{"gates.release_lag", p.Gates.ReleaseLag, 1},
		writtenSpan{"gates.engine_ttft", p.Gates.Watch.EngineTTFT, 1},
	) {
		if d.has(s.path) {
			d.span(s.path, s.d, s.least)
		}
	}
	if t := p.Telemetry; t != nil {
		d.span("telemetry.gpu", t.GPU, 0)
		d.span("telemetry.engine", t.Engine, 0)
	}
	for i, a := range p.Arms {
		if m := a.Engine.Emulated; m != nil {
			at := fmt.Sprintf("arms[%d].engine.emulated", i)
			d.span(at+".startup", m.Startup, 0)
			for j, f := range m.Faults {
				d.span(fmt.Sprintf("%s.faults[%d].for", at, j), f.For, 0)
			}
		}
	}
}

func (d *document) span(path string, span, least Duration) {
	switch {
	case span < 0:
		d.odd(path, "%s is negative: write a time with its unit, such as 60s, 50ms or 5m", span)
	case span < least:
		d.odd(path, "%s leaves no time: write more than 0s, or leave it out where there is a default", span)
	case span.D() > longest:
		d.odd(path, "%s is longer than a year: write a time such as 60s, 50ms or 5m", span)
	}
}

// check finds what a schema can't say: combinations, and references to things
// that are not in the plan.
func (d *document) check(p *Plan) {
	d.arms(p)
	switch {
	case p.Pairing != nil:
		d.pairing(p)
	case p.Arrivals != nil:
		d.arrivals(p)
	default:
		d.sweep(p)
	}
	d.source(p)
	d.times(p)
	d.twice("labels", "since label filters ignore case; name each label once")
	d.twice("claims", "name each claim once")
	if p.Pairing == nil && p.Workload.Prompts != "" && !slices.Contains(Prompts, p.Workload.Prompts) {
		d.odd("workload.prompts", "there is no set %q: there is %s", p.Workload.Prompts, strings.Join(Prompts, ", "))
	}
	if t := p.Temperature(); p.Gates.Identity == "require" && t > 0 {
		d.odd("gates.identity", "require asks for equal outputs, and a temperature of %g draws them at random: set the temperature to 0, or report", t)
	}
	d.telemetry(p)
	d.variables()
}

// fastest is the shortest time between two looks: a look at a GPU's bus takes
// 40 ms by itself.
const fastest = Duration(10 * time.Millisecond)

// telemetry checks that what the gates need is looked at, and that there is
// something to look at.
func (d *document) telemetry(p *Plan) {
	t := Telemetry{}
	if p.Telemetry != nil {
		t = *p.Telemetry
	}
	for _, rate := range []struct {
		path string
		d    Duration
	}{{"telemetry.gpu", t.GPU}, {"telemetry.engine", t.Engine}} {
		if rate.d > 0 && rate.d < fastest {
			d.odd(rate.path, "%s is faster than anything can be looked at: write %s or more, such as 100ms", rate.d, fastest)
		}
	}
	gpus, pages := false, false
	for _, a := range p.Arms {
		gpus = gpus || a.Engine.Container != nil && !a.Engine.Container.GPUs.None() || a.Engine.Process != nil
		pages = pages || a.Engine.Metrics != nil && *a.Engine.Metrics != ""
	}
	if t.GPU > 0 && !gpus {
		d.odd("telemetry.gpu", "no arm has a GPU of this machine: give a container gpus, or leave it out")
	}
	if t.Engine > 0 && !pages {
		d.odd("telemetry.engine", "no arm has a metrics page: name it in the arm's engine, or leave it out")
	}
	g := p.Gates.Watch
	for _, gate := range []struct {
		path   string
		set    bool
		looked bool
		needs  string
	}{
		{"gates.engine_ttft", g.EngineTTFT > 0, t.Engine > 0, "telemetry.engine"}, {"gates.engine_tokens", g.EngineTokens != nil, t.Engine > 0, "telemetry.engine"},
		{"gates.throttled", g.Throttled != "", t.GPU > 0, "telemetry.gpu"}, {"gates.shared_gpu", g.SharedGPU != "", t.GPU > 0, "telemetry.gpu"},
	} {
		if gate.set && !gate.looked {
			d.odd(gate.path, "nothing is looked at that it could be held against: write %s, such as %s: 1s, or leave it out", gate.needs, gate.needs)
		}
	}
}

// twice finds words that a list of the document holds already. It reads the
// document, since a list that has something else wrong is not in the plan.
func (d *document) twice(list, right string) {
	keys, _ := d.root.(map[string]any)
	words, _ := keys[list].([]any)
	seen := map[string]int{}
	for i, w := range words {
		word, ok := w.(string)
		if !ok {
			continue
		}
		at := fmt.Sprintf("%s[%d]", list, i)
		if first, twice := seen[strings.ToLower(word)]; twice && !d.covered(at) {
			d.wrong(at, "%q stands there already, as %s[%d]: %s", word, list, first, right)
		} else if !twice {
			seen[strings.ToLower(word)] = i
		}
	}
}

func (d *document) arms(p *Plan) {
	names := map[string]int{}
	for i, a := range p.Arms {
		at := fmt.Sprintf("arms[%d]", i)
		if d.covered(at) {
			continue
		}
		if first, twice := names[a.Name]; twice {
			d.odd(at+".name", "%q is the name of arms[%d] already: give each arm its own", a.Name, first)
		} else if a.Name != "" {
			names[a.Name] = i
		}
		d.engine(at, a)
	}
	if len(p.Arms) == 2 && p.Arms[0].Role == p.Arms[1].Role && p.Arms[0].Role != "" {
		d.odd("arms[1].role", "both arms are the %s: one is the baseline, one the candidate", p.Arms[1].Role)
	}
}

func (d *document) engine(at string, a Arm) {
	e := a.Engine
	var kinds []string
	for _, kind := range []string{"container", "process", "endpoint", "emulated"} {
		if _, written := d.at[at+".engine."+kind]; written {
			kinds = append(kinds, kind)
		}
	}
	switch len(kinds) {
	case 0:
		d.odd(at+".engine", "it is none of container, process, endpoint and emulated: an arm is exactly one of them")
	case 1:
	default:
		d.odd(at+".engine", "it is %s: an arm is exactly one of them", strings.Join(kinds, " and "))
	}
	if a.OnDisconnect == "" {
		d.odd(at+".on_disconnect", "missing: say what this server does with a request whose client left, finish or cancel (or unknown, for an endpoint)")
	}
	if a.OnDisconnect == Unknown && len(kinds) > 0 && !slices.Contains(kinds, "endpoint") {
		d.odd(at+".on_disconnect", "unknown is for an endpoint that somebody else runs: say finish or cancel")
	}
	at += ".engine."
	if e.Container != nil {
		d.container(at+"container", e.Container)
	}
	if e.Process != nil {
		d.secrets(at+"process.env", e.Process.Env)
	}
	if e.Endpoint != nil {
		d.endpoint(at+"endpoint.url", e.Endpoint.URL)
	}
	if m := e.Emulated; m != nil {
		if m.Parameters != "" && !slices.Contains(Parameters, m.Parameters) {
			d.odd(at+"emulated.parameters", "there is no set %q: there are %s", m.Parameters, strings.Join(Parameters, ", "))
		}
		for j, f := range m.Faults {
			d.fault(fmt.Sprintf("%semulated.faults[%d]", at, j), f)
		}
	}
}

func (d *document) container(at string, c *Container) {
	targets := map[string]bool{}
	for j, m := range c.Mounts {
		place := fmt.Sprintf("%s.mounts[%d]", at, j)
		if (m.Volume == "") == (m.Source == "") {
			d.odd(place, "it needs one of volume and source, not both and not neither")
		}
		if m.Target != "" && targets[m.Target] {
			d.odd(place+".target", "%q is another mount's target already: give each its own", m.Target)
		}
		targets[m.Target] = true
	}
	if c.GPUAccess != "" && c.GPUs.None() && !d.covered(at+".gpus") {
		d.odd(at+".gpu_access", "it gets no GPU: write gpus too, such as all, or leave this out")
	}
	for j, id := range c.GPUs.IDs {
		place := fmt.Sprintf("%s.gpus[%d]", at, j)
		switch {
		case slices.Index(c.GPUs.IDs, id) < j:
			d.odd(place, "%q stands there twice: name each GPU once", id)
		case gpuUUID.MatchString(id):
			d.odd(place, "%q would be written into the bundle, and tells one GPU from all others: write ${GPU}, and set it", id)
		}
	}
	d.secrets(at+".env", c.Env)
}

var gpuUUID = regexp.MustCompile(`^(GPU|MIG)-`)

// secrets refuses a secret that is written out: the plan is in the bundle.
func (d *document) secrets(at string, env map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if secretName.MatchString(name) && env[name] != "" && !onlyVariable.MatchString(env[name]) {
			d.odd(join(at, name), "a secret that is written here would be in every bundle: write ${%s}, and set it where this runs", name)
		}
	}
}

// onlyVariable is a value that is a variable without a default, and nothing
// else.
var onlyVariable = regexp.MustCompile(`^\$\{[^}:]+\}$`)

func (d *document) endpoint(at, text string) {
	if variable.MatchString(text) || text == "" {
		return // the machine says
	}
	if why := urlFault(text); why != "" {
		d.odd(at, "%s", why)
	}
}

// urlFault says why a text is no endpoint's URL; empty if it is one.
func urlFault(text string) string {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		return fmt.Sprintf("%q is no http or https URL: write one such as http://127.0.0.1:8000", text)
	case u.User != nil:
		return "it holds a user or a password, which would be in every bundle: name the variable that holds the key in api_key_env"
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return fmt.Sprintf("%q has a query or a fragment: write the URL that /v1/chat/completions is added to", text)
	case strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/v1"):
		return fmt.Sprintf("%q ends in /v1, which is added to it: leave it out", text)
	}
	return ""
}

func (d *document) fault(at string, f Fault) {
	if f.Kind != "" && !slices.Contains(FaultKinds, f.Kind) {
		hint := "there are " + strings.Join(FaultKinds, ", ")
		if near := nearest(f.Kind, FaultKinds); near != "" {
			hint = "did you mean " + near + "?"
		}
		d.odd(at+".kind", "there is no fault %q: %s", f.Kind, hint)
	}
	if f.Status != 0 && f.Kind != FaultHTTPStatus {
		d.odd(at+".status", "%d goes with http_status, not with %s", f.Status, f.Kind)
	}
}

func (d *document) sweep(p *Plan) {
	s := p.Sweep
	for i := 1; i < len(s.Tiers); i++ {
		if s.Tiers[i] <= s.Tiers[i-1] {
			d.odd(fmt.Sprintf("schedule.tiers[%d]", i), "%d does not follow %d: write the tiers in rising order, each once", s.Tiers[i], s.Tiers[i-1])
		}
	}
	// In floating point, which does not wrap around.
	waves := 2 * float64(s.Lifecycles) * (float64(s.Warmup) + float64(len(s.Tiers))*float64(s.Repeats))
	requests := 2 * float64(s.Lifecycles) * float64(s.Warmup)
	for _, t := range s.Tiers {
		requests += 2 * float64(s.Lifecycles) * float64(s.Repeats) * float64(t)
	}
	if waves > mostWaves || requests > mostRequests {
		d.odd("schedule", "%.0f waves and %.0f requests: stay at or below %d and %d", waves, requests, mostWaves, mostRequests)
		return
	}
	t := p.Timeouts
	if max(t.Image, t.Ready, t.Stop, t.Connect, t.Request, s.Settle.Idle).D() > longest {
		return // said already
	}
	worst := float64(t.Image)*2 + 2*float64(s.Lifecycles)*(float64(t.Ready)+float64(t.Stop)) +
		waves*(float64(s.Settle.Idle)+float64(t.Connect)+float64(t.Request))
	if worst > float64(longest) || worst/p.TimeScale > float64(longest) {
		d.odd("schedule", "%.0f waves of which each may take %s are more than a year: run less, or wait less", waves, t.Request.D()+t.Connect.D()+s.Settle.Idle.D())
	}
}

// pairing checks what a crossover plan has instead of a sweep.
func (d *document) pairing(p *Plan) {
	c := p.Pairing
	if c.Pairs%2 == 1 {
		d.odd("schedule.pairs", "%d pairs leave a block of two with one: write an even number, such as %d", c.Pairs, c.Pairs+1)
	}
	if len(c.Blocks) == 2 && c.Blocks[0] == c.Blocks[1] {
		d.odd("schedule.blocks[1]", "%s stands there twice: name each order once", c.Blocks[1])
	}
	requests := 0.0
	for _, lane := range c.Lanes.Each() {
		s, at := c.Lanes.Sequence(lane), "lanes."+string(lane)
		requests += 2 * float64(c.Pairs) * float64(s.Requests)
		if s.Tasks != "" && !slices.Contains(Families, s.Tasks) {
			d.odd(at+".tasks", "there is no family %q: there are %s", s.Tasks, strings.Join(Families, ", "))
		}
		if s.Requests > 0 && s.Requests < s.Cycle {
			d.odd(at+".requests", "%d do not hold one cycle of %d: write more, or a shorter cycle", s.Requests, s.Cycle)
		}
		if s.Requests > 0 && s.Requests < c.Crossing.Dwell {
			d.odd(at+".requests", "%d can't hold a dwell of %d: no crossing could be sustained; write more, or a shorter crossing.dwell", s.Requests, c.Crossing.Dwell)
		}
	}
	if requests > mostRequests {
		d.odd("schedule", "%.0f requests: stay at or below %d", requests, mostRequests)
		return
	}
	if l := c.Inference.Level; l.Value < 50 || l.Value >= 100 {
		d.odd("inference.level", "%s is no level of confidence: write 50%% or more, and less than 100%%, such as 95%%", l)
	}
	d.pairClaims(p)
	d.compileCache(p)
	t := p.Timeouts
	if max(t.Image, t.Ready, t.Stop, t.Connect, t.Request).D() > longest {
		return // said already
	}
	worst := float64(t.Image)*2 + 2*float64(c.Pairs*len(c.Lanes.Each()))*(float64(t.Ready)+float64(t.Stop)) + requests*(float64(t.Connect)+float64(t.Request))
	if worst > float64(longest) || worst/p.TimeScale > float64(longest) {
		d.odd("schedule", "%.0f requests of which each may take %s are more than a year: run less, or wait less", requests, t.Request.D()+t.Connect.D())
	}
}

// compileCache holds the declared state of the compile cache against what the
// containers are given: one that they may write to and that outlives them is
// not fresh, and without one nothing is kept.
func (d *document) compileCache(p *Plan) {
	for i, a := range p.Arms {
		c := a.Engine.Container
		if c == nil {
			continue
		}
		target := c.Writable()
		switch at := fmt.Sprintf("arms[%d].engine.container.mounts", i); {
		case target != "" && p.Pairing.Caches.Compile == "fresh":
			d.odd(at, "caches.compile is fresh, and %s may write to what is mounted at %s, which outlives its container: write read_only: true there, or caches.compile: kept", a.Name, target)
		case target == "" && p.Pairing.Caches.Compile == "kept":
			d.odd("caches.compile", "kept, and nothing that %s may write to outlives its container: mount a volume where it compiles, or write fresh", a.Name)
		}
	}
}

// pairClaims refuses claims that the plan could never support.
func (d *document) pairClaims(p *Plan) {
	c := p.Pairing
	if fewest := FewestPairs(c.Inference.Level.Share()); c.Pairs > 0 && c.Pairs < fewest && len(p.Claims) > 0 {
		d.odd("claims", "%d pairs can't support a claim at %s: a two-sided sign-flip test over them goes no lower than 2/2^%d; run %d pairs or more, or write [] and get a description",
			c.Pairs, c.Inference.Level, c.Pairs, fewest+fewest%2)
	}
	for i, claim := range p.Claims {
		at := fmt.Sprintf("claims[%d]", i)
		switch claim {
		case ClaimEqualTokenCount:
			if c.Lanes.Fixed == nil {
				d.odd(at, "%s is over the fixed lane, and the plan has none: add lanes.fixed", claim)
			}
		case ClaimNaturalQuality:
			if c.Lanes.Natural == nil {
				d.odd(at, "%s is over the natural lane, and the plan has none: add lanes.natural", claim)
			}
			if p.Gates.Correctness == "none" {
				d.odd(at, "%s needs answers that are evaluated: set gates.correctness to report or require", claim)
			}
		}
		if claim == ClaimOutputIdentical || claim == ClaimEqualTokenCount {
			for _, a := range p.Arms {
				if a.TokenIDs != nil && !*a.TokenIDs {
					d.odd(at, "%s is decided from token ids, and %s is not asked for them: set its token_ids to true", claim, a.Name)
				}
			}
		}
	}
}

// FewestPairs is the smallest number of pairs at which a two-sided sign-flip
// test can reach a level of confidence, from 0 to 1: its p-value can't go below
// 2/2^k.
func FewestPairs(level float64) int {
	k := 1
	for 2/float64(int(1)<<k) > 1-level+1e-12 && k < 62 {
		k++
	}
	return k
}

func (d *document) times(p *Plan) {
	t := p.Timeouts
	poll := "timeouts.poll"
	if p.Pairing != nil {
		poll = "schedule.poll"
	}
	if t.Poll.D() > 50*time.Millisecond {
		d.odd(poll, "%s blurs the moment of readiness: poll every 50ms at most", t.Poll)
	}
	if t.Ready > 0 && t.Ready < t.Poll {
		d.odd("timeouts.ready", "%s is over before the second poll, which comes after %s: wait longer", t.Ready, t.Poll)
	}
	if t.Request > 0 && t.Request < t.Poll {
		d.odd("timeouts.request", "%s is shorter than %s, %s: no server answers in that time; wait longer", t.Request, poll, t.Poll)
	}
	if p.TimeScale != 1 && slices.ContainsFunc(p.Arms, func(a Arm) bool { return a.Engine.real() }) {
		d.odd("time_scale", "%g scales emulated time, and not every arm is emulated: leave it out", p.TimeScale)
	}
}

// The form of a variable, with its name and its default.
var (
	variable     = regexp.MustCompile(`\$\{([^}:]*)(:-([^}]*))?\}`)
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// machineValue matches the paths of values that belong to a machine. A
// container's arguments don't: they decide the experiment, and would be
// outside its hash.
var machineValue = regexp.MustCompile(`^arms\[\d+\]\.engine\.(container\.(image|env\..+|gpus\[\d+\]|mounts\[\d+\]\.(volume|source))|process\.(command\[\d+\]|env\..+|dir)|endpoint\.url)$|^workload\.source\.(|(input|suffix|output)\.empirical\.)file$`)

// variables checks where ${VAR} stands and how it is written.
func (d *document) variables() {
	for _, path := range slices.Sorted(maps.Keys(d.shown)) {
		text, err := strconv.Unquote(d.shown[path])
		if err != nil || !strings.Contains(text, "${") {
			continue
		}
		if !machineValue.MatchString(path) {
			d.odd(path, "%q: ${…} is for values that belong to a machine (images, mounts, GPUs, commands, folders, files, URLs, env), and this decides the experiment: write the value", text)
			continue
		}
		for _, m := range variable.FindAllStringSubmatch(text, -1) {
			if !variableName.MatchString(m[1]) {
				d.odd(path, "%q: %q is no variable's name: write ${NAME} or ${NAME:-default}", text, m[1])
			}
			if m[1] == reservedPort && strings.Contains(path, ".process.") && (m[2] != "" || strings.HasSuffix(path, ".dir")) {
				d.odd(path, "%q: ${PORT} is the free port that the harness picks: write it in command or env, without a default", text)
			}
		}
		if strings.Count(text, "${") != len(variable.FindAllString(text, -1)) {
			d.odd(path, "%q: a ${ that is no ${NAME} and no ${NAME:-default}", text)
		}
	}
}
