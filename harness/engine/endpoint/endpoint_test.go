package endpoint_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"assay/harness/engine"
	"assay/harness/engine/endpoint"
)

func launch(t *testing.T, e *endpoint.Engine) engine.Server {
	t.Helper()
	s, err := e.Launch(t.Context(), engine.Launch{Mark: func(m engine.Moment) { t.Error("it can't have seen ", m.Phase) }})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return s
}

// gateway wants a key for everything, and serves /v1/models alone.
func gateway(t *testing.T, key string) string {
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Bearer "+key:
			http.Error(w, "no key", http.StatusUnauthorized)
		case r.URL.Path == "/v1/models":
			fmt.Fprint(w, `{"data":[{"id":"m"}]}`)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(h.Close)
	return h.URL
}

func TestAnEndpointIsNeitherStartedNorStopped(t *testing.T) {
	g := NewWithT(t)
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/version" {
			fmt.Fprint(w, `{"version":"0.22.1"}`)
		}
	}))
	defer h.Close()
	s := launch(t, endpoint.New(h.URL))
	var phases []engine.Phase
	g.Expect(engine.AwaitReady(t.Context(), s, engine.ReadyOptions{Poll: time.Millisecond, Mark: func(m engine.Moment) { phases = append(phases, m.Phase) }})).To(Succeed())
	g.Expect(phases).To(Equal([]engine.Phase{engine.FirstListening, engine.Ready}))
	g.Expect(s.Stop(t.Context())).To(Succeed())
	g.Expect(s.Done()).To(BeNil(), "a nil channel never closes")
	g.Expect(s.Exit().Code).To(BeNil())
	g.Expect(s.Exit().Asked).To(BeFalse(), "nobody here asked it to leave")
	g.Expect(s.Exit().Reason).NotTo(BeEmpty())

	id := s.Identity(t.Context())
	g.Expect(id["engine_version"].Value).To(Equal("0.22.1"))
	for name, f := range id {
		g.Expect(f.Value == nil).To(Equal(f.Reason != ""), "%s is a value or a reason: %+v", name, f)
		g.Expect(f.Value == nil).To(Equal(f.Provenance == ""), "%s: %+v", name, f)
	}
	g.Expect(id["image_digest"].Reason).To(ContainSubstring("somebody else"))
}

func TestAKeyGoesWithEveryQuestion(t *testing.T) {
	g := NewWithT(t)
	url := gateway(t, "s3cret")
	t.Setenv("ASSAY_TEST_KEY", "s3cret")
	s := launch(t, endpoint.New(url, endpoint.WithKeyFrom("ASSAY_TEST_KEY")))
	g.Expect(engine.AwaitReady(t.Context(), s, engine.ReadyOptions{Path: "/v1/models", Poll: time.Millisecond})).To(Succeed())
	id := s.Identity(t.Context())
	g.Expect(id["models"].Value).To(Equal([]string{"m"}))
	g.Expect(fmt.Sprint(id)).NotTo(ContainSubstring("s3cret"))
	g.Expect(launch(t, endpoint.New(url)).Identity(t.Context())["models"].Reason).To(ContainSubstring("401"))
}

func TestAnEmptyKeyIsSaidAtOnce(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("ASSAY_TEST_KEY", "")
	e := endpoint.New("http://127.0.0.1:1", endpoint.WithKeyFrom("ASSAY_TEST_KEY"))
	g.Expect(e.Check(t.Context())).To(MatchError(engine.ErrUnavailable))
	g.Expect(e.Check(t.Context())).To(MatchError(ContainSubstring("ASSAY_TEST_KEY")))
	_, err := e.Launch(t.Context(), engine.Launch{})
	g.Expect(err).To(MatchError(engine.ErrUnavailable))
	g.Expect(endpoint.New("http://127.0.0.1:1", endpoint.WithKeyFrom("")).Check(t.Context())).To(Succeed())
}

func TestTheBaseIsWhatComesBeforeV1(t *testing.T) {
	for given, want := range map[string]string{
		"http://h:1":            "http://h:1",
		"http://h:1/":           "http://h:1",
		"https://h/v1":          "https://h",
		"https://h/v1/":         "https://h",
		"https://h/llm/v1":      "https://h/llm",
		"https://h/serves/dev1": "https://h/serves/dev1",
	} {
		NewWithT(t).Expect(launch(t, endpoint.New(given)).URL()).To(Equal(want))
	}
}
