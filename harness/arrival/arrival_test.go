package arrival_test

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"assay/harness/arrival"
)

// draw draws at a checked process.
func draw(t *testing.T, s arrival.Spec, seed uint64, until time.Duration, atLeast int) []int64 {
	t.Helper()
	g := NewWithT(t)
	a, err := arrival.New(s)
	g.Expect(err).NotTo(HaveOccurred())
	offsets, err := a.Draw(seed, until, atLeast)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(slices.IsSorted(offsets)).To(BeTrue())
	return offsets
}

// gaps are the times between arrivals in seconds, the first from the start.
func gaps(offsets []int64) []float64 {
	out, last := make([]float64, len(offsets)), int64(0)
	for i, o := range offsets {
		out[i], last = float64(o-last)/1e9, o
	}
	return out
}

func moments(values []float64) (mean, sd float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		sd += (v - mean) * (v - mean) / float64(len(values)-1)
	}
	return mean, math.Sqrt(sd)
}

// kolmogorov is the largest distance between the values' distribution and the
// one whose distribution function is cdf, times √n: above 1.95 in one of a
// thousand samples of it.
func kolmogorov(values []float64, cdf func(float64) float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n, most := float64(len(sorted)), 0.0
	for i, v := range sorted {
		at := cdf(v)
		most = max(most, at-float64(i)/n, float64(i+1)/n-at)
	}
	return most * math.Sqrt(n)
}

func TestPoissonGapsAreExponential(t *testing.T) {
	for _, rate := range []float64{0.5, 40, 5000} {
		g := NewWithT(t)
		got := gaps(draw(t, arrival.Spec{Process: "poisson", Rate: rate}, 7, 0, 50_000))
		g.Expect(got).To(HaveLen(50_000))
		mean, sd := moments(got)
		g.Expect(mean * rate).To(BeNumerically("~", 1, 4/math.Sqrt(50_000)))
		g.Expect(sd/mean).To(BeNumerically("~", 1, 4*math.Sqrt(2)/math.Sqrt(50_000)), "the coefficient of variation of an exponential")
		g.Expect(kolmogorov(got, func(x float64) float64 { return -math.Expm1(-rate * x) })).To(BeNumerically("<", 1.95))
		// Neighbouring gaps have nothing to do with one another.
		correlation := 0.0
		for i := range got[1:] {
			correlation += (got[i] - mean) * (got[i+1] - mean) / (sd * sd) / 50_000
		}
		g.Expect(correlation).To(BeNumerically("~", 0, 4/math.Sqrt(50_000)))
	}
}

func TestGammaGapsAreSciPys(t *testing.T) {
	g := NewWithT(t)
	data, err := os.ReadFile("testdata/gamma.json")
	g.Expect(err).NotTo(HaveOccurred())
	var table struct {
		Cases []struct {
			Burstiness, Mean, SD float64
			Percentiles          []float64
		}
	}
	g.Expect(json.Unmarshal(data, &table)).To(Succeed())
	g.Expect(len(table.Cases)).To(BeNumerically(">=", 6))
	const n, rate = 100_000, 2.0
	for _, c := range table.Cases {
		got := gaps(draw(t, arrival.Spec{Process: "gamma", Rate: rate, Burstiness: c.Burstiness}, 11, 0, n))
		mean, sd := moments(got)
		g.Expect(mean*rate).To(BeNumerically("~", c.Mean, 4*c.SD/math.Sqrt(n)), "burstiness %v", c.Burstiness)
		// The variance of a sample's variance is (kurtosis − 1)/n of its square;
		// a gamma's excess kurtosis is 6/shape.
		g.Expect(sd*rate/c.SD).To(BeNumerically("~", 1, 4*math.Sqrt((2+6/c.Burstiness)/n)/2), "burstiness %v", c.Burstiness)
		sort.Float64s(got)
		g.Expect(c.Percentiles).To(HaveLen(99))
		for i, at := range c.Percentiles {
			if at/rate < 1e-7 {
				continue // nearer to zero than whole nanoseconds tell apart
			}
			q := float64(i+1) / 100
			below := float64(sort.SearchFloat64s(got, at/rate)) / n
			g.Expect(below).To(BeNumerically("~", q, 1.95/math.Sqrt(n)), "burstiness %v, percentile %d", c.Burstiness, i+1)
		}
	}
}

