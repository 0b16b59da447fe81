package capacity_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"assay/harness/capacity"
)

// run searches with a probe until it is over.
func run(g Gomega, s capacity.Search, probe func(rate float64, seed uint64) capacity.Outcome) []capacity.Probed {
	g.Expect(s.Check()).To(Succeed())
	var done []capacity.Probed
	for {
		rate, seed, over := s.Next(done)
		if over {
			return done
		}
		p, err := s.Judge(rate, seed, probe(rate, seed))
		g.Expect(err).NotTo(HaveOccurred())
		done = append(done, p)
	}
}

// of has so many attempts of n within the limit, those that aren't spread
// evenly.
func of(within, n int) []bool {
	out := make([]bool, n)
	for i := range out {
		out[i] = (i+1)*within/n > i*within/n
	}
	return out
}

// above fails above a rate, and holds at it and below.
func above(capacityOf float64) func(float64, uint64) capacity.Outcome {
	return func(rate float64, _ uint64) capacity.Outcome {
		if rate > capacityOf {
			return capacity.Outcome{of(0, 200)}
		}
		return capacity.Outcome{of(200, 200)}
	}
}

func rates(done []capacity.Probed) (out []float64) {
	for _, p := range done {
		out = append(out, p.Rate)
	}
	return out
}

var (
	p95  = capacity.Objective{Name: "ttft_p95", Share: 0.95}
	pace = capacity.Objective{Name: "tpot_p95", Share: 0.95}
	lost = capacity.Objective{Name: "failure_rate", Share: 0.99}
	one  = capacity.Search{Objectives: []capacity.Objective{p95}, Confidence: 0.95, From: 1, To: 8, Within: 0.05, Tries: 3, Seed: 40}
	// three is of three objectives.
	three = capacity.Search{Objectives: []capacity.Objective{p95, pace, lost}, Confidence: 0.9, From: 1, To: 64, Within: 0.05, Tries: 2}
)

func TestTheSearchDoublesAndThenHalves(t *testing.T) {
	g := NewWithT(t)
	done := run(g, one, above(5))
	g.Expect(rates(done)[:5]).To(Equal([]float64{1, 2, 4, 8, 4 * math.Sqrt2}))
	for i, p := range done {
		g.Expect(p.Seed).To(Equal(uint64(40 + i)))
	}
	r := one.Result(done)
	g.Expect(*r.Holds).To(BeNumerically("<=", 5))
	g.Expect(*r.Fails).To(BeNumerically(">", 5))
	g.Expect(*r.Bound).To(And(BeNumerically("<=", 0.05), BeNumerically("~", *r.Fails / *r.Holds - 1, 1e-12)))
	g.Expect(r.Reason).To(BeEmpty())
	g.Expect(r.Probes).To(Equal(done))
}

func TestTheSearchSaysWhatItCouldNotShow(t *testing.T) {
	g := NewWithT(t)
	always := func(within int) func(float64, uint64) capacity.Outcome {
		return func(float64, uint64) capacity.Outcome { return capacity.Outcome{of(within, 200)} }
	}
	done := run(g, one, always(190))
	g.Expect(rates(done)).To(Equal([]float64{1, 1, 1, 2, 2, 2, 4, 4, 4, 8, 8, 8}))
	g.Expect(one.Result(done)).To(Equal(capacity.Result{Probes: done, Reason: one.Result(done).Reason}))
	g.Expect(one.Result(done).Reason).To(ContainSubstring("1 to 8 requests a second stayed undecided, over 3 probes of each rate"))

	r := one.Result(run(g, one, always(200)))
	g.Expect(*r.Holds).To(Equal(8.0))
	g.Expect([]any{r.Fails, r.Bound}).To(HaveEach(BeNil()))
	g.Expect(r.Reason).To(ContainSubstring("holds at the highest rate"))

	r = one.Result(run(g, one, always(100)))
	g.Expect(*r.Fails).To(Equal(1.0))
	g.Expect([]any{r.Holds, r.Bound}).To(HaveEach(BeNil()))
	g.Expect(r.Reason).To(ContainSubstring("fails at the lowest rate"))

	r = one.Result(nil)
	g.Expect(r.Reason).To(ContainSubstring("not at its end: 1 requests a second was to be probed next"))
	data, err := json.Marshal(r)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(data).To(MatchJSON(fmt.Sprintf(`{"holds": null, "fails": null, "bound": null, "probes": [], "reason": %q}`, r.Reason)))
}

