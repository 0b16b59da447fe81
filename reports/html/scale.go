package html

import (
	"math"
	"strconv"
)

// scale brings values of an axis to places on the paper.
type scale struct {
	min, max float64 // values
	from, to float64 // places, in the drawing's units; to may be the smaller
	log      bool
}

// at is the place of a value; beyond the axis it is the axis's end. Products are
// rounded before they are added, so that every machine draws the same.
func (s scale) at(v float64) float64 {
	low, high := s.min, s.max
	if s.log {
		v, low, high = math.Log10(max(v, low)), math.Log10(low), math.Log10(high)
	}
	if high == low {
		return s.from
	}
	v = min(max(v, low), high)
	return s.from + float64(float64(s.to-s.from)*float64((v-low)/(high-low)))
}

// tick is a value of an axis that is written beside it.
type tick struct {
	value float64
	label string
}

// ticks are about so many round values of the axis.
func (s scale) ticks(about int) []tick {
	if s.log {
		return s.decades(about)
	}
	step := roundStep((s.max - s.min) / float64(max(about, 1)))
	if step <= 0 {
		return nil
	}
	var out []tick
	first := math.Ceil(s.min/step - 1e-9)
	for i := range 2*about + 2 { // counted, since beyond 2⁵³ one more is the same
		v := float64((first + float64(i)) * step)
		if v > s.max+float64(step*1e-9) {
			break
		}
		out = append(out, tick{v, short(v)})
	}
	return out
}

// roundStep is the next of 1, 2 and 5, times a power of ten.
func roundStep(step float64) float64 {
	if step <= 0 || math.IsInf(step, 0) || math.IsNaN(step) {
		return 0
	}
	power := math.Pow(10, math.Floor(math.Log10(step)))
	for _, times := range []float64{1, 2, 5} {
		if float64(times*power) >= float64(step*(1-1e-9)) {
			return float64(times * power)
		}
	}
	return float64(10 * power)
}

// decades are ticks at the powers of ten, and at two and five times those where
// there is room for them.
func (s scale) decades(about int) []tick {
	if s.min <= 0 || s.max <= s.min || math.IsInf(s.max, 1) {
		return nil
	}
	var out []tick
	span := math.Log10(s.max / s.min)
	every := 1.0
	for span/every > float64(about) {
		every++
	}
	for e := math.Floor(math.Log10(s.min)); e <= math.Ceil(math.Log10(s.max)); e++ {
		for _, times := range []float64{1, 2, 5} {
			v := float64(times * math.Pow(10, e))
			if v < s.min*(1-1e-9) || v > s.max*(1+1e-9) {
				continue
			}
			if times > 1 && 3*span > float64(about) || times == 1 && math.Mod(e, every) != 0 {
				continue
			}
			out = append(out, tick{v, short(v)})
		}
	}
	return out
}

// short writes a value of an axis.
func short(v float64) string {
	v += 0 // no −0
	switch a := math.Abs(v); {
	case a >= 1e6:
		return strconv.FormatFloat(v/1e6, 'g', 4, 64) + "M"
	case a >= 1e4:
		return strconv.FormatFloat(v/1e3, 'g', 4, 64) + "k"
	default:
		return strconv.FormatFloat(v, 'g', 6, 64)
	}
}

// place writes a place on the paper, to a tenth of its unit.
func place(v float64) string {
	return strconv.FormatFloat(math.Round(float64(v*10))/10+0, 'f', -1, 64)
}