func TestARampsCountsAreItsIntegral(t *testing.T) {
	for _, s := range []arrival.Spec{
		{Process: "ramp", From: 20, To: 200, Over: 100 * time.Second},
		{Process: "ramp", From: 200, To: 20, Over: 100 * time.Second},
		{Process: "ramp", To: 200, Over: 100 * time.Second},
	} {
		g := NewWithT(t)
		rate := func(at float64) float64 { return s.From + (s.To-s.From)*min(at, 100)/100 }
		cumulative := func(at float64) float64 { return (s.From + rate(at)) / 2 * min(at, 100) }
		offsets := draw(t, s, 3, 120*time.Second, 0)
		for from := 0.0; from < 120; from += 10 {
			n := 0.0
			for _, o := range offsets {
				if at := float64(o) / 1e9; at >= from && at < from+10 {
					n++
				}
			}
			want := cumulative(from+10) - cumulative(from) + s.To*(max(from+10, 100)-max(from, 100))
			g.Expect(n).To(BeNumerically("~", want, 4*math.Sqrt(want)), "%v from %v s", s, from)
		}
		// Time rescaling: the cumulative rates at the arrivals are a Poisson
		// process of rate 1.
		var steps []float64
		last := 0.0
		for _, o := range offsets {
			if at := float64(o) / 1e9; at < 100 {
				steps, last = append(steps, cumulative(at)-last), cumulative(at)
			}
		}
		g.Expect(kolmogorov(steps, func(x float64) float64 { return -math.Expm1(-x) })).To(BeNumerically("<", 1.95), "%v", s)
	}
}

func TestStepsHoldTheirRatesAndTheLastGoesOn(t *testing.T) {
	g := NewWithT(t)
	offsets := draw(t, arrival.Spec{Process: "step", Steps: []arrival.RateStep{
		{Rate: 100, For: 30 * time.Second}, {Rate: 0, For: 10 * time.Second}, {Rate: 400, For: 20 * time.Second}, {Rate: 50, For: time.Second},
	}}, 5, 100*time.Second, 0)
	within := func(from, to int64) int {
		n := 0
		for _, o := range offsets {
			if o >= from*1e9 && o < to*1e9 {
				n++
			}
		}
		return n
	}
	g.Expect(within(0, 30)).To(BeNumerically("~", 3000, 4*math.Sqrt(3000)))
	g.Expect(within(30, 40)).To(BeZero())
	g.Expect(within(40, 60)).To(BeNumerically("~", 8000, 4*math.Sqrt(8000)))
	g.Expect(within(60, 100)).To(BeNumerically("~", 2000, 4*math.Sqrt(2000)))
}

func TestConstantAndTraceAreWhatWasWritten(t *testing.T) {
	g := NewWithT(t)
	g.Expect(draw(t, arrival.Spec{Process: "constant", Rate: 4}, 1, time.Second, 0)).To(Equal([]int64{0, 250e6, 500e6, 750e6}))
	g.Expect(draw(t, arrival.Spec{Process: "constant", Rate: 4}, 1, time.Second, 6)).To(HaveLen(6), "both the duration and the count hold")
	trace := arrival.Spec{Process: "trace", Offsets: []int64{5, 5, 1e9, 3e9}, Scale: 0.5}
	g.Expect(draw(t, trace, 1, time.Hour, 4)).To(Equal([]int64{3, 3, 5e8, 15e8}))
	g.Expect(draw(t, trace, 1, 500*time.Millisecond, 0)).To(HaveLen(2), "what is due at the end is behind it")
	a, err := arrival.New(trace)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = a.Draw(1, time.Second, 5)
	g.Expect(err).To(MatchError(ContainSubstring("the trace has 4 arrivals, and 5 are needed")))
	a, err = arrival.New(arrival.Spec{Process: "constant", Rate: 1e6})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = a.Draw(1, time.Hour, 0)
	g.Expect(err).To(MatchError(ContainSubstring("more than 10000000 arrivals")))
}

