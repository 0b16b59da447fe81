package comparison

import (
	"fmt"
	"math"
	"strconv"
)

// digits shows four of a number.
func digits(v float64) string {
	if math.Abs(v) >= 1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// Number shows one of a row's two numbers with its unit.
func (r Row) Number(v *float64) string {
	switch {
	case v == nil:
		return "null"
	case r.Unit == "ratio":
		return fmt.Sprintf("%.1f %%", *v*100)
	}
	return digits(*v) + " " + r.Unit
}

// Changed shows the change: in % of the old number, or in points of a share.
func (r Row) Changed() string {
	if r.Change == nil {
		return "null"
	}
	return r.signed(*r.Change)
}

// Range shows the change's interval in the unit of the change; an end that
// nothing bounds is left open.
func (r Row) Range() string {
	if r.Interval == nil {
		return "null"
	}
	end := func(v *float64) string {
		if v == nil {
			return "open"
		}
		return hundredths(*v)
	}
	return "[" + end(r.Interval.Low) + ", " + end(r.Interval.High) + "]"
}

func (r Row) signed(v float64) string {
	if r.Unit == "ratio" {
		return hundredths(v) + " points"
	}
	return hundredths(v) + " %"
}

func hundredths(share float64) string {
	return fmt.Sprintf("%+.1f", math.Round(share*1000)/10+0) // no −0
}

// Sentence says a row in words: what changed from what to what, how sure that
// is, and the verdict.
func (r Row) Sentence() string {
	text := fmt.Sprintf("%s, %s, %s: %s → %s", r.Where, r.Arm, r.Metric, r.Number(r.Old), r.Number(r.New))
	if r.Change != nil {
		text += fmt.Sprintf(", %s, interval %s, over %d against %d lifecycles", r.Changed(), r.Range(), r.OldN, r.NewN)
	}
	if r.Adjusted != nil {
		text += fmt.Sprintf(", adjusted p = %.3g", *r.Adjusted)
	}
	text += ": " + string(r.Verdict)
	if r.Reason != "" {
		text += ": " + r.Reason
	}
	return text
}

// Worst is the row that is worse by the most of those that are, as a share of
// what it was or of attempts; nil: none is.
func (c Comparison) Worst() *Row {
	var worst *Row
	for i, r := range c.Rows {
		if r.Verdict == Worse && (worst == nil || math.Abs(*r.Change) > math.Abs(*worst.Change)) {
			worst = &c.Rows[i]
		}
	}
	return worst
}

// Rule says in a few sentences how the verdicts are found.
func (c Comparison) Rule() string {
	return fmt.Sprintf("A number is better or worse if its lifecycles differ at %s with all %d compared numbers taken together (permutation test, Holm) and it changed by %s or more (a failure rate: points). Each interval is at %s for itself. Old and new are means over lifecycles; TTFT is over all attempts, failures right-censored, TPOT over ok attempts.",
		percent(c.Level), c.Compared, percent(c.Minimum), percent(c.Level))
}
