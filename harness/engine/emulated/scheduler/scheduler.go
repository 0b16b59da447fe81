package scheduler

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Mode is how a server shares itself between requests.
type Mode string

// The modes.
const (
	Serial   Mode = "serial"   // one request at a time, in the order of arrival
	Batching Mode = "batching" // continuous batching: every step serves all that run
)

// Parameters declare a server's timing. All times are the server's own, before
// any scaling.
type Parameters struct {
	Mode Mode
	// A step takes Step, plus PerSequence for each sequence that decodes in it,
	// plus Prefill if it holds any prompt, plus PerPromptToken for each token
	// of those, plus PerWaiting for each request that waits.
	Step           time.Duration
	PerSequence    time.Duration
	Prefill        time.Duration
	PerPromptToken time.Duration
	PerWaiting     time.Duration
	// Crowding makes a prompt's token dearer by this share for each sequence
	// that runs.
	Crowding float64
	// Cold is what the first decoding step of all takes longer.
	Cold time.Duration
	// Noise is the relative standard deviation of a step's time.
	Noise float64
	// MaxSequences, MaxStepTokens and KVTokens bound a batch: sequences that
	// run, tokens in a step (prompts are split), tokens held in the KV cache.
	// The serial mode has none of them.
	MaxSequences  int
	MaxStepTokens int
	KVTokens      int
	// TemplateTokens are what the chat template adds to a prompt.
	TemplateTokens int
	// OutputTokens are the natural lengths of the answers to a set's prompts,
	// in their order.
	OutputTokens []int
}

// Sets are the parameter sets that are shipped, by name: what a plan's
// `parameters` may be. Both are fitted to one published run of a naive server
// and of vLLM 0.29.0 with Qwen2.5-1.5B-Instruct in FP16 on a Tesla T4; the fit
// is tested beside this file.
func Sets() map[string]Parameters {
	lengths := []int{62, 75, 128, 96, 54, 88, 67, 118}
	return map[string]Parameters{
		"t4-naive": {
			Mode: Serial, Step: 42600 * time.Microsecond, PerWaiting: 130 * time.Microsecond, Prefill: 170 * time.Millisecond,
			Cold: 3 * time.Second, Noise: 0.05, TemplateTokens: 24, OutputTokens: lengths,
		},
		"t4-vllm": {
			Mode: Batching, Step: 14400 * time.Microsecond, PerSequence: 245 * time.Microsecond,
			Prefill: 20800 * time.Microsecond, PerPromptToken: 78 * time.Microsecond, Crowding: 0.02,
			Noise: 0.03, MaxSequences: 256, MaxStepTokens: 2048, KVTokens: 200_000, TemplateTokens: 24, OutputTokens: lengths,
		},
	}
}

// Job is one request as the scheduler sees it.
type Job struct {
	ID           int
	PromptTokens int // template included
	OutputTokens int // how many it will give
}

// sequence is a job on its way.
type sequence struct {
	Job
	prefilled int // of PromptTokens and of tokens lost by preemption
	again     int // tokens to compute anew after a preemption
	given     int // output tokens
}

func (s *sequence) toPrefill() int { return s.PromptTokens + s.again - s.prefilled }
func (s *sequence) held() int      { return s.prefilled + s.given - s.again }

// Scheduler decides what each step does. It is not safe for several
// goroutines: its driver owns it.
type Scheduler struct {
	p           Parameters
	random      *rand.Rand
	waiting     []*sequence
	running     []*sequence // in the order of admission
	warm        bool
	preemptions int
	generated   int
	prompted    int
}

// New makes an idle scheduler. The same seed and the same calls give the same
// steps.
func New(p Parameters, seed uint64) *Scheduler {
	return &Scheduler{p: p, random: rand.New(rand.NewPCG(seed, 1))}
}

// Add puts a job at the end of the queue.
func (s *Scheduler) Add(j Job) { s.waiting = append(s.waiting, &sequence{Job: j}) }

// Cancel forgets a job, wherever it is. It is called between steps.
func (s *Scheduler) Cancel(id int) {
	is := func(q *sequence) bool { return q.ID == id }
	s.waiting = slices.DeleteFunc(s.waiting, is)
	s.running = slices.DeleteFunc(s.running, is)
}

// Load is what the scheduler holds.
type Load struct {
	Running, Waiting int
	KVUsage          float64 // of the KV budget, 0 to 1
	Preemptions      int     // so far
	PromptTokens     int     // so far
	GeneratedTokens  int     // so far
}

