package crossing

import (
	_ "embed"
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
)

// CalibrationLine is what simulation says of the intervals and the test at a
// level of 95 %, for a number of pairs and a distribution of their differences.
type CalibrationLine struct {
	K            int    `json:"k"`
	Distribution string `json:"distribution"`
	Experiments  int    `json:"experiments"`
	// Inverted and Bootstrap are the shares of experiments in which the interval
	// held the true mean. An interval without ends always does.
	Inverted  float64 `json:"inverted"`
	Bootstrap float64 `json:"bootstrap"`
	// FalseClaims is the share of experiments with the same arm twice in which
	// a difference of mean D(N) is claimed, FalseCrossings that in which it is
	// claimed that a debt was repaid.
	FalseClaims    float64 `json:"false_claims"`
	FalseCrossings float64 `json:"false_crossings"`
	// Detectable is the smallest mean, in standard deviations between pairs,
	// that the test finds in 4 of 5 experiments; 0: it can't.
	Detectable float64 `json:"detectable"`
}

// Distributions are those of differences between pairs that are simulated: all
// of mean 0 and standard deviation 1.
var Distributions = []string{"normal", "skewed", "heavy-tailed"}

// CalibratedPairs are the numbers of pairs that are simulated.
var CalibratedPairs = []int{4, 5, 6, 7, 8, 10, 12}

const calibrationLevel = 0.95

//go:embed calibration.json
var calibrationJSON []byte

var calibration = sync.OnceValue(func() []CalibrationLine {
	var lines []CalibrationLine
	if err := json.Unmarshal(calibrationJSON, &lines); err != nil {
		panic("the embedded calibration is no JSON: " + err.Error())
	}
	return lines
})

// Calibration is the simulated table's lines at a number of pairs; false: it
// was not simulated. `make calibrate` makes the table.
func Calibration(k int) ([]CalibrationLine, bool) {
	var out []CalibrationLine
	for _, l := range calibration() {
		if l.K == k {
			out = append(out, l)
		}
	}
	return out, len(out) > 0
}

// SmallestEffect is the smallest mean that k pairs show at 95 % in 4 of 5
// experiments, if their differences are normal with this standard deviation;
// false: so many pairs were not simulated, or they can't show any.
func SmallestEffect(deviation float64, k int) (float64, bool) {
	for _, l := range calibration() {
		if l.K == k && l.Distribution == "normal" && l.Detectable > 0 {
			return float64(l.Detectable * deviation), true
		}
	}
	return 0, false
}

// draw is one difference of a distribution.
func draw(distribution string, r *rand.Rand) float64 {
	switch distribution {
	case "skewed":
		// Log-normal with a σ of 1, brought to mean 0 and deviation 1: a
		// skewness of 6.
		e := math.E
		return (math.Exp(r.NormFloat64()) - math.Sqrt(e)) / math.Sqrt(float64((e-1)*e))
	case "heavy-tailed":
		// Student's t with 3 degrees of freedom, whose deviation is √3.
		chi := 0.0
		for range 3 {
			z := r.NormFloat64()
			chi += float64(z * z)
		}
		return r.NormFloat64() / math.Sqrt(chi/3) / math.Sqrt(3)
	default:
		return r.NormFloat64()
	}
}

// Calibrate simulates experiments of k pairs. The same seed gives the same
// line.
func Calibrate(k int, distribution string, experiments int, seed uint64) CalibrationLine {
	r := rand.New(rand.NewPCG(seed, uint64(k)))
	line := CalibrationLine{K: k, Distribution: distribution, Experiments: experiments}
	share := func(n int) float64 { return math.Round(1e4*float64(n)/float64(experiments)) / 1e4 }
	inverted, boot := 0, 0
	values := make([]float64, k)
	for e := range experiments {
		for i := range values {
			values[i] = 1e9 * draw(distribution, r)
		}
		if i, bounded := InvertSignFlip(values, calibrationLevel, 0); !bounded || *i.Low <= 0 && 0 <= *i.High {
			inverted++
		}
		if i := bootstrapMean(values, Options{Level: calibrationLevel, Resamples: 2000, Seed: seed + uint64(e)}); *i.Low <= 0 && 0 <= *i.High {
			boot++
		}
	}
	line.Inverted, line.Bootstrap = share(inverted), share(boot)
	claims, crossed := 0, 0
	for range experiments {
		difference, repaid := sameArmTwice(k, distribution, r)
		if difference {
			claims++
		}
		if repaid {
			crossed++
		}
	}
	line.FalseClaims, line.FalseCrossings = share(claims), share(crossed)
	line.Detectable = detectable(k, distribution, r)
	return line
}

// sameArmTwice is one A/A experiment: k pairs of lifecycles that differ by
// noise alone, of an initialization of a minute and 24 requests of a second. It
// says whether a difference of mean D(N) would be claimed, and whether it
// would be that a debt was repaid.
func sameArmTwice(k int, distribution string, r *rand.Rand) (difference, repaid bool) {
	const requests = 24
	side := func() Side {
		at := 60e9 + float64(1e9*draw(distribution, r))
		s := Side{Initialization: int64(max(at, 0))}
		at = float64(s.Initialization)
		// What a lifecycle's requests have in common is most of their noise.
		pace := 1e9 + float64(2e7*draw(distribution, r))
		for range requests {
			at += max(0, pace+float64(1e7*draw(distribution, r)))
			s.Terminals = append(s.Terminals, int64(at))
		}
		return s
	}
	var pairs []Pair
	for i := range k {
		pairs = append(pairs, Pair{Number: i + 1, CandidateFirst: i%2 == 1, Baseline: side(), Candidate: side()})
	}
	ends, _ := at(pairs, requests)
	debts, _ := at(pairs, 0)
	p, _ := SignFlip(ends)
	difference = p <= 1-calibrationLevel+1e-12
	return difference, difference && mean(ends) < 0 && mean(debts) > 0
}

// detectable finds, in hundredths, the smallest mean that the test finds in 4
// of 5 experiments.
func detectable(k int, distribution string, r *rand.Rand) float64 {
	if k < fewestPairs(calibrationLevel) {
		return 0
	}
	const experiments = 2000
	noise := make([][]float64, experiments)
	for e := range noise {
		for range k {
			noise[e] = append(noise[e], draw(distribution, r))
		}
	}
	const most = 400 // four deviations
	power := func(hundredths int) bool {
		found := 0
		for _, n := range noise {
			shifted := slices.Clone(n)
			for i := range shifted {
				shifted[i] += float64(hundredths) / 100
			}
			if p, _ := SignFlip(shifted); p <= 1-calibrationLevel+1e-12 {
				found++
			}
		}
		return found >= experiments*4/5
	}
	low, high := 0, most
	if !power(most) {
		return 0
	}
	for high-low > 1 {
		if middle := (low + high) / 2; power(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return float64(high) / 100
}
