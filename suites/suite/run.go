package suite

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"assay/harness/arrival"
	"assay/harness/client"
	"assay/harness/engine"
	"assay/harness/environment"
	"assay/harness/lifecycle"
	"assay/harness/load"
	"assay/harness/plan"
	"assay/harness/proof"
	"assay/harness/record"
	"assay/harness/telemetry"
	"assay/reports"
)

// Run is one plan being run: its lifecycles and waves, one after the other, and
// the evidence that they leave in a directory. It knows nothing of Ginkgo;
// [Experiment] makes specs of it. It is not safe for several goroutines.
type Run struct {
	Plan     *plan.Plan // as frozen
	Schedule plan.Schedule

	frozen    plan.Frozen
	root      string // the project's folder
	selection string // the label filter
	progress  *progress
	proves    bool // the client proves itself before the first lifecycle

	expanded *plan.Plan // with every ${VAR} expanded
	name     string
	dir      string
	store    *record.Store
	redact   *lifecycle.Redactor
	asks     asks

	started   int // lifecycles so far
	current   *running
	kept      record.Run     // what the store holds
	unstarted map[int]string // why a lifecycle's engine was not launched
	resumed   *resumption    // what the run goes on from; nil: from nothing
	stopped   string         // why the run as a whole was stopped; empty: it was not
	broken    error          // why evidence could not be kept; nil: it could
	finished  bool
	bundle    reports.Bundle
	finishErr error

	stopping sync.Mutex // a lifecycle may be under way to its end when the run finishes
}

// running is the lifecycle whose server is up.
type running struct {
	place     plan.Lifecycle
	arm       plan.Arm
	lifecycle *lifecycle.Lifecycle
	client    *client.Client
	target    client.Target
	waves     int // so far
	abandoned int // attempts of the last wave that this side left
}

// NewRun freezes a plan and draws its schedule. Nothing is written yet.
func NewRun(p *plan.Plan, selection string) (*Run, error) {
	frozen, err := plan.Freeze(p)
	if err != nil {
		return nil, err
	}
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	return &Run{
		Plan: p, Schedule: p.Schedule(), frozen: frozen, root: root, selection: selection, progress: silent(), unstarted: map[int]string{},
	}, nil
}

// ProveClient has the client prove itself on this machine when the run begins:
// see package proof. A client that is not worth what the plan's gates ask for
// starts nothing.
func (r *Run) ProveClient() { r.proves = true }

// Begin makes the bundle's directory; empty: out/<plan>-<UTC time> under the
// project's folder.
func (r *Run) Begin(ctx context.Context, dir string) error {
	expanded, substitutions, err := r.Plan.Expand(os.LookupEnv)
	if err != nil {
		return err
	}
	if r.asks, err = newAsks(r.Plan); err == nil {
		err = r.loadEntries(expanded)
	}
	if err != nil {
		return err
	}
	r.redact = lifecycle.NewRedactor(r.Plan.Secrets(os.LookupEnv)...)
	if r.expanded = expanded; r.resumed != nil {
		return r.reopen(ctx)
	}
	now := time.Now().UTC()
	r.name, r.dir = r.Plan.Name+"-"+now.Format("20060102T150405Z"), dir
	if dir == "" {
		r.dir = filepath.Join(r.root, "out", r.name)
	}
	for name, value := range substitutions {
		substitutions[name] = r.redact.Redact(value)
	}
	facts, unfit := r.facts(ctx)
	if r.store, err = record.Create(r.dir, r.frozen.SHA256, r.Schedule.SHA256()); err != nil {
		return err
	}
	r.kept.Environment, err = r.store.WriteEnvironment(record.Environment{
		Run: r.name, StartedAt: now.Format(time.RFC3339Nano), Selection: r.selection,
		Substitutions: substitutions, Facts: facts,
	})
	return errors.Join(err, record.WriteFile(filepath.Join(r.dir, reports.PlanFile), r.frozen.Bytes), unfit)
}

// facts are this machine's, with what the client is worth on it. The error says
// that it is not worth enough for the plan's gates; the facts hold all the same.
func (r *Run) facts(ctx context.Context) (map[string]record.Fact, error) {
	facts := environment.Facts(ctx, r.root)
	if !r.proves {
		return facts, nil
	}
	r.progress.lifecycle("the client proves itself against a server that computes nothing")
	p, err := proof.Run(ctx, r.provable())
	if err != nil {
		facts["client_proof"] = record.Fact{Reason: err.Error()}
		return facts, err
	}
	facts["client_proof"] = record.Fact{Value: p, Provenance: record.ClientObserved}
	return facts, proof.Enough(p, r.Plan.Gates.ClientLag.D())
}

