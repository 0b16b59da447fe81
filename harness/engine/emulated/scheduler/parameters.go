package scheduler

import (
	"errors"
	"fmt"
	"maps"
	"time"
)

// Mode is how a server shares itself between requests.
type Mode string

// The modes.
const (
	Serial   Mode = "serial"   // one request at a time, in the order of arrival
	Batching Mode = "batching" // continuous batching: every step serves all that run
	Replay   Mode = "replay"   // one request at a time, each as long as is declared for its sample
)

// Parameters declare a server's timing. All times are the server's own, before
// any scaling. Decoding YAML into one of the shipped sets overrides what the
// YAML names.
type Parameters struct {
	Mode Mode `yaml:"mode"`
	// A batching step takes Step, plus PerSequence for each sequence that
	// decodes in it, plus Prefill if it holds any prompt, plus PerPromptToken
	// for each token of those, plus PerWaiting for each request that waits. A
	// serial server's step is either a prefill (Prefill and PerPromptToken) or
	// one decoded token (Step and PerWaiting).
	Step           time.Duration `yaml:"step"`
	PerSequence    time.Duration `yaml:"per_sequence"`
	Prefill        time.Duration `yaml:"prefill"`
	PerPromptToken time.Duration `yaml:"per_prompt_token"`
	PerWaiting     time.Duration `yaml:"per_waiting"`
	// Admission is what the server's front end (HTTP, template, tokenizer)
	// takes for each request, one after the other, before the request joins the
	// queue. Since the front end sends the tokens too, Crowding makes this
	// longer by its share for each sequence that runs.
	Admission time.Duration `yaml:"admission"`
	Crowding  float64       `yaml:"crowding"`
	// Cold is what the first decoding step of all takes longer.
	Cold time.Duration `yaml:"cold"`
	// Noise is the relative standard deviation of a step's time, up to 1.
	Noise float64 `yaml:"noise"`
	// MaxSequences, MaxStepTokens and KVTokens bound a batch: sequences that
	// run, tokens in a step (prompts are split), tokens held in the KV cache.
	// The serial mode has none of them.
	MaxSequences  int `yaml:"max_sequences"`
	MaxStepTokens int `yaml:"max_step_tokens"`
	KVTokens      int `yaml:"kv_tokens"`
	// ContextTokens bound a request: its prompt and its output together.
	ContextTokens int `yaml:"context_tokens"`
	// TemplateTokens are what the chat template adds to a prompt.
	TemplateTokens int `yaml:"template_tokens"`
	// OutputTokens are the natural lengths of the answers to a set's prompts,
	// in their order.
	OutputTokens []int `yaml:"output_tokens"`
	// Answers are, in the mode replay and in no other, the timing and the length
	// of the answers to a set's prompts, in their order. Noise is a whole
	// request's then, and of the rest only ContextTokens and TemplateTokens mean
	// anything.
	Answers []Answer `yaml:"answers"`
}

// Validate says everything that is wrong with the parameters at once, or
// returns nil.
func (p Parameters) Validate() error {
	var errs []error
	odd := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	odd(p.Mode != Serial && p.Mode != Batching && p.Mode != Replay, "there is no mode %q: write %s, %s or %s", p.Mode, Serial, Batching, Replay)
	for _, d := range []struct {
		name string
		time.Duration
	}{{"Step", p.Step}, {"PerSequence", p.PerSequence}, {"Prefill", p.Prefill}, {"PerPromptToken", p.PerPromptToken}, {"PerWaiting", p.PerWaiting}, {"Admission", p.Admission}, {"Cold", p.Cold}} {
		odd(d.Duration < 0, "%s of %s: a step can't be made shorter by it: write 0 or more", d.name, d.Duration)
	}
	odd(p.Step == 0 && p.Mode != Replay, "a Step of 0 takes no time: write more")
	odd(!(p.Crowding >= 0), "a Crowding of %g: write 0 or more", p.Crowding)
	odd(!(p.Noise >= 0 && p.Noise <= 1), "a Noise of %g: write 0 to 1", p.Noise)
	odd(p.ContextTokens < 2, "ContextTokens of %d hold no prompt and its answer: write 2 or more", p.ContextTokens)
	odd(p.TemplateTokens < 0 || p.TemplateTokens+2 > p.ContextTokens, "TemplateTokens of %d: write 0 or more, and leave a prompt and an answer room in ContextTokens, %d", p.TemplateTokens, p.ContextTokens)
	for i, n := range p.OutputTokens {
		odd(n < 1, "OutputTokens[%d] is %d: an answer has at least one token", i, n)
	}
	if p.Mode == Batching {
		odd(p.MaxSequences < 1, "MaxSequences of %d let nothing run: write 1 or more", p.MaxSequences)
		odd(p.MaxStepTokens < 1, "MaxStepTokens of %d let no step do anything: write 1 or more", p.MaxStepTokens)
		odd(p.KVTokens < p.ContextTokens, "KVTokens of %d don't hold one request of ContextTokens, %d: write at least as many", p.KVTokens, p.ContextTokens)
	}
	if p.Mode == Replay {
		errs = append(errs, p.validateReplay())
	} else {
		odd(len(p.Answers) > 0, "Answers are for the mode %s: leave them out of %q", Replay, p.Mode)
	}
	return errors.Join(errs...)
}

// Sets are the parameter sets that are shipped, by name: what a plan's
// `parameters` may be.
func Sets() map[string]Parameters {
	all := fitted()
	maps.Copy(all, replays())
	return all
}

// fitted are two sets that are fitted to one published run of a naive server
// and of vLLM 0.29.0 with Qwen2.5-1.5B-Instruct in FP16 on a Tesla T4; the fit
// is tested beside this file. That run's table says nothing of single requests:
// the lengths are such as give all of its tiers together, the first one being
// short because a lone client got fewer tokens a second than eight did.
func fitted() map[string]Parameters {
	lengths := []int{17, 72, 128, 93, 78, 98, 80, 100}
	return map[string]Parameters{
		"t4-naive": {
			Mode: Serial, Step: 42400 * time.Microsecond, PerWaiting: 152 * time.Microsecond, Prefill: 172 * time.Millisecond,
			Cold: 805 * time.Millisecond, Noise: 0.05, ContextTokens: 2048, TemplateTokens: 24, OutputTokens: lengths,
		},
		"t4-vllm": {
			Mode: Batching, Step: 14290 * time.Microsecond, PerSequence: 251 * time.Microsecond,
			Prefill: 10450 * time.Microsecond, PerPromptToken: 74 * time.Microsecond, Admission: 4130 * time.Microsecond, Crowding: 0.0276,
			Cold: 14 * time.Millisecond, Noise: 0.03,
			MaxSequences: 256, MaxStepTokens: 2048, KVTokens: 200_000, ContextTokens: 2048, TemplateTokens: 24, OutputTokens: lengths,
		},
	}
}
