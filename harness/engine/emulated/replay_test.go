package emulated_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"assay/harness/engine"
	"assay/harness/engine/emulated"
	"assay/harness/telemetry"
)

// cycle is a replay's configuration with twelve prompts whose right answers are
// 100 to 111, but for the last two, which have the same.
func cycle(set string, faults ...emulated.Fault) emulated.Config {
	c := config(set, faults...)
	c.Scale = 5000
	for i := range 12 {
		c.Prompts = append(c.Prompts, fmt.Sprintf("What is %d + 100?\n", i))
		c.Answers = append(c.Answers, fmt.Sprint(min(i, 10)+100))
	}
	return c
}

// put asks a prompt, with more fields of the body.
func put(t *testing.T, s engine.Server, prompt, more string) seen {
	t.Helper()
	said, err := json.Marshal(prompt)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return stream(t, s, chatPath, fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":%s}],"stream":true,"stream_options":{"include_usage":true},"return_token_ids":true%s}`, said, more))
}

const (
	naturalLane = `,"max_tokens":96`
	fixedLane   = `,"max_tokens":96,"min_tokens":96,"ignore_eos":true`
)

func TestAReplayedAnswerIsAsLongAsDeclaredOrForced(t *testing.T) {
	for _, set := range []string{"rtx4090-eager", "rtx4090-compiled"} {
		t.Run(set, func(t *testing.T) {
			g := NewWithT(t)
			c := cycle(set)
			s := launch(t, c)
			for i, prompt := range c.Prompts {
				natural := put(t, s, prompt, naturalLane)
				g.Expect(natural).To(Equal(seen{
					status: 200, ids: natural.ids, text: natural.text, finish: "stop", usage: c.Parameters.Answers[i].Tokens, done: true,
				}))
				g.Expect(natural.ids).To(HaveLen(c.Parameters.Answers[i].Tokens))
				fixed := put(t, s, prompt, fixedLane)
				g.Expect(fixed).To(Equal(seen{status: 200, ids: fixed.ids, text: fixed.text, finish: "length", usage: 96, done: true}))
				g.Expect(fixed.ids).To(HaveLen(96))
				g.Expect(fixed.ids[:len(natural.ids)]).To(Equal(natural.ids))
			}
			g.Expect(len(put(t, s, "Not of the cycle.", naturalLane).ids)).To(BeElementOf(23, 38, 44, 62, 65))
			g.Expect(put(t, s, c.Prompts[0], `,"max_tokens":5`).finish).To(Equal("length"))
			g.Expect(put(t, s, strings.Repeat("much ", 16384), naturalLane).status).To(Equal(400))
		})
	}
}

// The server's own count of the time it took: what one request's tokens are
// late is added to no other's, at any scale.
func TestTheSumOfAReplayDoesNotDrift(t *testing.T) {
	g := NewWithT(t)
	c := cycle("rtx4090-compiled")
	c.Parameters.Noise = 0
	s := launch(t, c)
	const requests = 48
	var first, whole time.Duration
	for i := range requests {
		g.Expect(put(t, s, c.Prompts[i%12], naturalLane).status).To(Equal(200))
		first += c.Parameters.Answers[i%12].FirstToken
		whole += c.Parameters.Answers[i%12].Total
	}
	sum := func(of string) func() float64 {
		return func() float64 {
			response, err := http.Get(s.URL() + "/metrics")
			g.Expect(err).NotTo(HaveOccurred())
			defer response.Body.Close()
			page, err := io.ReadAll(response.Body)
			g.Expect(err).NotTo(HaveOccurred())
			_, rest, _ := strings.Cut(string(page), of+`_sum{engine="0",model_name="m"} `)
			value, err := strconv.ParseFloat(strings.SplitN(rest, "\n", 2)[0], 64)
			g.Expect(err).NotTo(HaveOccurred())
			return value
		}
	}
	g.Eventually(sum("vllm:e2e_request_latency_seconds")).Should(BeNumerically("~", whole.Seconds(), 1e-6))
	g.Expect(sum("vllm:time_to_first_token_seconds")()).To(BeNumerically("~", first.Seconds(), 1e-6))
}

func TestAReplayServesOneRequestAtATime(t *testing.T) {
	g := NewWithT(t)
	c := cycle("rtx4090-eager")
	c.Scale = 50
	s := launch(t, c)
	gauges := func() []int {
		m, err := telemetry.ReadGauges(t.Context(), s.URL()+"/metrics")
		g.Expect(err).NotTo(HaveOccurred())
		return []int{*m.Running, *m.Waiting}
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	// Ten thousand tokens are seven seconds of this machine's.
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+"/v1/completions", strings.NewReader(`{"model":"m","prompt":"Hi","max_tokens":10000,"ignore_eos":true,"stream":true}`))
	g.Expect(err).NotTo(HaveOccurred())
	response, err := http.DefaultClient.Do(request)
	g.Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	var all sync.WaitGroup
	var next seen
	all.Go(func() { next = put(t, s, c.Prompts[8], naturalLane) })
	g.Eventually(gauges).Should(Equal([]int{1, 1}))
	leave()
	all.Wait()
	g.Expect(next.ids).To(HaveLen(23))
	g.Eventually(gauges).Should(Equal([]int{0, 0}))
}

func TestAnAnswerBeginsWithTheRightOneInEveryArm(t *testing.T) {
	g := NewWithT(t)
	c := cycle("rtx4090-eager")
	c.Answers[1], c.Answers[2], c.Answers[3] = `{"name": "Zoë", "tags": ["\"a\"", "<b>"]}`, "", "a line of words"
	eager := launch(t, c)
	other := cycle("rtx4090-compiled")
	other.Answers = c.Answers
	compiled := launch(t, other)
	c.Answers = nil
	knowing := launch(t, c)
	first := map[int]string{}
	for i, prompt := range c.Prompts {
		said, without := put(t, eager, prompt, fixedLane), put(t, knowing, prompt, fixedLane)
		g.Expect(put(t, compiled, prompt, fixedLane)).To(Equal(said))
		right, rest := other.Answers[i], strings.SplitAfterN(without.text, " ", 2)[1]
		g.Expect(said.ids[1:]).To(Equal(without.ids[1:]))
		if right == "" {
			g.Expect(said).To(Equal(without))
			continue
		}
		g.Expect(said.text).To(Equal(right + " " + rest))
		g.Expect(without.text).NotTo(ContainSubstring(right))
		g.Expect(said.ids[0]).To(BeNumerically(">", 1_000_000), "above words and marks")
		if known, ok := first[said.ids[0]]; ok {
			g.Expect(known).To(Equal(right), "an id is one answer's")
		}
		first[said.ids[0]] = right
	}
	g.Expect(first).To(HaveLen(10), "prompts 11 and 12 have the same answer")

	// Without a stream, and on the other endpoint, it says the same.
	want := put(t, eager, c.Prompts[1], naturalLane)
	body := func(more string) string {
		return fmt.Sprintf(`{"model":"m","max_tokens":96,%s}`, fmt.Sprintf(more, strings.TrimSpace(c.Prompts[1])))
	}
	_, chatted := post(t, eager.URL()+chatPath, body(`"messages":[{"role":"user","content":%q}]`))
	g.Expect(chatted["choices"].([]any)[0].(map[string]any)["message"].(map[string]any)["content"]).To(Equal(want.text))
	_, completed := post(t, eager.URL()+"/v1/completions", body(`"prompt":%q`))
	g.Expect(completed["choices"].([]any)[0].(map[string]any)["text"]).To(Equal(want.text))
}

func TestAWrongAnswerIsTheRightOneKeptBack(t *testing.T) {
	g := NewWithT(t)
	c := cycle("rtx4090-compiled", emulated.Fault{Kind: emulated.WrongAnswer, Requests: []int{2}})
	s := launch(t, c)
	right, wrong, again := put(t, s, c.Prompts[4], naturalLane), put(t, s, c.Prompts[4], naturalLane), put(t, s, c.Prompts[4], naturalLane)
	g.Expect(right.text).To(HavePrefix("104 "))
	g.Expect(again).To(Equal(right))
	g.Expect(wrong.text).NotTo(ContainSubstring("104"))
	g.Expect(wrong.ids[0]).NotTo(Equal(right.ids[0]))
	right.text, right.ids = wrong.text, append(wrong.ids[:1:1], right.ids[1:]...)
	g.Expect(wrong).To(Equal(right), "nothing else is wrong with it")
}

func TestAShortAnswerIsOneTokenShortAndLooksWhole(t *testing.T) {
	g := NewWithT(t)
	c := cycle("rtx4090-compiled", emulated.Fault{Kind: emulated.ShortAnswer, Requests: []int{2}})
	s := launch(t, c)
	whole, short := put(t, s, c.Prompts[0], fixedLane), put(t, s, c.Prompts[0], fixedLane)
	g.Expect(whole.ids).To(HaveLen(96))
	g.Expect(short).To(Equal(seen{status: 200, ids: whole.ids[:95], text: short.text, finish: "length", usage: 95, done: true}))
	g.Expect(whole.text).To(HavePrefix(short.text + " "))
}

func TestAnswersThatDoNotFitThePromptsAreRefused(t *testing.T) {
	g := NewWithT(t)
	c := cycle("rtx4090-eager")
	g.Expect(c.Validate()).To(Succeed())
	c.Answers = c.Answers[:11]
	c.Parameters.Answers = nil
	g.Expect(c.Validate()).To(MatchError(And(ContainSubstring("11 right answers to 12 prompts"), ContainSubstring("no Answers to replay"))))
}