// Dir is the bundle's directory, empty before Begin.
func (r *Run) Dir() string { return r.dir }

// Start brings a lifecycle's server up. Whatever it returns, Stop must follow.
// The error wraps [engine.ErrUnavailable] if this machine lacks something.
func (r *Run) Start(ctx context.Context, place plan.Lifecycle) error {
	if err := r.prepare(ctx); err != nil {
		r.unstarted[place.Number] = r.redact.Redact(err.Error())
		return fmt.Errorf("the prompts could not be made their length: %w", err)
	}
	arm := *r.expanded.Arm(place.Arm)
	made, err := lifecycle.NewEngine(r.expanded, arm, place, r.asks.texts(place.Lane), r.root, lifecycle.WithAnswers(r.asks.answers(place.Lane)))
	if err == nil {
		err = errors.Join(made.Check(ctx), environment.Enough(r.largestWave()))
	}
	if err != nil {
		r.unstarted[place.Number] = r.redact.Redact(err.Error())
		return err
	}
	r.started++
	r.progress.lifecycle(r.Place(place) + ": starting")
	l, err := lifecycle.Start(ctx, lifecycle.Config{
		Run: r.name, Place: place, Executed: r.started, Arm: arm, Engine: made, Timeouts: r.timeouts(), Scale: r.Plan.TimeScale,
		LogDir: filepath.Join(r.dir, record.LogsDir), Redact: r.redact, Undisturbed: r.Plan.Pairing != nil,
		Caches: r.caches(), Telemetry: r.Plan.Telemetry,
	})
	r.current = &running{place: place, arm: arm, lifecycle: l, client: client.New()}
	if err == nil {
		r.current.target = client.Target{BaseURL: l.Server().URL(), Path: r.path()}
	}
	if arm.Engine.Endpoint != nil {
		r.current.target.APIKeyEnv = arm.Engine.Endpoint.APIKeyEnv
	}
	return err
}

// Place names a lifecycle by its number in the schedule, so that Ginkgo, which
// sorts sibling containers made on one line by their text, keeps the order.
func (r *Run) Place(l plan.Lifecycle) string {
	width := len(fmt.Sprint(len(r.Schedule.Lifecycles)))
	name := fmt.Sprintf("%0*d of %d: %s", width, l.Number, len(r.Schedule.Lifecycles), l.Arm)
	if l.Lane != "" {
		name += ", " + string(l.Lane) + " lane"
	}
	return name
}

func (r *Run) largestWave() int {
	n := max(1, r.inFlight())
	for _, t := range r.Plan.Sweep.Tiers {
		n = max(n, t)
	}
	return n
}

// mostInFlight is how many streams an arrival plan's client is proved with at
// most: how many there will be is the server's to say.
const mostInFlight = 512

// inFlight is how many requests of an arrival plan may be in flight at once: the
// plan's own limit, or what arrives at its highest rate until the first times
// out, up to mostInFlight; 0 in other plans.
func (r *Run) inFlight() int {
	a := r.Plan.Arrivals
	switch {
	case a == nil:
		return 0
	case a.InFlight > 0:
		return a.InFlight
	}
	return int(min(mostInFlight, math.Ceil(float64(r.Plan.HighestRate())*r.Plan.Timeouts.Request.D().Seconds())))
}

// provable is how many streams the client is proved with: the largest wave,
// as far as this process may open files for both ends of its connections.
func (r *Run) provable() int {
	n := r.largestWave()
	if limit, err := environment.FileDescriptors(); err == nil {
		n = max(1, min(n, int(min(limit, math.MaxInt32))/2-64))
	}
	return n
}

// caches are the states that a crossover plan declares.
func (r *Run) caches() *plan.Caches {
	if r.Plan.Pairing == nil {
		return nil
	}
	return &r.Plan.Pairing.Caches
}

// timeouts are the plan's, in this machine's time.
func (r *Run) timeouts() plan.Timeouts {
	t := r.Plan.Timeouts
	for _, d := range []*plan.Duration{&t.Image, &t.Ready, &t.Connect, &t.Request, &t.Stop} {
		*d = plan.Duration(r.Plan.Scaled(*d))
	}
	return t
}

