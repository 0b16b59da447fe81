package scheduler

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Job is one request as the scheduler sees it.
type Job struct {
	ID           int
	PromptTokens int // template included
	OutputTokens int // how many it will give
	Sample       int // which of Parameters.Answers it is, from 0, in the mode replay
}

// sequence is a job on its way.
type sequence struct {
	Job
	prefilled int // of PromptTokens and of tokens lost by preemption
	again     int // tokens to compute anew after a preemption
	given     int // output tokens
	pace      float64
	gone      bool
}

// incoming is a job that the front end has not passed on yet.
type incoming struct {
	Job
	at time.Duration
}

func (s *sequence) toPrefill() int { return s.PromptTokens + s.again - s.prefilled }
func (s *sequence) held() int      { return s.prefilled + s.given - s.again }

// needs is what the sequence will hold once its prompt is computed and the next
// token given.
func (s *sequence) needs() int { return s.held() + s.toPrefill() + 1 }

// Scheduler decides what each step does. It is not safe for several
// goroutines: its driver owns it.
type Scheduler struct {
	p           Parameters
	random      *rand.Rand
	incoming    []incoming
	free        time.Duration // when the front end is done with those it has passed on
	waiting     []*sequence
	running     []*sequence // in the order of admission
	giving      []*sequence // those that the step under way gives a token
	tokens      []Token
	stepping    bool
	warm        bool
	preemptions int
	generated   int
	prompted    int
}

// New makes an idle scheduler of valid parameters. The same seed and the same
// calls give the same steps.
func New(p Parameters, seed uint64) *Scheduler {
	return &Scheduler{p: p, random: rand.New(rand.NewPCG(seed, 1))}
}

// Add takes a job in, at its moment on the server's own clock: no step that
// begins earlier sees it. Jobs are added in the order of their moments.
func (s *Scheduler) Add(j Job, at time.Duration) {
	s.incoming = append(s.incoming, incoming{Job: j, at: at})
}

// passed is when the front end passes its next job on.
func (s *Scheduler) passed() time.Duration {
	dear := 1 + float64(s.p.Crowding*float64(len(s.running)))
	return max(s.incoming[0].at, s.free) + time.Duration(dear*float64(s.p.Admission))
}

// admit moves to the end of the queue what the front end has passed on by now.
func (s *Scheduler) admit(now time.Duration) {
	for len(s.incoming) > 0 && s.passed() <= now {
		s.free = s.passed()
		s.waiting = append(s.waiting, &sequence{Job: s.incoming[0].Job})
		s.incoming = slices.Delete(s.incoming, 0, 1)
	}
}

// Cancel forgets a job, wherever it is. One that is part of the step under way
// holds its place until the step's end, as on a real server, and gets no token
// from it.
func (s *Scheduler) Cancel(id int) {
	is := func(q *sequence) bool { return q.ID == id }
	s.incoming = slices.DeleteFunc(s.incoming, func(j incoming) bool { return j.ID == id })
	s.waiting = slices.DeleteFunc(s.waiting, is)
	if i := slices.IndexFunc(s.running, is); i >= 0 {
		s.running[i].gone = true
		if !s.stepping {
			s.clear()
		}
	}
}

func (s *Scheduler) clear() {
	s.running = slices.DeleteFunc(s.running, func(q *sequence) bool { return q.gone })
}

// Load is what the scheduler holds.
type Load struct {
	Running, Waiting int     // the front end's among the latter
	KVUsage          float64 // of the KV budget, 0 to 1
	Preemptions      int     // so far
	PromptTokens     int     // computed so far, each request's once
	GeneratedTokens  int     // so far
}

// Load reads the gauges and counters.
func (s *Scheduler) Load() Load {
	l := Load{Running: len(s.running), Waiting: len(s.incoming) + len(s.waiting), Preemptions: s.preemptions, PromptTokens: s.prompted, GeneratedTokens: s.generated}
	if s.p.Mode == Batching {
		held := 0
		for _, q := range s.running {
			held += q.held()
		}
		l.KVUsage = float64(held) / float64(s.p.KVTokens)
	}
	return l
}