func TestASearchIsFollowedFromItsRecords(t *testing.T) {
	g := NewWithT(t)
	done := run(g, one, above(5))
	data, err := json.Marshal(done)
	g.Expect(err).NotTo(HaveOccurred())
	var read []capacity.Probed
	g.Expect(json.Unmarshal(data, &read)).To(Succeed())
	g.Expect(read).To(Equal(done), "rates come back as they were, to the last bit")
	for n := range done {
		g.Expect(one.Follows(read[:n])).To(Succeed())
		rate, seed, over := one.Next(read[:n])
		g.Expect([]any{rate, seed, over}).To(Equal([]any{done[n].Rate, done[n].Seed, false}))
	}
	for says, change := range map[string]func([]capacity.Probed) []capacity.Probed{
		"probe 3 of 8 is of 3 requests a second, seed 42: the search asks for 4, seed 42, there": func(p []capacity.Probed) []capacity.Probed { p[2].Rate = 3; return p },
		"probe 2 of 8 is of 2 requests a second, seed 7: the search asks for 2, seed 41, there":  func(p []capacity.Probed) []capacity.Probed { p[1].Seed = 7; return p },
		"probe 2 of 8 is of 2 requests a second, seed 41: the search asks for 1, seed 41, there": func(p []capacity.Probed) []capacity.Probed { p[0].Verdict = capacity.Undecided; return p },
		`probe 1 of 8 is of 1 requests a second, seed 40: there is no verdict "held"`:            func(p []capacity.Probed) []capacity.Probed { p[0].Verdict = "held"; return p },
		"probe 2 of 7 is of 4 requests a second, seed 42: the search asks for 2, seed 41, there": func(p []capacity.Probed) []capacity.Probed { return slices.Delete(p, 1, 2) },
		"the search was at its end before it":                                                    func(p []capacity.Probed) []capacity.Probed { return append(p, p[0]) },
	} {
		wrong := change(slices.Clone(done))
		g.Expect(one.Follows(wrong)).To(MatchError(ContainSubstring(says)))
		_, _, over := one.Next(wrong)
		g.Expect(over).To(BeTrue())
		r := one.Result(wrong)
		g.Expect(r.Reason).To(ContainSubstring(says))
		g.Expect([]any{r.Holds, r.Fails, r.Bound}).To(HaveEach(BeNil()))
	}
}

// A rate that stays undecided hides neither what holds below it nor what fails
// above it.
func TestTheSearchGoesAroundWhatStaysUndecided(t *testing.T) {
	g := NewWithT(t)
	done := run(g, one, func(rate float64, _ uint64) capacity.Outcome {
		switch {
		case rate <= 2.7:
			return capacity.Outcome{of(200, 200)}
		case rate < 6.1:
			return capacity.Outcome{of(190, 200)}
		}
		return capacity.Outcome{of(100, 200)}
	})
	r := one.Result(done)
	g.Expect(*r.Holds).To(BeNumerically("~", 2.7/1.025, 2.7*0.025))
	g.Expect(*r.Fails).To(BeNumerically("~", 6.1*1.025, 6.1*0.025))
	g.Expect(*r.Bound).To(BeNumerically("~", *r.Fails / *r.Holds - 1, 1e-12))
	g.Expect(r.Reason).To(MatchRegexp(`^2\.\d+ to [56]\.\d+ requests a second stayed undecided`))
}

// walk goes through all that probes can answer, and gives each search that is
// over to check.
func walk(s capacity.Search, done []capacity.Probed, check func([]capacity.Probed)) {
	rate, seed, over := s.Next(done)
	if over {
		check(done)
		return
	}
	for _, v := range []capacity.Verdict{capacity.Holds, capacity.Fails, capacity.Undecided} {
		walk(s, append(slices.Clip(done), capacity.Probed{Rate: rate, Seed: seed, Verdict: v}), check)
	}
}

func TestEverySearchEndsWithABracketOrTheReason(t *testing.T) {
	for _, s := range []capacity.Search{
		{From: 1, To: 8, Within: 0.2, Tries: 1}, {From: 1, To: 4, Within: 0.5, Tries: 2}, {From: 1, To: 1, Within: 1, Tries: 3},
		{From: 3, To: 16, Within: 0.4, Tries: 1}, {From: 1, To: 2, Within: math.Sqrt2 - 1, Tries: 1}, {From: 1, To: 8, Within: 1, Tries: 1}, {From: 1, To: 1.1, Within: 0.02, Tries: 1},
	} {
		g := NewWithT(t)
		most := 0
		walk(s, nil, func(done []capacity.Probed) {
			most = max(most, len(done))
			r := s.Result(done)
			for _, p := range done {
				// What was probed last at a rate stands, but where another answer
				// contradicts it.
				if p.Verdict == capacity.Holds && (r.Holds == nil || *r.Holds < p.Rate) {
					t.Fatalf("%+v holds at %v, and the result is %+v", s, p.Rate, r)
				}
				if p.Verdict == capacity.Fails && (r.Fails == nil || *r.Fails > p.Rate) {
					t.Fatalf("%+v fails at %v, and the result is %+v", s, p.Rate, r)
				}
			}
			if r.Holds != nil && r.Fails != nil && *r.Holds >= *r.Fails {
				t.Fatalf("%+v: upside down: %+v", s, r)
			}
			if narrow := r.Bound != nil && *r.Bound <= s.Within; narrow == (r.Reason != "") {
				t.Fatalf("%+v: %+v has no bracket and no reason, or both", s, r)
			}
		})
		g.Expect(most).To(BeNumerically("<=", s.MostProbes()), "%+v", s)
		g.Expect(most).To(BeNumerically(">=", s.MostProbes()-2*s.Tries), "%+v", s)
	}
}

func TestASearchIsRefusedWithEveryFault(t *testing.T) {
	g := NewWithT(t)
	g.Expect(three.Check()).To(Succeed())
	err := capacity.Search{Objectives: []capacity.Objective{{}, {Name: "a", Share: 1}, {Name: "a", Share: 0.5}}}.Check()
	says := []string{"objective 1 has no name", `share of objective "" is 0`, `share of objective "a" is 1`, `two objectives "a"`, "confidence is 0", "from 0 to 0", "within 0", "0 probes"}
	g.Expect(strings.Split(err.Error(), "\n")).To(HaveLen(len(says)), err.Error())
	for _, s := range says {
		g.Expect(err).To(MatchError(ContainSubstring(s)))
	}
	s := one
	s.Objectives, s.To = nil, math.Inf(1)
	g.Expect(s.Check()).To(MatchError(And(ContainSubstring("no objective"), ContainSubstring("from 1 to +Inf"))))
}