// Load reads the gauges and counters.
func (s *Scheduler) Load() Load {
	l := Load{Running: len(s.running), Waiting: len(s.waiting), Preemptions: s.preemptions, PromptTokens: s.prompted, GeneratedTokens: s.generated}
	if s.p.KVTokens > 0 {
		l.KVUsage = float64(s.kv()) / float64(s.p.KVTokens)
	}
	return l
}

func (s *Scheduler) kv() int {
	n := 0
	for _, q := range s.running {
		n += q.held()
	}
	return n
}

// Step is one step of the server: how long it takes, and which jobs give a
// token at its end. A job is named in Done too with its last token.
type Step struct {
	Takes time.Duration
	Gives []int
	Done  []int
}

// Next does one step. It is false if there is nothing to do.
func (s *Scheduler) Next() (Step, bool) {
	if s.p.Mode == Serial {
		return s.serial()
	}
	return s.batch()
}

func (s *Scheduler) serial() (Step, bool) {
	if len(s.running) == 0 {
		if len(s.waiting) == 0 {
			return Step{}, false
		}
		s.running, s.waiting = s.waiting[:1:1], s.waiting[1:]
	}
	q := s.running[0]
	takes := s.p.Step + time.Duration(len(s.waiting))*s.p.PerWaiting
	if q.prefilled == 0 {
		takes = s.p.Prefill + time.Duration(q.PromptTokens)*s.p.PerPromptToken
		q.prefilled = q.PromptTokens
		s.prompted += q.PromptTokens
	} else if !s.warm {
		takes += s.p.Cold
		s.warm = true
	}
	step := Step{Takes: s.noisy(takes)}
	s.give(&step, q)
	return step, true
}

func (s *Scheduler) batch() (Step, bool) {
	if len(s.running) == 0 && len(s.waiting) == 0 {
		return Step{}, false
	}
	s.preempt()
	budget := s.p.MaxStepTokens
	var gives []*sequence
	decoding, prompt := 0, 0
	prefill := func(q *sequence) {
		n := min(q.toPrefill(), budget)
		q.prefilled += n
		prompt += n
		budget -= n
		if q.toPrefill() == 0 {
			gives = append(gives, q)
		}
	}
	for _, q := range s.running {
		if budget == 0 {
			break
		}
		if q.toPrefill() > 0 {
			prefill(q)
			continue
		}
		decoding++
		budget--
		gives = append(gives, q)
	}
	for len(s.waiting) > 0 && budget > 0 && len(s.running) < s.p.MaxSequences {
		q := s.waiting[0]
		if s.kv()+len(s.running)+q.toPrefill()+1 > s.p.KVTokens && len(s.running) > 0 {
			break
		}
		s.waiting = s.waiting[1:]
		s.running = append(s.running, q)
		prefill(q)
	}
	takes := s.p.Step + time.Duration(decoding)*s.p.PerSequence + time.Duration(len(s.waiting))*s.p.PerWaiting
	if prompt > 0 {
		dear := 1 + float64(s.p.Crowding*float64(len(s.running)))
		takes += s.p.Prefill + time.Duration(float64(prompt)*dear*float64(s.p.PerPromptToken))
	}
	if decoding > 0 && !s.warm {
		takes += s.p.Cold
		s.warm = true
	}
	s.prompted += prompt
	step := Step{Takes: s.noisy(takes)}
	for _, q := range gives {
		s.give(&step, q)
	}
	return step, true
}

// preempt makes room for the tokens of the coming step: who was admitted last
// goes back to the front of the queue and is computed anew, as vLLM does.
func (s *Scheduler) preempt() {
	for len(s.running) > 1 && s.kv()+len(s.running) > s.p.KVTokens {
		last := s.running[len(s.running)-1]
		s.running = s.running[:len(s.running)-1]
		last.prefilled, last.again = 0, last.given
		s.waiting = append([]*sequence{last}, s.waiting...)
		s.preemptions++
	}
}

func (s *Scheduler) give(step *Step, q *sequence) {
	q.given++
	s.generated++
	step.Gives = append(step.Gives, q.ID)
	if q.given >= q.OutputTokens {
		step.Done = append(step.Done, q.ID)
		s.running = slices.DeleteFunc(s.running, func(r *sequence) bool { return r == q })
	}
}

func (s *Scheduler) noisy(d time.Duration) time.Duration {
	factor := 1 + float64(s.p.Noise*s.random.NormFloat64())
	return time.Duration(float64(d) * max(factor, 0.2))
}
