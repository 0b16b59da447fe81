package emulated_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"

	"assay/harness/client"
	"assay/harness/clock"
	"assay/harness/engine"
	"assay/harness/engine/emulated"
	"assay/harness/engine/emulated/scheduler"
	"assay/harness/plan"
	"assay/harness/record"
	"assay/harness/telemetry"
)

func config(set string, faults ...emulated.Fault) emulated.Config {
	return emulated.Config{Parameters: scheduler.Sets()[set], Name: set, Model: "m", Seed: 1, Scale: 200, Faults: faults}
}

func launch(t *testing.T, c emulated.Config) engine.Server {
	t.Helper()
	s, err := emulated.New(c).Launch(t.Context(), engine.Launch{Run: "r", Name: "01-x", Logs: io.Discard, Mark: func(engine.Moment) {}})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { NewWithT(t).Expect(s.Stop(context.Background())).To(Succeed()) })
	return s
}

func post(t *testing.T, url, body string) (int, map[string]any) {
	t.Helper()
	response, err := http.Post(url, "application/json", strings.NewReader(body))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	var out map[string]any
	NewWithT(t).Expect(json.NewDecoder(response.Body).Decode(&out)).To(Succeed())
	return response.StatusCode, out
}

// ask asks for so many tokens exactly.
func ask(t *testing.T, s engine.Server, prompt string, n int) record.Request {
	t.Helper()
	request, err := client.NewChatRequest(client.Params{Model: "m", Messages: []client.Message{{Role: "user", Content: prompt}}, MaxTokens: n, TopP: 1, TokenIDs: true, Exact: true})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	clk := clock.Start()
	before := clk.Read()
	raw := client.New().Dial(t.Context(), client.Target{BaseURL: s.URL()}).Do(t.Context(), clk, clk.Now(), 20*time.Second, request)
	var r record.Request
	raw.Decode(&r, &clock.Conversion{First: before, Last: clk.Read()})
	return r
}

func TestTheSamePromptGetsTheSameAnswerFromEveryServer(t *testing.T) {
	g := NewWithT(t)
	serial, batching := launch(t, config("t4-naive")), launch(t, config("t4-vllm"))
	a, b := ask(t, serial, "Why is the sky blue?", 20), ask(t, batching, "Why is the sky blue?", 20)
	g.Expect(a.Outcome).To(Equal(record.OK), "%v", a.Error)
	g.Expect(a.OutputTokenIDs).To(HaveLen(20))
	g.Expect(a.OutputTokenIDs).To(Equal(b.OutputTokenIDs))
	g.Expect(a.OutputText).To(Equal(b.OutputText))
	g.Expect(*a.InputTokens).To(Equal(*b.InputTokens))
	g.Expect(ask(t, serial, "Why is the sea blue?", 20).OutputTokenIDs).NotTo(Equal(a.OutputTokenIDs))
}

func TestACompletionIsItsPromptWithoutTheTemplate(t *testing.T) {
	g := NewWithT(t)
	s := launch(t, config("t4-vllm"))
	request, err := client.NewCompletionRequest(client.Params{Model: "m", Prompt: "Why is the sky blue?", MaxTokens: 20, TopP: 1, TokenIDs: true, Exact: true})
	g.Expect(err).NotTo(HaveOccurred())
	clk := clock.Start()
	var r record.Request
	client.New().Dial(t.Context(), client.Target{BaseURL: s.URL(), Path: client.CompletionsPath}).Do(t.Context(), clk, clk.Now(), 20*time.Second, request).Decode(&r, nil)
	g.Expect(r.Outcome).To(Equal(record.OK), "%v", r.Error)
	g.Expect(r.FinishReason).To(HaveValue(Equal("length")))
	g.Expect([]any{*r.OutputTokens, *r.OutputTokensSource, *r.UsageOutputTokens}).To(Equal([]any{20, record.SourceTokenIDs, 20}))
	g.Expect(r.Events).To(HaveLen(20))
	chat := ask(t, s, "Why is the sky blue?", 20)
	g.Expect(r.OutputText).NotTo(BeEmpty())
	g.Expect(*r.InputTokens).To(BeNumerically("<", *chat.InputTokens), "there is no template around it")
}

func TestTokenizeCountsAsTheModelDoes(t *testing.T) {
	g := NewWithT(t)
	s := launch(t, config("t4-vllm"))
	r := ask(t, s, "Why is the sky blue?", 50)
	_, out := post(t, s.URL()+"/tokenize", `{"prompt":"`+r.OutputText+`"}`)
	var ids []int
	for _, id := range out["tokens"].([]any) {
		ids = append(ids, int(id.(float64)))
	}
	g.Expect(ids).To(Equal(r.OutputTokenIDs))
}

