package emulated

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"assay/harness/engine/emulated/scheduler"
)

// metrics is what the server counts for its /metrics page, under vLLM's names.
// Its seconds are emulated ones.
type metrics struct {
	registry        *prometheus.Registry
	ttft, tpot, e2e prometheus.Histogram
	success         *prometheus.CounterVec
}

// gauge is one number of the scheduler's load.
type gauge struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(scheduler.Load) float64
}

// loads publishes the scheduler's load as it is when the page is read.
type loads struct {
	read   func() scheduler.Load
	gauges []gauge
}

func (l loads) Describe(to chan<- *prometheus.Desc) {
	for _, g := range l.gauges {
		to <- g.desc
	}
}

func (l loads) Collect(to chan<- prometheus.Metric) {
	now := l.read()
	for _, g := range l.gauges {
		to <- prometheus.MustNewConstMetric(g.desc, g.kind, g.value(now))
	}
}

func newMetrics(model string, read func() scheduler.Load) *metrics {
	labels := prometheus.Labels{"model_name": model, "engine": "0"}
	of := func(name, help string, kind prometheus.ValueType, value func(scheduler.Load) float64) gauge {
		return gauge{prometheus.NewDesc("vllm:"+name, help, nil, labels), kind, value}
	}
	none := func(scheduler.Load) float64 { return 0 }
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: "vllm:" + name, Help: help + ", in emulated seconds", Buckets: buckets, ConstLabels: labels})
	}
	m := &metrics{
		registry: prometheus.NewRegistry(),
		ttft:     histogram("time_to_first_token_seconds", "From a request's arrival to its first token", prometheus.ExponentialBuckets(0.001, 2, 18)),
		tpot:     histogram("request_time_per_output_token_seconds", "From a request's first token to its last, for each token after the first", prometheus.ExponentialBuckets(0.001, 2, 14)),
		e2e:      histogram("e2e_request_latency_seconds", "From a request's arrival to its last token", prometheus.ExponentialBuckets(0.1, 2, 12)),
		success: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "vllm:request_success_total", Help: "Requests that ended, by how", ConstLabels: labels,
		}, []string{"finished_reason"}),
	}
	m.registry.MustRegister(m.ttft, m.tpot, m.e2e, m.success, loads{read: read, gauges: []gauge{
		of("num_requests_running", "Requests that are worked on", prometheus.GaugeValue, func(l scheduler.Load) float64 { return float64(l.Running) }),
		of("num_requests_waiting", "Requests that wait", prometheus.GaugeValue, func(l scheduler.Load) float64 { return float64(l.Waiting) }),
		of("kv_cache_usage_perc", "Share of the KV budget that is held, 0 to 1", prometheus.GaugeValue, func(l scheduler.Load) float64 { return l.KVUsage }),
		of("num_preemptions_total", "Requests put back for want of KV budget", prometheus.CounterValue, func(l scheduler.Load) float64 { return float64(l.Preemptions) }),
		of("prompt_tokens_total", "Prompt tokens computed", prometheus.CounterValue, func(l scheduler.Load) float64 { return float64(l.PromptTokens) }),
		of("generation_tokens_total", "Output tokens", prometheus.CounterValue, func(l scheduler.Load) float64 { return float64(l.GeneratedTokens) }),
		of("prefix_cache_queries_total", "Tokens looked up in the prefix cache: this server has none", prometheus.CounterValue, none),
		of("prefix_cache_hits_total", "Tokens found in the prefix cache: this server has none", prometheus.CounterValue, none),
	}})
	return m
}

// ended counts a request in that has ended, with as much of it as there was.
func (m *metrics) ended(t *scheduler.Ticket, tokens int, reason string) {
	given := t.Given()
	if given > 0 {
		m.ttft.Observe(t.First().Seconds())
	}
	if given == tokens {
		m.e2e.Observe(t.Newest().Seconds())
		if tokens > 1 {
			m.tpot.Observe((t.Newest() - t.First()).Seconds() / float64(tokens-1))
		}
	}
	m.success.WithLabelValues(reason).Inc()
}

// page is the Prometheus page.
func (s *Server) page(w http.ResponseWriter, _ *http.Request) {
	families, err := s.metrics.registry.Gather()
	if err != nil {
		refuse(w, http.StatusInternalServerError, "the metrics could not be gathered: %s", err)
		return
	}
	format := expfmt.NewFormat(expfmt.TypeTextPlain)
	w.Header().Set("Content-Type", string(format))
	encoder := expfmt.NewEncoder(w, format)
	for _, f := range families {
		if encoder.Encode(f) != nil {
			return
		}
	}
}