// Wave settles the server, releases a wave, and returns its attempts once they
// are on disk. An error means that the evidence could not be kept; how the
// attempts went is in the attempts.
func (r *Run) Wave(ctx context.Context, place plan.Lifecycle, wave plan.Wave) (record.Population, error) {
	c, err := r.serving(place)
	if err != nil {
		return record.Population{}, err
	}
	if r.broken != nil {
		return record.Population{}, fmt.Errorf("nothing more is run, since it could not be kept: %w", r.broken)
	}
	burst, err := r.burst(c, wave, r.Plan.Asked(place))
	if err != nil {
		return record.Population{}, err
	}
	var arrivals arrival.Schedule
	if wave.Open() {
		if arrivals, err = r.Plan.ArrivalsOf(wave); err != nil {
			return record.Population{}, err
		}
	}
	c.waves++
	burst.Executed, burst.OnOutcome = c.waves, r.progress.ended
	if r.progress.wave(r.Place(place)+": "+r.describe(wave), len(burst.Items)); wave.Open() {
		r.progress.step(r.Place(place) + ": " + r.describe(wave)) // which may take minutes
	}
	before := c.cut(0, pages{}) // written later: nothing is, before a sequence's first request
	kept, requests, around := r.release(ctx, burst, arrivals)
	r.asks.evaluate(r.Plan, requests)
	c.abandoned = load.Abandoned(requests)
	if kept.Status == "interrupted" {
		r.stopped = kept.Reason
	}
	if first, last, ok := load.Span(requests); ok {
		c.lifecycle.Served(first, last)
	}
	kept, requests, err = r.store.AppendWave(kept, requests)
	r.broken = err
	r.kept.Waves = append(r.kept.Waves, kept)
	r.kept.Requests = append(r.kept.Requests, requests...)
	r.broken = errors.Join(r.broken, r.watched(before), r.watched(c.cut(wave.Number, around)))
	return record.Run{Requests: requests}.Of(kept), r.broken
}

// serving is the lifecycle at a place of the schedule, whose server is up.
func (r *Run) serving(place plan.Lifecycle) (*running, error) {
	if c := r.current; c != nil && c.place.Number == place.Number {
		return c, nil
	}
	return nil, errors.New("the wave's server was not started: start its lifecycle first")
}

// burst is a wave about to be released on a server, for so many tokens.
func (r *Run) burst(c *running, wave plan.Wave, asked plan.Asked) (load.Burst, error) {
	items, err := r.items(c.place, wave, c.arm, asked)
	return load.Burst{
		Place: c.place, Wave: wave, Lane: asked.Lane, Client: c.client, Target: c.target, Items: items,
		Connect: r.Plan.Scaled(r.Plan.Timeouts.Connect), Timeout: r.Plan.Scaled(r.Plan.Timeouts.Request), Clock: c.lifecycle.Clock(),
	}, err
}

// release settles the server and releases a burst, or an open loop by its
// arrivals, or a sequence on a server that is fresh, and whose counters stand at
// zero: nothing is asked of it before its first request.
func (r *Run) release(ctx context.Context, b load.Burst, arrivals arrival.Schedule) (wave record.Wave, requests []record.Request, around pages) {
	watch := r.current.lifecycle.Watch()
	b.OnRelease = watch.Released
	if b.Wave.Requests > 0 {
		now := b.Clock.Now()
		b.Settle = record.Settle{Rule: "none", Method: "none", From: now, Until: now, Detail: "the server is fresh, and nothing was sent to it before"}
		watch.Bound()
		wave, requests = load.Sequence{Burst: b}.Release(ctx)
		around.why = "the server was fresh, and was not asked before its first request"
	} else {
		b.Settle = load.Settle(ctx, b.Clock, r.idleness(r.current))
		around.before, around.why = watch.Page(ctx, false)
		watch.Bound()
		if b.Wave.Open() {
			wave, requests = r.open(b, arrivals).Release(ctx)
		} else {
			wave, requests = b.Release(ctx)
		}
	}
	watch.Bound()
	var why string
	if around.after, why = watch.Page(ctx, true); around.after == nil {
		around.why = why
	}
	return wave, requests, around
}

func (r *Run) describe(w plan.Wave) string {
	switch {
	case w.Warmup:
		return fmt.Sprintf("warm-up request %d", w.Repeat)
	case w.Open():
		return record.Wave{Rate: w.Rate, Probe: w.Probe}.Loop()
	case w.Requests > 0:
		return fmt.Sprintf("the sequence of %d", w.Requests)
	default:
		return fmt.Sprintf("%s, repeat %d of %d", record.Clients(w.Tier), w.Repeat, r.Plan.Sweep.Repeats)
	}
}

func (r *Run) settleLimit() time.Duration {
	if r.Plan.Sweep.Settle.None {
		return 0
	}
	return r.Plan.Scaled(r.Plan.Sweep.Settle.Idle)
}

