package emulated_test

import (
	"bytes"
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
	request, err := client.NewChatRequest(client.ChatParams{Model: "m", Messages: []client.Message{{Role: "user", Content: prompt}}, MaxTokens: n, TopP: 1, TokenIDs: true, Exact: true})
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
	g := NewWithT(t)
	before := gleak.Goroutines()
	s, err := emulated.New(config("t4-naive")).Launch(t.Context(), engine.Launch{Logs: io.Discard, Mark: func(engine.Moment) {}})
	g.Expect(err).NotTo(HaveOccurred())
	done := make(chan record.Request)
	go func() { done <- ask(t, s, "Tell me a long story.", 2000) }()
	g.Eventually(func() *int { m, _ := telemetry.ReadGauges(t.Context(), s.URL()+"/metrics"); return m.Running }).Should(HaveValue(Equal(1)))
	g.Expect(s.Stop(t.Context())).To(Succeed())
	g.Expect(s.Stop(t.Context())).To(Succeed(), "twice is once")
	g.Expect((<-done).Outcome).NotTo(Equal(record.OK))
	_, err = http.Get(s.URL() + "/health")
	g.Expect(err).To(HaveOccurred())
	http.DefaultClient.CloseIdleConnections()
	g.Eventually(gleak.Goroutines).WithTimeout(5 * time.Second).ShouldNot(gleak.HaveLeaked(before))
}

func TestEveryFaultOfAPlanIsKnownHere(t *testing.T) {
	for _, kind := range plan.FaultKinds {
		NewWithT(t).Expect(emulated.Fault{Kind: kind}.Validate()).To(Succeed())
	}
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"model":"m","messages":[{"role":"user","content":"Hi"}],"max_tokens":2,"stream":true}`))
	f.Add([]byte(`{"model":"m","prompt":"x","max_completion_tokens":1,"min_tokens":-5}`))
	f.Add([]byte(`[]`))
	c := config("t4-vllm")
	c.Scale = 1e4
	s, err := emulated.New(c).Launch(f.Context(), engine.Launch{Logs: io.Discard, Mark: func(engine.Moment) {}})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = s.Stop(context.Background()) })
	f.Fuzz(func(t *testing.T, body []byte) {
		var asked struct {
			A int `json:"max_tokens"`
			B int `json:"max_completion_tokens"`
			C int `json:"min_tokens"`
		}
		if json.Unmarshal(body, &asked) == nil && max(asked.A, asked.B, asked.C) > 1000 {
			t.Skip("long answers are only slow")
		}
		for _, path := range []string{"/v1/chat/completions", "/v1/completions", "/tokenize"} {
			response, err := http.Post(s.URL()+path, "application/json", bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
	})
}