func TestPlainAnswersAndTheOtherEndpoints(t *testing.T) {
	g := NewWithT(t)
	s := launch(t, config("t4-vllm"))
	status, chat := post(t, s.URL()+"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"Hi"}],"max_tokens":5}`)
	g.Expect(status).To(Equal(200))
	g.Expect(chat["usage"].(map[string]any)["completion_tokens"]).To(Equal(5.0))
	status, plain := post(t, s.URL()+"/v1/completions", `{"model":"m","prompt":"Hi","max_tokens":5,"return_token_ids":true}`)
	g.Expect(status).To(Equal(200))
	g.Expect(plain["choices"].([]any)[0].(map[string]any)["token_ids"]).To(HaveLen(5))
	id := s.Identity(t.Context())
	g.Expect(id["engine_version"].Provenance).To(Equal("emulated"))
	g.Expect(engine.Ask(t.Context(), s.URL())["models"].Value).To(Equal([]string{"m"}))
}

func TestGaugesShowWhatIsWaiting(t *testing.T) {
	g := NewWithT(t)
	c := config("t4-naive")
	c.Scale = 20
	s := launch(t, c)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { ask(t, s, "Tell me a story.", 40) })
	}
	gauges := func() telemetry.Gauges {
		read, err := telemetry.ReadGauges(t.Context(), s.URL()+"/metrics")
		g.Expect(err).NotTo(HaveOccurred())
		return read
	}
	g.Eventually(func() []int { now := gauges(); return []int{*now.Running, *now.Waiting} }).Should(Equal([]int{1, 3}))
	all.Wait()
	g.Eventually(func() bool { return gauges().Idle() }).Should(BeTrue())
	g.Expect(*gauges().Generated).To(Equal(160))
}

func TestItIsHealthyOnceItHasStartedUp(t *testing.T) {
	g := NewWithT(t)
	c := config("t4-vllm")
	c.Startup = 20 * time.Second // 100 ms
	s := launch(t, c)
	response, err := http.Get(s.URL() + "/health")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(response.StatusCode).To(Equal(503))
	var phases []engine.Phase
	g.Expect(engine.AwaitReady(t.Context(), s, engine.ReadyOptions{Poll: 5 * time.Millisecond, Mark: func(m engine.Moment) { phases = append(phases, m.Phase) }})).To(Succeed())
	g.Expect(phases).To(Equal([]engine.Phase{engine.FirstListening, engine.Ready}))
}

func TestADeclaredExitIsSeen(t *testing.T) {
	g := NewWithT(t)
	s := launch(t, config("t4-vllm", emulated.Fault{Kind: plan.FaultExit, After: 1}))
	g.Expect(ask(t, s, "one", 3).Outcome).To(Equal(record.OK))
	g.Expect(ask(t, s, "two", 3).Outcome).To(Equal(record.ConnectError))
	g.Eventually(s.Done()).Should(BeClosed())
	exit := s.Exit()
	g.Expect(*exit.Code).To(Equal(1))
	g.Expect(exit.Asked).To(BeFalse())
}

func TestNothingIsLeftAfterAStop(t *testing.T) {
	for name, faults := range map[string][]emulated.Fault{
		"while it streams":          nil,
		"while it stalls":           {{Kind: emulated.StallAfter, After: 1}},
		"while it holds headers":    {{Kind: emulated.SlowHeaders}},
		"after connections it cut":  {{Kind: emulated.Reset, After: 1}},
		"while it goes on for none": {{Kind: emulated.IgnoreDisconnect}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			before := gleak.Goroutines()
			s, err := emulated.New(config("t4-naive", faults...)).Launch(t.Context(), engine.Launch{Logs: io.Discard, Mark: func(engine.Moment) {}})
			g.Expect(err).NotTo(HaveOccurred())
			arrived := make(chan record.Request, 3)
			for range cap(arrived) {
				go func() { arrived <- ask(t, s, "Tell me a long story.", 2000) }()
			}
			metrics := s.URL() + "/metrics"
			if len(faults) == 0 {
				g.Eventually(func() *int { m, _ := telemetry.ReadGauges(t.Context(), metrics); return m.Waiting }).Should(HaveValue(Equal(2)))
			}
			g.Expect(s.Stop(t.Context())).To(Succeed())
			g.Expect(s.Stop(t.Context())).To(Succeed(), "twice is once")
			g.Expect(s.Done()).To(BeClosed())
			for range cap(arrived) {
				g.Expect((<-arrived).Outcome).NotTo(Equal(record.OK))
			}
			_, err = http.Get(s.URL() + "/health")
			g.Expect(err).To(HaveOccurred())
			http.DefaultClient.CloseIdleConnections()
			g.Eventually(gleak.Goroutines).WithTimeout(5 * time.Second).ShouldNot(gleak.HaveLeaked(before))
		})
	}
}