func (r *Run) idleness(c *running) load.Idleness {
	i := load.Idleness{Limit: r.settleLimit(), Poll: r.Plan.Timeouts.Poll.D(), Gone: c.lifecycle.Server().Done(), Abandoned: c.abandoned}
	if path := *c.arm.Engine.Metrics; path != "" {
		url, prepare := c.target.BaseURL+path, engine.Authorizer(c.lifecycle.Server())
		i.Gauges = func(ctx context.Context) (telemetry.Gauges, error) { return telemetry.ReadGauges(ctx, url, prepare) }
	} else {
		i.Probe = func(ctx context.Context) error {
			request, err := r.request(client.Params{Prompt: "Hi", MaxTokens: 1, TopP: 1})
			if err != nil {
				return err
			}
			return load.Probe(ctx, c.client, c.target, request, c.lifecycle.Clock(), r.settleLimit())
		}
	}
	return i
}

// items are a wave's requests: the prompts over and over by ordinal, the same
// in every wave of a lane and in both arms.
func (r *Run) items(place plan.Lifecycle, w plan.Wave, arm plan.Arm, asked plan.Asked) ([]load.Item, error) {
	var items []load.Item
	for ordinal := 1; ordinal <= w.Attempts(); ordinal++ {
		id, text := r.asks.at(place.Lane, ordinal)
		params := client.Params{
			Prompt: text, MaxTokens: asked.Tokens, Temperature: r.Plan.Temperature(), Seed: r.Plan.Seed,
			TopP: r.Plan.Sampling.TopP, RepetitionPenalty: r.Plan.Sampling.RepetitionPenalty,
			Exact: asked.Lane == plan.Fixed, TokenIDs: *arm.TokenIDs,
		}
		if r.asks.entries != nil {
			r.asks.entries.ask(ordinal, &params)
		}
		request, err := r.request(params)
		if err != nil {
			return nil, err
		}
		items = append(items, load.Item{PromptID: id, Request: request})
	}
	return items, nil
}

// path is where the plan's API is asked.
func (r *Run) path() string {
	if r.Plan.Workload.API == plan.Completions {
		return client.CompletionsPath
	}
	return client.ChatPath
}

// request asks the plan's model through the plan's API: a chat's one message is
// the prompt, unless it has messages.
func (r *Run) request(p client.Params) (client.Request, error) {
	p.Model = r.Plan.Model.ServedAs
	if r.Plan.Workload.API == plan.Completions {
		p.Messages = nil // the prompt is all that its one message says
		return client.NewCompletionRequest(p)
	}
	if len(p.Messages) == 0 {
		p.Messages = []client.Message{{Role: "user", Content: p.Prompt}}
	}
	p.Prompt = ""
	return client.NewChatRequest(p)
}

// Stop stops and removes the current server and keeps its lifecycle's record,
// with a line for each of its waves that was not run.
func (r *Run) Stop(ctx context.Context) error {
	r.stopping.Lock()
	defer r.stopping.Unlock()
	return r.stop(ctx)
}

func (r *Run) stop(ctx context.Context) error {
	c := r.current
	if c == nil {
		return nil
	}
	r.current = nil
	r.progress.lifecycle(r.Place(c.place) + ": stopping")
	l, err := c.lifecycle.Stop(ctx)
	err = errors.Join(err, r.watched(c.cut(0, pages{}))) // what was seen after the last wave
	status, reason := "not_selected", r.notSelected()
	switch {
	case l.Status == "ran" && r.stopped != "":
		l.Status, l.Error = "interrupted", r.stopped
		status, reason = "not_run", r.stopped
	case l.Status != "ran":
		status, reason = "not_run", "the lifecycle "+l.Status+": "+firstLine(l.Error)
	}
	return errors.Join(err, r.keepAbsent(c.place, status, reason), r.keep(l))
}

func (r *Run) notSelected() string {
	return fmt.Sprintf("the label filter %q did not select it", r.selection)
}