func TestASeedIsASchedule(t *testing.T) {
	g := NewWithT(t)
	for process, s := range map[string]struct {
		spec arrival.Spec
		want string
	}{
		"poisson": {arrival.Spec{Process: "poisson", Rate: 8}, "2e25e660915fff2b"},
		"gamma":   {arrival.Spec{Process: "gamma", Rate: 8, Burstiness: 0.3}, "643567c740e0b94c"},
		"ramp":    {arrival.Spec{Process: "ramp", From: 1, To: 16, Over: time.Minute}, "b9936b902ee65ccc"},
	} {
		first := draw(t, s.spec, 42, time.Minute, 1000)
		g.Expect(len(first)).To(BeNumerically(">=", 1000))
		g.Expect(draw(t, s.spec, 42, time.Minute, 1000)).To(Equal(first))
		g.Expect(draw(t, s.spec, 42, 2*time.Minute, 2000)[:len(first)]).To(Equal(first), "a longer schedule begins with a shorter one")
		g.Expect(draw(t, s.spec, 43, time.Minute, 1000)[:10]).NotTo(Equal(first[:10]))
		// Pinned: a schedule is the same on every machine and for ever.
		g.Expect(arrival.Digest(first)).To(HavePrefix(s.want), process)
	}
	g.Expect(arrival.Digest([]int64{1, 20})).To(Equal("783e5bca6f660d66ef3c0ddc0b14ed2dc86c70b1cabef7c0b33a76179149618d"), `printf '1\n20\n' | sha256sum`)
}

func TestEveryFaultOfAProcessAtOnce(t *testing.T) {
	for _, test := range []struct {
		spec arrival.Spec
		want []string
	}{
		{arrival.Spec{Process: "uniform"}, []string{`no process "uniform": there are constant, poisson, gamma, ramp, step, trace`}},
		{arrival.Spec{Process: "poisson", Rate: math.NaN(), Burstiness: 1, Scale: 2}, []string{"rate is NaN", "takes no burstiness", "takes no scale"}},
		{arrival.Spec{Process: "gamma"}, []string{"rate is 0", "burstiness is 0"}},
		{arrival.Spec{Process: "ramp", From: -1}, []string{"from is -1", "to is 0", "over is 0s"}},
		{arrival.Spec{Process: "step", Steps: []arrival.RateStep{{Rate: math.Inf(1), For: 1}, {}}}, []string{"rate of step 1 is +Inf", "rate of step 2 is 0", "duration of step 2 is 0s"}},
		{arrival.Spec{Process: "step"}, []string{"no steps"}},
		{arrival.Spec{Process: "trace", Offsets: []int64{3, 1}}, []string{"scale is 0", "offset 2 of the trace is 1 ns, after 3 ns"}},
		{arrival.Spec{Process: "trace", Scale: 1, Offsets: []int64{-1}}, []string{"offset 1 of the trace is -1 ns"}},
		{arrival.Spec{Process: "trace", Scale: 1e6, Offsets: []int64{1e12}}, []string{"the trace lasts 1000000000 s once it is scaled"}},
	} {
		g := NewWithT(t)
		_, err := arrival.New(test.spec)
		g.Expect(err).To(HaveOccurred())
		g.Expect(strings.Split(err.Error(), "\n")).To(HaveLen(len(test.want)), err.Error())
		for _, want := range test.want {
			g.Expect(err.Error()).To(ContainSubstring(want))
		}
	}
}

func TestWindowsGoByTheScheduledMoment(t *testing.T) {
	g := NewWithT(t)
	a, err := arrival.New(arrival.Spec{Process: "constant", Rate: 10})
	g.Expect(err).NotTo(HaveOccurred())
	s, err := arrival.Windows{Warmup: time.Second, Measure: 2 * time.Second, Drain: time.Minute}.Schedule(a, 1)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.Offsets).To(HaveLen(30))
	g.Expect([]bool{s.Measured(s.Offsets[9]), s.Measured(s.Offsets[10])}).To(Equal([]bool{false, true}))
	g.Expect([]int64{s.Warmup, s.End, s.Drain}).To(Equal([]int64{1e9, 3e9, 60e9}))
	g.Expect(s.Digest()).To(Equal(arrival.Digest(s.Offsets)))
	s, err = arrival.Windows{Warmup: time.Second, Measure: 2 * time.Second, AtLeast: 50}.Schedule(a, 1)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.Offsets).To(HaveLen(60), "the least number is of measured ones")
	g.Expect(s.End).To(Equal(int64(5.9e9 + 1)))
	_, err = arrival.Windows{Warmup: -1, Drain: -1, AtLeast: -1}.Schedule(a, 1)
	g.Expect(err).To(MatchError(And(ContainSubstring("warmup is -1ns"), ContainSubstring("measure is 0s"), ContainSubstring("drain is -1ns"), ContainSubstring("least number of measured arrivals is -1"))))
}

