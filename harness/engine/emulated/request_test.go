package emulated_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"assay/harness/engine"
	"assay/harness/engine/emulated"
)

func TestRequestsAreRefusedWithEveryMistake(t *testing.T) {
	s := launch(t, config("t4-vllm"))
	for _, c := range []struct {
		path, body string
		status     int
		says       []string
	}{
		{chatPath, `{"model":"other","max_tokens":0,"n":2}`, 400, []string{"other", "messages", "max_tokens", "n is 2"}},
		{chatPath, `{"model":"other","messages":[{"role":"user","content":"Hi"}]}`, 404, []string{`"other" does not exist`}},
		{chatPath, `{"model":"m","messages":[{"role":"user","content":"Hi"}],"max_tokens":3000}`, 400, []string{"more than the 2048"}},
		{chatPath, `{"model":"m","messages":[{"role":"user","content":"Hi"}],"max_tokens":9223372036854775807}`, 400, []string{"more than the 2048"}},
		{chatPath, `{"model":"m","messages":[{"role":"user","content":"Hi"}],"max_tokens":3,"min_tokens":4}`, 400, []string{"min_tokens is 4"}},
		{chatPath, `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url"}]}]}`, 400, []string{"image_url"}},
		{chatPath, `{"model":"m","messages":[{"role":"user","content":"Hi"}]} and more`, 400, []string{"no request"}},
		{"/v1/completions", `{"model":"m"}`, 400, []string{"prompt"}},
		{"/v1/completions", `{"model":"m","prompt":["a","b"]}`, 400, []string{"2 prompts"}},
		{"/tokenize", `[]`, 400, []string{"no request"}},
		{"/tokenize", `{"prompt":"` + strings.Repeat("a", 5<<20) + `"}`, 413, []string{"too large"}},
	} {
		t.Run(c.body[:min(len(c.body), 60)], func(t *testing.T) {
			g := NewWithT(t)
			status, out := post(t, s.URL()+c.path, c.body)
			g.Expect(status).To(Equal(c.status))
			for _, part := range c.says {
				g.Expect(out["error"].(map[string]any)["message"]).To(ContainSubstring(part))
			}
		})
	}
}

func TestPromptsAreReadInEveryFormThatTheyHave(t *testing.T) {
	g := NewWithT(t)
	s := launch(t, config("t4-vllm"))
	said := func(path, body string) string {
		_, out := post(t, s.URL()+path, body)
		choice := out["choices"].([]any)[0].(map[string]any)
		if message, ok := choice["message"].(map[string]any); ok {
			return message["content"].(string)
		}
		return choice["text"].(string)
	}
	want := said(chatPath, `{"model":"m","messages":[{"role":"user","content":"ba be"}],"max_tokens":5}`)
	g.Expect(strings.Fields(want)).To(HaveLen(5))
	for _, prompt := range []string{`"ba be"`, `["ba be"]`, `[0,26]`} {
		g.Expect(said("/v1/completions", `{"model":"m","max_tokens":5,"prompt":`+prompt+`}`)).To(Equal(want), prompt)
	}
	g.Expect(said(chatPath, `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"ba be"}]}],"max_completion_tokens":5}`)).To(Equal(want))
}

func TestThePromptIsCountedAsItIsTokenized(t *testing.T) {
	g := NewWithT(t)
	s := launch(t, config("t4-vllm"))
	messages := `"messages":[{"role":"user","content":"How are you?"}]`
	_, counted := post(t, s.URL()+"/tokenize", `{"model":"m",`+messages+`}`)
	_, answered := post(t, s.URL()+chatPath, `{"model":"m","max_tokens":2,"return_token_ids":true,`+messages+`}`)
	g.Expect(counted["count"]).To(Equal(27.0), "the template's 24, and three words")
	g.Expect(answered["prompt_token_ids"]).To(Equal(counted["tokens"]))
	g.Expect(answered["usage"].(map[string]any)["prompt_tokens"]).To(Equal(27.0))
	_, bare := post(t, s.URL()+"/tokenize", `{"prompt":"How are you?"}`)
	g.Expect(bare["count"]).To(Equal(3.0))
}

func TestAnAnswerIsAsLongAsDeclared(t *testing.T) {
	g := NewWithT(t)
	c := config("t4-vllm")
	c.Parameters.OutputTokens = []int{3, 9}
	c.Prompts = []string{"first", "second"}
	s := launch(t, c)
	for _, q := range []struct {
		prompt, more string
		tokens       int
		reason       string
	}{
		{"first", ``, 3, "stop"}, {"second", ``, 9, "stop"}, {"second", `,"max_tokens":5`, 5, "length"},
		{"first", `,"max_tokens":5,"min_tokens":4`, 4, "stop"}, {"first", `,"max_tokens":5,"ignore_eos":true`, 5, "length"},
	} {
		_, out := post(t, s.URL()+chatPath, fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":%q}]%s}`, q.prompt, q.more))
		g.Expect(out["usage"].(map[string]any)["completion_tokens"]).To(Equal(float64(q.tokens)), "%v", q)
		g.Expect(out["choices"].([]any)[0].(map[string]any)["finish_reason"]).To(Equal(q.reason), "%v", q)
	}
}

func TestAModelsNameMayHoldAnything(t *testing.T) {
	g := NewWithT(t)
	c := config("t4-vllm")
	c.Model = `a "model" \ of mine`
	s := launch(t, c)
	name, err := json.Marshal(c.Model)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(stream(t, s, "/v1/completions", strings.Replace(plain, `"m"`, string(name), 1)).ids).To(HaveLen(6))
}

func TestNothingIsServedBeforeTheStartUpIsOver(t *testing.T) {
	c := config("t4-vllm")
	c.Startup = time.Hour
	c.Scale = 1
	NewWithT(t).Expect(stream(t, launch(t, c), chatPath, chat).status).To(Equal(503))
}

// FuzzRequest holds that a body is answered with tokens or refused, whatever it
// is, and never with a failure of the server's own.
func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"model":"m","messages":[{"role":"user","content":"Hi"}],"max_tokens":2,"stream":true}`))
	f.Add([]byte(`{"model":"m","prompt":"x","max_completion_tokens":1,"min_tokens":-5}`))
	f.Add([]byte(`{"model":"m","prompt":[1,-2],"n":1,"stream_options":null}`))
	f.Add([]byte(`{"messages":[{"content":[{"type":"text"}]}]}`))
	f.Add([]byte(`[]`))
	c := config("t4-vllm")
	c.Scale = 1e6
	s, err := emulated.New(c).Launch(f.Context(), engine.Launch{Logs: io.Discard, Mark: func(engine.Moment) {}})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = s.Stop(context.Background()) })
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, path := range []string{chatPath, "/v1/completions", "/tokenize"} {
			response, err := http.Post(s.URL()+path, "application/json", bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
			if !slices.Contains([]int{200, 400, 404, 413}, response.StatusCode) {
				t.Fatalf("%s answered %s", path, response.Status)
			}
		}
	})
}