// keep appends a lifecycle with the counts of its own lines.
func (r *Run) keep(l record.Lifecycle) error {
	for _, w := range r.kept.Waves {
		if w.Lifecycle == l.Number {
			l.Waves++
		}
	}
	for _, q := range r.kept.Requests {
		if q.Lifecycle == l.Number {
			l.Requests++
		}
	}
	if l.Executed > 0 {
		l.EntriesSHA256 = r.kept.EntriesSHA256
	}
	l, err := r.store.AppendLifecycle(l)
	r.kept.Lifecycles = append(r.kept.Lifecycles, l)
	return err
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// keepAbsent writes a line for each wave of a place that has none yet.
func (r *Run) keepAbsent(place plan.Lifecycle, status, reason string) error {
	have := map[int]bool{}
	for _, w := range r.kept.Waves {
		if w.Lifecycle == place.Number {
			have[w.Number] = true
		}
	}
	var err error
	for _, w := range place.Waves {
		if have[w.Number] {
			continue
		}
		kept, _, appendErr := r.store.AppendWave(record.Wave{
			Lifecycle: place.Number, Arm: place.Arm, Number: w.Number, Tier: w.Tier, Repeat: w.Repeat, Warmup: w.Warmup,
			Lane: string(place.Lane), Requests: w.Requests,
			Rate: w.Rate, Seed: w.Seed, Arrivals: w.Arrivals, ArrivalsSHA256: w.ArrivalsSHA256,
			Status: status, Reason: reason, Nulls: load.AbsentNulls(reason),
		}, nil)
		r.kept.Waves = append(r.kept.Waves, kept)
		err = errors.Join(err, appendErr)
	}
	return err
}

// Finish writes down what did not run, derives everything else and writes it,
// once; later calls return the same.
func (r *Run) Finish() (reports.Bundle, error) {
	if r.finished {
		return r.bundle, r.finishErr
	}
	r.finished = true
	r.finishErr = r.leave()
	have := map[int]bool{}
	for _, l := range r.kept.Lifecycles {
		have[l.Number] = true
	}
	for _, place := range r.Schedule.Lifecycles {
		if !have[place.Number] {
			r.finishErr = errors.Join(r.finishErr, r.absent(place))
		}
	}
	r.bundle = reports.Derive(r.Plan, r.kept)
	r.finishErr = errors.Join(r.finishErr, r.bundle.Write(r.dir))
	return r.bundle, r.finishErr
}

// leave stops a lifecycle that nothing else did: a second interrupt has Ginkgo
// leave out, or no longer wait for, what would have.
func (r *Run) leave() error {
	r.stopping.Lock()
	defer r.stopping.Unlock()
	if r.current == nil {
		return nil
	}
	if r.stopped == "" {
		r.stopped = "the run ended while its server was up"
	}
	patience := r.timeouts().Stop.D() + 10*time.Second // a removal takes its time, too
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return r.stop(ctx)
}

// absent writes down a lifecycle that was never started.
func (r *Run) absent(place plan.Lifecycle) error {
	status, reason := "not_selected", r.notSelected()
	if why, ok := r.unstarted[place.Number]; ok {
		status, reason = "not_run", why
	} else if r.stopped != "" {
		status, reason = "not_run", "the run was stopped before it: "+r.stopped
	} else if r.selection == "" {
		status, reason = "not_run", "the run ended before it"
	}
	return errors.Join(r.keepAbsent(place, status, reason), r.keep(r.absentLifecycle(place, status, reason, 0)))
}

// absentLifecycle is the record of one of which nothing was seen.
func (r *Run) absentLifecycle(place plan.Lifecycle, status, reason string, executed int) record.Lifecycle {
	return record.Lifecycle{
		Executed: executed,
		Number:   place.Number, Pair: place.Pair, Position: place.Position, Arm: place.Arm, Lane: string(place.Lane), Engine: r.Plan.Arm(place.Arm).Engine.Kind(),
		Status: status, Error: reason, TimeScale: r.Plan.TimeScale,
		Moments: []record.Moment{}, Identity: map[string]record.Fact{}, Caches: map[string]record.Fact{},
		Nulls: map[string]string{"exit": reason, "log": reason, "identity": reason},
	}
}

// Seal closes the records and writes the sums, last of all. A bundle is sealed
// whatever happened: what is in it is evidence too.
func (r *Run) Seal() error {
	return errors.Join(r.store.Close(), reports.Seal(r.dir))
}

// All runs the whole schedule and returns its bundle, sealed but without a
// JUnit report. Failed lifecycles don't end it: they are evidence.
func (r *Run) All(ctx context.Context, dir string) (reports.Bundle, error) {
	if err := r.Begin(ctx, dir); err != nil {
		return reports.Bundle{}, err
	}
	var err error
	for _, place := range r.Remaining() {
		started := r.Start(ctx, place)
		for _, w := range place.Waves {
			if started == nil {
				_, waveErr := r.Wave(ctx, place, w)
				err = errors.Join(err, waveErr)
			}
		}
		if started == nil && r.Plan.Search != nil {
			_, searchErr := r.Search(ctx, place)
			err = errors.Join(err, searchErr)
		}
		err = errors.Join(err, r.Stop(context.WithoutCancel(ctx)))
	}
	b, finishErr := r.Finish()
	return b, errors.Join(err, finishErr, r.Seal())
}