func TestPortableFunctionsAreRight(t *testing.T) {
	g := NewWithT(t)
	for x := 1e-300; x < 1e300; x *= 1.37 {
		want := math.Log(x)
		g.Expect(arrival.NaturalLog(x)).To(BeNumerically("~", want, 4e-16*max(1, math.Abs(want))), "ln %v", x)
	}
	for x := 0.5; x < 2; x += 0.00037 {
		g.Expect(arrival.NaturalLog(x)).To(BeNumerically("~", math.Log(x), 1e-15*math.Abs(math.Log(x))), "ln %v", x)
	}
	for x := 0.0; x > -700; x -= 0.173 {
		g.Expect(arrival.Exponential(x)).To(BeNumerically("~", math.Exp(x), 1e-15*math.Exp(x)), "e^%v", x)
	}
	g.Expect([]float64{arrival.Exponential(-701), arrival.NaturalLog(1)}).To(Equal([]float64{0, 0}))
}

func FuzzSpec(f *testing.F) {
	f.Add(uint8(2), 3.0, 0.5, 1.0, 2.0, int64(1e9), int64(5), 1.0)
	f.Add(uint8(3), 0.0, 0.0, 1.0, 0.1, int64(1e9), int64(5), 0.0)
	f.Fuzz(func(t *testing.T, process uint8, rate, burstiness, from, to float64, over, offset int64, scale float64) {
		names := arrival.Processes()
		s := arrival.Spec{Process: names[int(process)%len(names)]}
		switch s.Process {
		case "gamma":
			s.Rate, s.Burstiness = rate, burstiness
		case "ramp":
			s.From, s.To, s.Over = from, to, time.Duration(over)
		case "step":
			s.Steps = []arrival.RateStep{{Rate: from, For: time.Duration(over)}, {Rate: to, For: time.Duration(over)}}
		case "trace":
			s.Offsets, s.Scale = []int64{0, offset}, scale
		default:
			s.Rate = rate
		}
		a, err := arrival.New(s)
		if err != nil {
			return
		}
		offsets, err := a.Draw(1, 0, 2)
		if err == nil && (len(offsets) != 2 || offsets[0] < 0 || offsets[1] < offsets[0]) {
			t.Fatalf("%+v drew %v", s, offsets)
		}
	})
}

func TestAConversationsTurnsFollowEachOther(t *testing.T) {
	g := NewWithT(t)
	a, err := arrival.New(arrival.Spec{Process: "constant", Rate: 100})
	g.Expect(err).NotTo(HaveOccurred())
	each, err := arrival.Windows{Measure: 20 * time.Second}.Schedule(a, 1)
	g.Expect(err).NotTo(HaveOccurred())
	s := each.Conversations(3, 2*time.Second, 7)
	g.Expect(s.Offsets).To(HaveLen(3 * len(each.Offsets)))
	sum := 0.0
	for i, o := range s.Offsets {
		g.Expect(o).To(Equal(each.Offsets[i/3]))
		g.Expect(s.Follows(i)).To(Equal(i%3 > 0))
		if s.Follows(i) {
			sum += float64(s.Thinks[i]) / 1e9
		}
	}
	// 4,000 exponential times: the mean is within 3 standard errors.
	g.Expect(sum / 4000).To(BeNumerically("~", 2, 3*2/math.Sqrt(4000)))
	g.Expect(s.Digest()).NotTo(Equal(arrival.Digest(s.Offsets)), "when turns come is in it")
	g.Expect(s.Digest()).To(Equal(each.Conversations(3, 2*time.Second, 7).Digest()))
	g.Expect(s.Digest()).NotTo(Equal(each.Conversations(3, 2*time.Second, 8).Digest()))
	g.Expect([]bool{s.Measured(-1), s.Measured(0), s.Measured(s.End)}).To(Equal([]bool{false, true, false}))
}