// Begin begins a step at this moment of the server's clock and says how long it
// takes; it is false if there is nothing to do. The step is under way until
// End. If all that there is to do is with the front end, the step is to wait
// for it.
func (s *Scheduler) Begin(now time.Duration) (time.Duration, bool) {
	s.admit(now)
	s.giving = s.giving[:0]
	if len(s.running) == 0 && len(s.waiting) == 0 {
		if len(s.incoming) == 0 {
			return 0, false
		}
		return s.passed() - now, true
	}
	s.stepping = true
	switch s.p.Mode {
	case Replay:
		return s.replay(), true // its noise is the request's
	case Serial:
		return s.noisy(s.serial()), true
	default:
		return s.noisy(s.batch()), true
	}
}

func (s *Scheduler) serial() time.Duration {
	if len(s.running) == 0 {
		s.running = append(s.running, s.waiting[0])
		s.waiting = slices.Delete(s.waiting, 0, 1)
	}
	q := s.running[0]
	s.giving = append(s.giving, q)
	if q.prefilled == 0 {
		q.prefilled = q.PromptTokens
		return s.p.Prefill + time.Duration(q.PromptTokens)*s.p.PerPromptToken
	}
	return s.p.Step + time.Duration(len(s.waiting))*s.p.PerWaiting + s.cold(1)
}

func (s *Scheduler) batch() time.Duration {
	needed := s.preempt()
	budget := s.p.MaxStepTokens
	decoding, prompt := 0, 0
	compute := func(q *sequence) {
		n := 1
		if left := q.toPrefill(); left > 0 {
			n = min(left, budget)
			q.prefilled += n
			prompt += n
		} else {
			decoding++
		}
		budget -= n
		if q.toPrefill() == 0 {
			s.giving = append(s.giving, q)
		}
	}
	for _, q := range s.running {
		if budget == 0 {
			break
		}
		compute(q)
	}
	for len(s.waiting) > 0 && budget > 0 && len(s.running) < s.p.MaxSequences {
		q := s.waiting[0]
		if needed += q.needs(); needed > s.p.KVTokens && len(s.running) > 0 {
			break
		}
		s.waiting = slices.Delete(s.waiting, 0, 1)
		s.running = append(s.running, q)
		compute(q)
	}
	takes := s.p.Step + time.Duration(decoding)*s.p.PerSequence + time.Duration(len(s.waiting))*s.p.PerWaiting + s.cold(decoding)
	if prompt > 0 {
		takes += s.p.Prefill + time.Duration(prompt)*s.p.PerPromptToken
	}
	return takes
}

// preempt makes room for the tokens of the coming step and returns what those
// who stay need: who was admitted last goes back to the front of the queue and
// is computed anew, as vLLM does.
func (s *Scheduler) preempt() int {
	needed := 0
	for _, q := range s.running {
		needed += q.needs()
	}
	for len(s.running) > 1 && needed > s.p.KVTokens {
		last := s.running[len(s.running)-1]
		s.running = s.running[:len(s.running)-1]
		needed -= last.needs()
		last.prefilled, last.again = 0, last.given
		s.waiting = slices.Insert(s.waiting, 0, last)
		s.preemptions++
	}
	return needed
}

// cold is what the first decoding step of all costs extra.
func (s *Scheduler) cold(decoding int) time.Duration {
	if decoding == 0 || s.warm {
		return 0
	}
	s.warm = true
	return s.p.Cold
}

// Token is one token given to a job.
type Token struct {
	ID   int  // the job's
	Last bool // the job has all its tokens, and is gone
}

// End ends the step that is under way and returns the tokens that it gave, in
// the order of admission. The slice is the scheduler's own, until the next End.
func (s *Scheduler) End() []Token {
	s.stepping = false
	s.tokens = s.tokens[:0]
	for _, q := range s.giving {
		if q.gone {
			continue
		}
		if q.given == 0 {
			s.prompted += q.PromptTokens
		}
		q.given++
		s.generated++
		q.gone = q.given >= q.OutputTokens
		s.tokens = append(s.tokens, Token{ID: q.ID, Last: q.gone})
	}
	s.clear()
	return s.tokens
}

func (s *Scheduler) noisy(d time.Duration) time.Duration {
	return time.Duration(float64(d) * s.factor())
}

// factor is one draw of noise.
func (s *Scheduler) factor() float64 {
	return max(1+float64(s.p.Noise*s.random.NormFloat64()), 0.2)
}
