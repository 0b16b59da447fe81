package telemetry

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net/http"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"assay/harness/record"
)

// cacheConfig is a gauge whose labels are the engine's cache configuration.
const cacheConfig = "vllm:cache_config_info"

// Gauges is one look at an engine's own account of its load. A nil field is
// not on its page.
type Gauges struct {
	Running *int // requests being worked on
	Waiting *int // requests in the engine's queue
	// Generated is output tokens since the engine started. It is nil too where
	// the engine counts a request's only once that has ended: what was given to
	// a client that has left can't be told from what it was given before.
	Generated *int
}

// Idle says whether the engine has nothing to do, by both of its gauges.
func (g Gauges) Idle() bool {
	return g.Running != nil && g.Waiting != nil && *g.Running == 0 && *g.Waiting == 0
}

// maxPage bounds a metrics page: vLLM's is under 200 KiB.
const maxPage = 16 << 20

// patience is how long one look may take: a server that is busy may answer
// late, and one that hangs must not keep whoever waits from looking again.
const patience = 10 * time.Second

// ReadGauges fetches a Prometheus page once and reads the gauges from it. It
// asks the server itself: past every proxy, on a connection of its own, and
// without following a redirection. Each prepare may add a header, such as a
// key. It is an error if the page lacks one of the two queues' gauges, or has
// no number there, since then the engine does not say whether it is idle.
func ReadGauges(ctx context.Context, url string, prepare ...func(*http.Request)) (Gauges, error) {
	families, err := read(ctx, url, prepare)
	if err != nil {
		return Gauges{}, err
	}
	late := named(families)
	g := Gauges{Running: sum(families[record.Running]), Waiting: sum(families[record.Waiting])}
	if !late[record.Generated] {
		g.Generated = sum(families[record.Generated])
	}
	if g.Running == nil || g.Waiting == nil {
		return g, fmt.Errorf("%s has no %s or no %s (or what SGLang, TGI or llama.cpp call them), or no number there", url, record.Running, record.Waiting)
	}
	return g, nil
}

// PrefixCaching is whether the engine shares the computation of prompts that
// begin alike, as it says itself on its page; ok is false where it does not.
func PrefixCaching(ctx context.Context, url string, prepare ...func(*http.Request)) (on, ok bool) {
	families, err := read(ctx, url, prepare)
	if err != nil {
		return false, false
	}
	for _, m := range families[cacheConfig].GetMetric() {
		for _, label := range m.GetLabel() {
			if label.GetName() == "enable_prefix_caching" {
				return label.GetValue() == "True", true
			}
		}
	}
	return false, false
}

// read fetches a Prometheus page.
func read(ctx context.Context, url string, prepare []func(*http.Request)) (map[string]*dto.MetricFamily, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	text, err := fetch(ctx, direct(), url, prepare)
	if err != nil {
		return nil, err
	}
	families, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s is no Prometheus page: %w", url, err)
	}
	return families, nil
}

func parse(text []byte) (map[string]*dto.MetricFamily, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(bytes.NewReader(text))
}

// direct is a client that reaches the server it is told, and no other.
func direct() *http.Client {
	return &http.Client{
		Transport:     &http.Transport{Proxy: nil, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// largest is the largest whole number that a float64 holds with its neighbours.
const largest = 1 << 53

// total adds a family over its label sets: an engine has one a replica.
func total(f *dto.MetricFamily) float64 {
	out := 0.0
	for _, m := range f.GetMetric() {
		out += m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue()
	}
	return out
}

// sum is a family's total, rounded to whole requests or tokens. It is nil if
// there is none, or no number.
func sum(f *dto.MetricFamily) *int {
	if f == nil || len(f.GetMetric()) == 0 {
		return nil
	}
	v := total(f)
	if !(v >= 0 && v <= largest) { // NaN is in no range
		return nil
	}
	n := int(math.Round(v))
	return &n
}
