package telemetry_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"

	"assay/harness/telemetry"
)

func page(t *testing.T, text string) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }))
	t.Cleanup(server.Close)
	return server.URL
}

func TestGaugesAreAddedOverLabels(t *testing.T) {
	g := NewWithT(t)
	url := page(t, `# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 2.0
vllm:num_requests_running{engine="1",model_name="m"} 3.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0"} 0
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{engine="0"} 1e3
`)
	gauges, err := telemetry.ReadGauges(t.Context(), url)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(*gauges.Running).To(Equal(5))
	g.Expect(*gauges.Waiting).To(Equal(0))
	g.Expect(*gauges.Generated).To(Equal(1000))
	g.Expect(gauges.Idle()).To(BeFalse())
}

func TestAPageWithoutTheGaugesIsNotIdle(t *testing.T) {
	for name, text := range map[string]string{"empty": "", "one": "vllm:num_requests_running 0\n", "noise": "<html>",
		"no number": "vllm:num_requests_running NaN\nvllm:num_requests_waiting 0\n",
		"endless":   "vllm:num_requests_running +Inf\nvllm:num_requests_waiting 0\n",
		"negative":  "vllm:num_requests_running 0\nvllm:num_requests_waiting -1\n",
	} {
		t.Run(name, func(t *testing.T) {
			gauges, err := telemetry.ReadGauges(t.Context(), page(t, text))
			NewWithT(t).Expect(err).To(HaveOccurred())
			NewWithT(t).Expect(gauges.Idle()).To(BeFalse())
		})
	}
}

func TestTheServerItselfIsAsked(t *testing.T) {
	g := NewWithT(t)
	idle := "vllm:num_requests_running 0\nvllm:num_requests_waiting 0\n"
	other := page(t, idle)
	moved := httptest.NewServer(http.RedirectHandler(other, http.StatusFound))
	t.Cleanup(moved.Close)
	_, err := telemetry.ReadGauges(t.Context(), moved.URL)
	g.Expect(err).To(MatchError(ContainSubstring("302")), "another server's idleness is not this one's")

	keyed := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer key" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte(idle))
	}))
	t.Cleanup(keyed.Close)
	_, err = telemetry.ReadGauges(t.Context(), keyed.URL)
	g.Expect(err).To(MatchError(ContainSubstring("401")))
	gauges, err := telemetry.ReadGauges(t.Context(), keyed.URL, func(r *http.Request) { r.Header.Set("Authorization", "Bearer key") })
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(gauges.Idle()).To(BeTrue())
}

func TestALookEndsWithItsContext(t *testing.T) {
	g := NewWithT(t)
	asked, done := make(chan struct{}), make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
		close(done)
	}))
	t.Cleanup(hangs.Close)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	_, err := telemetry.ReadGauges(ctx, hangs.URL)
	g.Expect(err).To(MatchError(context.Canceled))
	<-done // nothing of it is left behind
}

func TestWithoutADriverNVMLSaysSo(t *testing.T) {
	gpus, err := telemetry.NVML{}.Devices()
	if err == nil {
		NewWithT(t).Expect(gpus.Driver).NotTo(BeEmpty())
		return
	}
	NewWithT(t).Expect(err).To(MatchError(telemetry.ErrNoNVML))
}

func FuzzReadGauges(f *testing.F) {
	f.Add([]byte("vllm:num_requests_running 1\nvllm:num_requests_waiting NaN\n"))
	f.Add([]byte("# TYPE a histogram\na_bucket{le=\"+Inf\"} 1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		gauges, err := telemetry.ReadGauges(t.Context(), page(t, string(data)))
		if err == nil && (gauges.Running == nil || gauges.Waiting == nil) {
			t.Fatal("a page without the gauges was taken for one with them")
		}
	})
}
