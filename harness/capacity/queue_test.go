package capacity_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"assay/harness/arrival"
	"assay/harness/engine/emulated/scheduler"
)

// server is an emulated engine on its virtual clock.
type server struct {
	parameters scheduler.Parameters
	prompt     int
	// answer draws how long a request's answer is, and which of the declared
	// ones it is.
	answer func(random *rand.Rand) (tokens, sample int)
}

// attempt is what a client sees of a request, in seconds.
type attempt struct {
	ttft float64
	tpot float64 // NaN: one token has none
}

// service is the mean service time of the servers whose textbook is known.
const service = 100 * time.Millisecond

// oneToken answers one token a request.
func oneToken(*rand.Rand) (tokens, sample int) { return 1, 0 }

// constant serves one after the other, each as long as any other: M/D/1.
var constant = server{
	parameters: scheduler.Parameters{Mode: scheduler.Serial, Step: 1, Prefill: service, ContextTokens: 100},
	prompt:     1, answer: oneToken,
}

// exponential serves one after the other, each for an exponential time: M/M/1.
// The times are the distribution's quantiles at the middles of ten thousand
// equal parts, drawn anew for each request.
var exponential = func() server {
	const parts = 10_000
	p := scheduler.Parameters{Mode: scheduler.Replay, ContextTokens: 100}
	for i := range parts {
		takes := time.Duration(-math.Log1p(-(float64(i)+0.5)/parts) * float64(service))
		p.Answers = append(p.Answers, scheduler.Answer{FirstToken: takes, Total: takes, Tokens: 1})
	}
	return server{parameters: p, prompt: 1, answer: func(random *rand.Rand) (int, int) { return 1, random.IntN(parts) }}
}()

// serve serves Poisson arrivals of a rate, and returns the measured ones.
func (s server) serve(g Gomega, rate float64, seed uint64, requests int) []attempt {
	g.Expect(s.parameters.Validate()).To(Succeed())
	process, err := arrival.New(arrival.Spec{Process: "poisson", Rate: rate})
	g.Expect(err).NotTo(HaveOccurred())
	span := time.Duration(float64(requests) / rate * float64(time.Second))
	schedule, err := arrival.Windows{Warmup: span / 10, Measure: span}.Schedule(process, seed)
	g.Expect(err).NotTo(HaveOccurred())
	random := rand.New(rand.NewPCG(seed, 11))
	arrivals := make([]scheduler.Arrival, len(schedule.Offsets))
	for i, at := range schedule.Offsets {
		tokens, sample := s.answer(random)
		arrivals[i] = scheduler.Arrival{At: time.Duration(at), Job: scheduler.Job{ID: i, PromptTokens: s.prompt, OutputTokens: tokens, Sample: sample}}
	}
	var out []attempt
	lost := 0
	for i, served := range scheduler.Simulate(scheduler.New(s.parameters, seed), arrivals, true) {
		if !served.OK {
			lost++
		}
		if schedule.Measured(schedule.Offsets[i]) {
			a := attempt{ttft: (served.First - arrivals[i].At).Seconds(), tpot: math.NaN()}
			if served.Tokens > 1 {
				a.tpot = (served.Ended - served.First).Seconds() / float64(served.Tokens-1)
			}
			out = append(out, a)
		}
	}
	g.Expect(lost).To(BeZero())
	return out
}

// interval is the mean over replications and its standard error.
func interval(values []float64) (mean, se float64) {
	n := float64(len(values))
	for _, v := range values {
		mean += v / n
	}
	for _, v := range values {
		se += (v - mean) * (v - mean) / (n - 1) / n
	}
	return mean, math.Sqrt(se)
}

// The mean wait is Pollaczek's and Khinchine's, λ·E[S²] / (2·(1−ρ)), and with
// exponential service the response time is exponential with rate μ − λ.
func TestAnEmulatedServersQueueIsTheTextbooks(t *testing.T) {
	for _, test := range []struct {
		name    string
		of      server
		squared float64 // the mean of the service time's square, in mean ones
	}{{"M/D/1", constant, 1}, {"M/M/1", exponential, 2}} {
		for _, load := range []float64{0.5, 0.8} {
			g := NewWithT(t)
			mean := service.Seconds()
			p95 := mean / (1 - load) * math.Log(20)
			var waits, within []float64
			for seed := range uint64(24) {
				wait, in := 0.0, 0.0
				served := test.of.serve(g, load/mean, seed, 10_000)
				for _, a := range served {
					wait += a.ttft - mean
					if a.ttft <= p95 {
						in++
					}
				}
				waits = append(waits, wait/float64(len(served)))
				within = append(within, in/float64(len(served)))
			}
			want := load * mean * test.squared / (2 * (1 - load))
			wait, se := interval(waits)
			t.Logf("%s at %.2f: mean wait %.5f s ± %.5f, by the textbook %.5f s", test.name, load, wait, se, want)
			g.Expect(se).To(BeNumerically("<", 0.03*want), "so that the interval can fail")
			g.Expect(wait).To(BeNumerically("~", want, 3*se))
			if test.squared == 2 {
				share, se := interval(within)
				t.Logf("%s at %.2f: %.5f ± %.5f within %.3f s, by the textbook 0.95", test.name, load, share, se, p95)
				g.Expect(share).To(BeNumerically("~", 0.95, 3*se))
			}
		}
	}
}
