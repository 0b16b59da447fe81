package crossing_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	. "github.com/onsi/gomega"

	"assay/harness/crossing"
)

type reference struct {
	Cases []struct {
		Values    []float64
		Inverted  [2]*float64
		Bootstrap [2]float64
		P         float64
		Greater   float64
	}
	Curve struct {
		Differences     [][]float64
		Mean, Low, High []float64
		BandLow         []float64 `json:"band_low"`
		BandHigh        []float64 `json:"band_high"`
		Slope           float64
	}
}

func readReference(t *testing.T) reference {
	t.Helper()
	g := NewWithT(t)
	data, err := os.ReadFile("testdata/reference.json")
	g.Expect(err).NotTo(HaveOccurred())
	var r reference
	g.Expect(json.Unmarshal(data, &r)).To(Succeed())
	return r
}

// curves are pairs with these differences, in seconds: the baseline ends a
// request every hundred seconds, and the candidate so much later.
func curves(differences [][]float64) []crossing.Pair {
	var pairs []crossing.Pair
	for i, d := range differences {
		p := crossing.Pair{Number: i + 1, CandidateFirst: i%2 == 1}
		for n, v := range d {
			at := int64(n+10) * 100e9
			late := at + int64(math.Round(v*1e9))
			if n == 0 {
				p.Baseline.Initialization, p.Candidate.Initialization = at, late
				continue
			}
			p.Baseline.Terminals, p.Candidate.Terminals = append(p.Baseline.Terminals, at), append(p.Candidate.Terminals, late)
		}
		pairs = append(pairs, p)
	}
	return pairs
}

func analyse(t *testing.T, pairs []crossing.Pair, requests, dwell int) crossing.Analysis {
	t.Helper()
	a, err := crossing.Analyze(pairs, crossing.Options{Requests: requests, Dwell: dwell, Level: 0.95, Resamples: 20_000, Seed: 1})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return a
}

func TestEffectsAreNumpysAndSciPys(t *testing.T) {
	g := NewWithT(t)
	for _, c := range readReference(t).Cases {
		var differences [][]float64
		for _, v := range c.Values {
			differences = append(differences, []float64{v + 50, v})
		}
		end := analyse(t, curves(differences), 1, 1).End
		g.Expect(*end.PValue).To(BeNumerically("~", c.P, 1e-12))
		for i, got := range []*float64{end.Inverted.Low, end.Inverted.High} {
			if c.Inverted[i] == nil {
				g.Expect(got).To(BeNil(), "so few pairs exclude nothing on this side")
			} else {
				g.Expect(*got).To(BeNumerically("~", *c.Inverted[i], 1e-6))
			}
		}
		g.Expect(*end.Bootstrap.Low).To(BeNumerically("~", c.Bootstrap[0], 0.06))
		g.Expect(*end.Bootstrap.High).To(BeNumerically("~", c.Bootstrap[1], 0.06))
	}
}

func TestTheCurvesIntervalsAreNumpys(t *testing.T) {
	g := NewWithT(t)
	want := readReference(t).Curve
	a := analyse(t, curves(want.Differences), 30, 3)
	g.Expect(a.Curve).To(HaveLen(31))
	for n, p := range a.Curve {
		g.Expect(p.Mean).To(BeNumerically("~", want.Mean[n], 1e-8))
		// Within what two samples of resamples differ by.
		for _, c := range []struct{ got, want float64 }{{*p.Low, want.Low[n]}, {*p.High, want.High[n]}, {*p.BandLow, want.BandLow[n]}, {*p.BandHigh, want.BandHigh[n]}} {
			g.Expect(c.got).To(BeNumerically("~", c.want, 0.03), "at %d", n)
		}
		g.Expect(*p.BandLow).To(BeNumerically("<", *p.Low), "a band for all ordinals at once is the wider")
		g.Expect(*p.BandHigh).To(BeNumerically(">", *p.High))
	}
	g.Expect(*a.Period.Value).To(BeNumerically("~", want.Slope, 1e-8))
}
