package emulated_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"assay/harness/engine"
	"assay/harness/engine/emulated"
)

// seen is what a client saw of a streamed answer.
type seen struct {
	status int
	ids    []int
	text   string
	finish string
	usage  int
	done   bool
	broken bool // an event that is no JSON, or an error
	err    error
}

func stream(t *testing.T, s engine.Server, path, body string) seen {
	t.Helper()
	response, err := http.Post(s.URL()+path, "application/json", strings.NewReader(body))
	if err != nil {
		return seen{err: err}
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	out := seen{status: response.StatusCode, err: err}
	for _, event := range strings.Split(string(data), "\n\n") {
		said, ok := strings.CutPrefix(event, "data: ")
		if !ok {
			continue
		}
		if said == "[DONE]" {
			out.done = true
			continue
		}
		var e struct {
			Choices []struct {
				Delta  struct{ Content string }
				Text   string
				Finish string `json:"finish_reason"`
				IDs    []int  `json:"token_ids"`
			}
			Usage *struct {
				Output int `json:"completion_tokens"`
			}
			Error any
		}
		if json.Unmarshal([]byte(said), &e) != nil || e.Error != nil {
			out.broken = true
			continue
		}
		if e.Usage != nil {
			out.usage = e.Usage.Output
		}
		for _, c := range e.Choices {
			out.ids = append(out.ids, c.IDs...)
			out.text += c.Delta.Content + c.Text
			out.finish += c.Finish
		}
	}
	return out
}

const (
	chatPath = "/v1/chat/completions"
	chat     = `{"model":"m","messages":[{"role":"user","content":"Hi"}],"max_tokens":6,"ignore_eos":true,"stream":true,"stream_options":{"include_usage":true},"return_token_ids":true}`
	plain    = `{"model":"m","prompt":"Hi","max_tokens":6,"ignore_eos":true,"stream":true,"stream_options":{"include_usage":true},"return_token_ids":true}`
)

func TestFaultsDoWhatTheyAreCalled(t *testing.T) {
	whole := stream(t, launch(t, config("t4-vllm")), chatPath, chat)
	NewWithT(t).Expect(whole.ids).To(HaveLen(6))
	NewWithT(t).Expect(whole).To(Equal(seen{status: 200, ids: whole.ids, text: whole.text, finish: "length", usage: 6, done: true}))
	short := whole.ids[:3]
	for _, c := range []struct {
		fault emulated.Fault
		check func(g *WithT, s seen)
	}{
		{emulated.Fault{Kind: emulated.Refuse}, func(g *WithT, s seen) { g.Expect(s.err).To(HaveOccurred()); g.Expect(s.status).To(Equal(0)) }},
		{emulated.Fault{Kind: emulated.StallBefore, For: 20 * time.Second}, func(g *WithT, s seen) { g.Expect(s).To(Equal(whole)) }},
		{emulated.Fault{Kind: emulated.StallAfter, After: 3, For: 20 * time.Second}, func(g *WithT, s seen) { g.Expect(s).To(Equal(whole)) }},
		{emulated.Fault{Kind: emulated.SlowHeaders, For: 20 * time.Second}, func(g *WithT, s seen) { g.Expect(s).To(Equal(whole)) }},
		{emulated.Fault{Kind: emulated.Cut, After: 3}, func(g *WithT, s seen) {
			g.Expect(s.ids).To(Equal(short))
			g.Expect(s.err).To(MatchError(io.ErrUnexpectedEOF))
		}},
		{emulated.Fault{Kind: emulated.Reset, After: 3}, func(g *WithT, s seen) { g.Expect(s.err).To(MatchError(ContainSubstring("reset"))) }},
		{emulated.Fault{Kind: emulated.ErrorEvent, After: 3}, func(g *WithT, s seen) {
			g.Expect(s).To(Equal(seen{status: 200, ids: short, text: s.text, broken: true}))
		}},
		{emulated.Fault{Kind: emulated.Malformed, After: 3}, func(g *WithT, s seen) {
			g.Expect(s).To(Equal(seen{status: 200, ids: short, text: s.text, broken: true}))
		}},
		{emulated.Fault{Kind: emulated.WrongUsage}, func(g *WithT, s seen) { g.Expect(s.ids).To(HaveLen(6)); g.Expect(s.usage).To(Equal(13)) }},
		{emulated.Fault{Kind: emulated.HTTPStatus, Status: 429}, func(g *WithT, s seen) { g.Expect(s.status).To(Equal(429)) }},
		{emulated.Fault{Kind: emulated.HTTPStatus}, func(g *WithT, s seen) { g.Expect(s.status).To(Equal(500)) }},
		{emulated.Fault{Kind: emulated.NoDone}, func(g *WithT, s seen) {
			g.Expect(s).To(Equal(seen{status: 200, ids: whole.ids, text: whole.text}))
		}},
		{emulated.Fault{Kind: emulated.MissingDone}, func(g *WithT, s seen) {
			g.Expect(s).To(Equal(seen{status: 200, ids: whole.ids, text: whole.text, finish: "length", usage: 6}))
		}},
		{emulated.Fault{Kind: emulated.NoFinish}, func(g *WithT, s seen) {
			g.Expect(s).To(Equal(seen{status: 200, ids: whole.ids, text: whole.text, usage: 6, done: true}))
		}},
		{emulated.Fault{Kind: emulated.RepeatToken, After: 2}, func(g *WithT, s seen) {
			g.Expect(s.ids).To(Equal(append(append([]int{}, whole.ids[:3]...), whole.ids[2:]...)))
			g.Expect(s.usage).To(Equal(6))
		}},
		{emulated.Fault{Kind: emulated.OtherText}, func(g *WithT, s seen) {
			g.Expect(s.ids).To(HaveLen(6))
			g.Expect(s.ids).NotTo(Equal(whole.ids))
			g.Expect(s.text).NotTo(Equal(whole.text))
		}},
		{emulated.Fault{Kind: emulated.Exit}, func(g *WithT, s seen) { g.Expect(s.err).To(HaveOccurred()) }},
	} {
		t.Run(c.fault.Kind, func(t *testing.T) {
			c.check(NewWithT(t), stream(t, launch(t, config("t4-vllm", c.fault)), chatPath, chat))
		})
	}
}

func TestAFaultBefallsThoseItSelects(t *testing.T) {
	failed := func(n int, f emulated.Fault) (which []int) {
		f.Kind = emulated.HTTPStatus
		s := launch(t, config("t4-vllm", f))
		for i := range n {
			path, body := chatPath, chat
			if i%2 == 1 {
				path, body = "/v1/completions", plain
			}
			if stream(t, s, path, body).status != 200 {
				which = append(which, i+1)
			}
		}
		return which
	}
	g := NewWithT(t)
	g.Expect(failed(4, emulated.Fault{})).To(Equal([]int{1, 2, 3, 4}))
	g.Expect(failed(4, emulated.Fault{Requests: []int{2, 3}})).To(Equal([]int{2, 3}))
	g.Expect(failed(4, emulated.Fault{Endpoint: emulated.Chat})).To(Equal([]int{1, 3}))
	g.Expect(failed(4, emulated.Fault{Endpoint: emulated.Completions, Requests: []int{1, 2}})).To(Equal([]int{2}))
	drawn := failed(40, emulated.Fault{Share: 0.5})
	g.Expect(len(drawn)).To(And(BeNumerically(">", 8), BeNumerically("<", 32)))
	g.Expect(failed(40, emulated.Fault{Share: 0.5})).To(Equal(drawn), "the seed decides")
}

func TestFaultsAddUp(t *testing.T) {
	g := NewWithT(t)
	s := launch(t, config("t4-vllm", emulated.Fault{Kind: emulated.IgnoreDisconnect}, emulated.Fault{Kind: emulated.WrongUsage}, emulated.Fault{Kind: emulated.Exit, After: 1}))
	g.Expect(stream(t, s, chatPath, chat).usage).To(Equal(13))
	g.Expect(stream(t, s, chatPath, chat).err).To(HaveOccurred())
	g.Eventually(s.Done()).Should(BeClosed())
	g.Expect(s.Exit().LastLines).To(HaveLen(1))
}

func TestAnAnswerThatIsNotStreamedFailsToo(t *testing.T) {
	body := `{"model":"m","prompt":"Hi","max_tokens":4,"ignore_eos":true}`
	for kind, outcome := range map[string]string{emulated.Cut: "EOF", emulated.Malformed: "a decl", emulated.ErrorEvent: `"error"`, emulated.NoFinish: `"finish_reason":null`} {
		t.Run(kind, func(t *testing.T) {
			s := launch(t, config("t4-vllm", emulated.Fault{Kind: kind, After: 2}))
			response, err := http.Post(s.URL()+"/v1/completions", "application/json", strings.NewReader(body))
			if err != nil {
				NewWithT(t).Expect(err).To(MatchError(ContainSubstring(outcome)))
				return
			}
			defer response.Body.Close()
			said, _ := io.ReadAll(response.Body)
			NewWithT(t).Expect(string(said)).To(ContainSubstring(outcome))
		})
	}
}