func TestAClientThatLeavesEndsItsRequestOrNot(t *testing.T) {
	for _, finish := range []bool{true, false} {
		g := NewWithT(t)
		c := config("t4-naive")
		c.Finish = finish
		s := launch(t, c)
		ctx, leave := context.WithCancel(t.Context())
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+"/v1/completions",
			strings.NewReader(`{"model":"m","prompt":"Hi","max_tokens":300,"ignore_eos":true,"stream":true}`))
		g.Expect(err).NotTo(HaveOccurred())
		response, err := http.DefaultClient.Do(request)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = response.Body.Read(make([]byte, 10))
		g.Expect(err).NotTo(HaveOccurred())
		leave()
		_ = response.Body.Close()
		idle := func() bool {
			m, err := telemetry.ReadGauges(t.Context(), s.URL()+"/metrics")
			g.Expect(err).NotTo(HaveOccurred())
			return m.Idle()
		}
		g.Eventually(idle).WithTimeout(10 * time.Second).Should(BeTrue())
		m, err := telemetry.ReadGauges(t.Context(), s.URL()+"/metrics")
		g.Expect(err).NotTo(HaveOccurred())
		if finish {
			g.Expect(*m.Generated).To(Equal(300))
		} else {
			g.Expect(*m.Generated).To(BeNumerically("<", 300))
		}
	}
}

func TestAWrongConfigurationIsRefusedWhole(t *testing.T) {
	g := NewWithT(t)
	c := emulated.Config{Scale: -1, Faults: []emulated.Fault{{Kind: "sing", Endpoint: "tea", Share: 2, Status: 200, Requests: []int{0}}}}
	e := emulated.New(c)
	_, err := e.Launch(t.Context(), engine.Launch{Logs: io.Discard, Mark: func(engine.Moment) {}})
	g.Expect(err).To(MatchError(engine.ErrUnavailable))
	for _, part := range []string{"no mode", "scale", "no name", `no fault "sing"`, `no endpoint "tea"`, "share of 2", "status 200", "count from 1"} {
		g.Expect(err).To(MatchError(ContainSubstring(part)))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = emulated.New(config("t4-vllm")).Launch(ctx, engine.Launch{Logs: io.Discard, Mark: func(engine.Moment) {}})
	g.Expect(err).To(MatchError(context.Canceled))
}

func TestThePageHasVLLMsNames(t *testing.T) {
	g := NewWithT(t)
	s := launch(t, config("t4-vllm"))
	g.Expect(ask(t, s, "one", 5).Outcome).To(Equal(record.OK))
	page := func() string {
		response, err := http.Get(s.URL() + "/metrics")
		g.Expect(err).NotTo(HaveOccurred())
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		g.Expect(err).NotTo(HaveOccurred())
		return string(text)
	}
	g.Eventually(page).Should(And(
		ContainSubstring(`vllm:time_to_first_token_seconds_count{engine="0",model_name="m"} 1`),
		ContainSubstring(`vllm:request_time_per_output_token_seconds_count{engine="0",model_name="m"} 1`),
		ContainSubstring(`vllm:e2e_request_latency_seconds_count{engine="0",model_name="m"} 1`),
		ContainSubstring(`vllm:request_success_total{engine="0",finished_reason="length",model_name="m"} 1`),
		ContainSubstring(`vllm:generation_tokens_total{engine="0",model_name="m"} 5`),
		ContainSubstring(`vllm:prompt_tokens_total{engine="0",model_name="m"} 25`), // the template's 24, and one
		ContainSubstring(`vllm:num_preemptions_total{engine="0",model_name="m"} 0`),
		ContainSubstring(`vllm:prefix_cache_queries_total`), ContainSubstring(`vllm:prefix_cache_hits_total`),
		ContainSubstring(`vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0`),
	))
}

func TestEveryFaultOfAPlanIsKnownHere(t *testing.T) {
	for _, kind := range plan.FaultKinds {
		NewWithT(t).Expect(emulated.Fault{Kind: kind}.Validate()).To(Succeed())
	}
}
