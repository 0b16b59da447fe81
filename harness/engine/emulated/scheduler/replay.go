package scheduler

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Answer is the declared timing of one sample, in the mode Replay.
type Answer struct {
	FirstToken time.Duration `yaml:"first_token"` // from when the request is taken up
	Total      time.Duration `yaml:"total"`       // to the last of its Tokens
	Tokens     int           `yaml:"tokens"`
}

// validate says everything that is wrong with the answer of sample i.
func (a Answer) validate(i int) error {
	var errs []error
	odd := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf("Answers[%d] "+format, append([]any{i}, args...)...))
		}
	}
	odd(a.Tokens < 1, "has %d tokens: an answer has at least one", a.Tokens)
	odd(a.FirstToken <= 0, "has its first token after %s: write more than 0", a.FirstToken)
	odd(a.Total < a.FirstToken, "ends after %s, before its first token at %s: write a later end", a.Total, a.FirstToken)
	odd(a.Tokens > 1 && a.Total == a.FirstToken, "gives %d tokens at once: write a later end", a.Tokens)
	odd(a.Tokens == 1 && a.Total > a.FirstToken, "ends after %s, though its only token comes after %s: write the same", a.Total, a.FirstToken)
	return errors.Join(errs...)
}

// token is when token n comes, from 0, counted from when the request is taken
// up. Those after the first come evenly, so that an answer of Tokens ends
// exactly at Total; a longer or a shorter one keeps that pace.
func (a Answer) token(n int) time.Duration {
	if a.Tokens == 1 {
		return a.FirstToken * time.Duration(n+1) // nothing declares another pace
	}
	rest, steps := a.Total-a.FirstToken, time.Duration(a.Tokens-1)
	k := time.Duration(n)
	return a.FirstToken + rest/steps*k + rest%steps*k/steps
}

// replay is a step of the mode Replay: one request at a time, each as long as
// its sample's answer is declared, with one draw of noise a request.
func (s *Scheduler) replay() time.Duration {
	if len(s.running) == 0 {
		q := s.waiting[0]
		s.waiting = slices.Delete(s.waiting, 0, 1)
		q.prefilled, q.pace = q.PromptTokens, s.factor()
		s.running = append(s.running, q)
	}
	q := s.running[0]
	s.giving = append(s.giving, q)
	a := s.p.Answers[q.Sample%len(s.p.Answers)]
	d := a.token(q.given)
	if q.given > 0 {
		d -= a.token(q.given - 1)
	}
	return time.Duration(float64(d) * q.pace)
}

// validateReplay says what is wrong with the parameters of the mode Replay, and
// which of the others' would do nothing in it.
func (p Parameters) validateReplay() error {
	var errs []error
	if len(p.Answers) == 0 {
		errs = append(errs, errors.New("the mode replay has no Answers to replay: write one for each prompt of the cycle"))
	}
	for i, a := range p.Answers {
		errs = append(errs, a.validate(i))
	}
	for _, other := range []struct {
		name string
		set  bool
	}{
		{"Step", p.Step != 0}, {"PerSequence", p.PerSequence != 0}, {"Prefill", p.Prefill != 0}, {"PerPromptToken", p.PerPromptToken != 0},
		{"PerWaiting", p.PerWaiting != 0}, {"Admission", p.Admission != 0}, {"Crowding", p.Crowding != 0}, {"Cold", p.Cold != 0},
		{"OutputTokens", len(p.OutputTokens) > 0},
	} {
		if other.set {
			errs = append(errs, fmt.Errorf("%s beside Answers: these say all of the mode replay's timing and lengths: leave it out", other.name))
		}
	}
	return errors.Join(errs...)
}

// replays are sets that give again the requests of the published data set
// "Eager and compiled vLLM lifecycles, Qwen3-8B, one RTX 4090" (vLLM 0.28.0, one
// lifecycle of each): time to first token, latency and output tokens of each of
// its 12 requests, rounded to the nanosecond. The noise is this project's own.
func replays() map[string]Parameters {
	of := func(answers []Answer) Parameters {
		return Parameters{Mode: Replay, Noise: 0.01, ContextTokens: 16384, TemplateTokens: 24, Answers: answers}
	}
	return map[string]Parameters{
		"rtx4090-eager": of([]Answer{
			{242428541, 961775119, 23}, {162368059, 872763622, 23}, {160705090, 1539641465, 44}, {160468578, 1533183971, 44},
			{651166677, 1405143390, 23}, {655499935, 1403227207, 23}, {653272629, 1852564269, 38}, {651841640, 1851130420, 38},
			{1467258692, 2221443223, 23}, {1471797228, 2220444361, 23}, {1471116543, 3531850285, 62}, {1470794201, 3468422616, 62},
		}),
		"rtx4090-compiled": of([]Answer{
			{194006205, 571494132, 23}, {168796301, 545516662, 23}, {174119711, 911747245, 44}, {173050880, 910536112, 44},
			{658614397, 1053126833, 23}, {659760714, 1052065952, 23}, {656763315, 1429032856, 44}, {659701824, 1434246709, 44},
			{1473130226, 1889108313, 23}, {1472966433, 1888279884, 23}, {1473176479, 2680530658, 65}, {1473191023, 2680344796, 65},
		}),
	}
}
