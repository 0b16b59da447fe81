package comparison

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"assay/harness/metric"
)

// Schema is that of a comparison written as JSON.
const Schema = "assay.comparison/v1"

// Verdict is what a comparison found.
type Verdict string

// The verdicts.
const (
	Better        Verdict = "better"
	Worse         Verdict = "worse"
	NoDifference  Verdict = "no difference shown"
	TooFew        Verdict = "too few to show"
	NotComparable Verdict = "not comparable"
)

// Sample is a number of one run, once a lifecycle: the unit of replication.
type Sample struct {
	Values []float64
	Reason string // why there is none
}

// Series is one number of both runs.
type Series struct {
	Where  string // the tier, such as "8 clients"
	Arm    string
	Metric string // such as "goodput"
	// Unit decides which way is better: "tok/s" is better if there is more of it,
	// "s" if there is less, and of both a change is a ratio. "ratio" is a share of
	// attempts that failed, of which less is better; its change is a difference.
	Unit     string
	Old, New Sample
}

// Options are how a comparison is judged.
type Options struct {
	// Minimum is the smallest change that is called better or worse, as a share:
	// 0.05 is 5 % of a number with a unit, and 5 points of a share.
	Minimum float64
	Level   float64 // of confidence, for all rows together, from 0.5 to below 1
	Seed    uint64  // of sampled permutations
}

// The defaults.
const (
	DefaultMinimum = 0.05
	DefaultLevel   = 0.95
)

// Check says everything that is wrong with the options.
func (o Options) Check() error {
	var errs []error
	if !(o.Minimum >= 0 && o.Minimum <= 1) {
		errs = append(errs, fmt.Errorf("a minimum change of %g %%: write one from 0%% to 100%%", o.Minimum*100))
	}
	if !(o.Level >= 0.5 && o.Level < 1) {
		errs = append(errs, fmt.Errorf("a level of %g %% is none of confidence: write 50%% or more, and less than 100%%, such as 95%%", o.Level*100))
	}
	return errors.Join(errs...)
}

// Row is one number's change with what is inferred from it.
type Row struct {
	Where  string `json:"where"`
	Arm    string `json:"arm"`
	Metric string `json:"metric"`
	Unit   string `json:"unit"`
	// Old and New are means over lifecycles: geometric ones, so that the change is
	// their ratio, and of shares arithmetic ones.
	Old    *float64 `json:"old"`
	New    *float64 `json:"new"`
	OldN   int      `json:"old_lifecycles"`
	NewN   int      `json:"new_lifecycles"`
	Change *float64 `json:"change"` // new / old − 1; of a share new − old
	// Interval is the change's, at the level, for this row alone.
	Interval     *Interval `json:"interval"`
	PValue       *float64  `json:"p_value"` // two-sided, of no change
	PValueMethod string    `json:"p_value_method,omitempty"`
	Adjusted     *float64  `json:"adjusted_p_value"` // by [Holm], over all rows that were compared
	Verdict      Verdict   `json:"verdict"`
	Reason       string    `json:"reason,omitempty"`
	// Lost says that the old run has the number and the new one does not.
	Lost bool `json:"lost,omitempty"`
}

// Comparison is what changed between two runs.
type Comparison struct {
	Schema  string  `json:"schema"`
	Old     Subject `json:"old"`
	New     Subject `json:"new"`
	Minimum float64 `json:"minimum_change"`
	Level   float64 `json:"level"`
	// Against are all the reasons for which the runs can't be compared at all.
	Against []string `json:"not_comparable"`
	// Differences are what else differs between the runs, beside their numbers.
	Differences []string `json:"differences"`
	// Compared is how many rows the correction is over: those that could have
	// come out as different.
	Compared int     `json:"compared"`
	Rows     []Row   `json:"rows"`
	Verdict  Verdict `json:"verdict"`
	Reason   string  `json:"reason,omitempty"`
}

// Subject is one of the two runs.
type Subject struct {
	Bundle     string `json:"bundle"` // as it was named
	Run        string `json:"run"`
	Plan       string `json:"plan"`
	PlanSHA256 string `json:"plan_sha256"`
	SumsSHA256 string `json:"sums_sha256"` // of its SHA256SUMS; empty: it has none
	Revision   string `json:"revision"`    // of the project's checkout; empty: not known
}

// Of judges the changes of each series, all together.
func Of(series []Series, o Options) (Comparison, error) {
	if err := o.Check(); err != nil {
		return Comparison{}, err
	}
	return judged(series, o, true), nil
}

// judged is [Of], without the intervals where only verdicts are asked for.
func judged(series []Series, o Options, intervals bool) Comparison {
	c := Comparison{Schema: Schema, Minimum: o.Minimum, Level: o.Level, Against: []string{}, Differences: []string{}, Rows: []Row{}}
	var compared []int
	var p []float64
	for i, s := range series {
		r := s.row(o)
		if r.Verdict == "" {
			if intervals {
				r.Interval = s.interval(o)
			}
			compared, p = append(compared, i), append(p, *r.PValue)
		}
		c.Rows = append(c.Rows, r)
	}
	c.Compared = len(compared)
	for place, adjusted := range Holm(p) {
		c.Rows[compared[place]].judge(adjusted, len(compared), o)
	}
	c.Verdict, c.Reason = c.verdict()
	return c
}

// Refused is a comparison of runs that can't be compared, with every reason.
func Refused(against []string, o Options) Comparison {
	return Comparison{
		Schema: Schema, Minimum: o.Minimum, Level: o.Level, Against: against, Differences: []string{}, Rows: []Row{},
		Verdict: NotComparable, Reason: fmt.Sprintf("the runs can't be compared, for %d reason(s)", len(against)),
	}
}

// relative says whether a unit's change is a ratio, and whether more of it is
// better; known is false for a unit that this package does not know.
func relative(unit string) (ratio, more, known bool) {
	switch unit {
	case "tok/s":
		return true, true, true
	case "s":
		return true, false, true
	case "ratio":
		return false, false, true
	default:
		return false, false, false
	}
}

// row is the row of a series, without a verdict if that takes the other rows.
func (s Series) row(o Options) Row {
	r := Row{Where: s.Where, Arm: s.Arm, Metric: s.Metric, Unit: s.Unit, OldN: len(s.Old.Values), NewN: len(s.New.Values)}
	ratio, _, known := relative(s.Unit)
	old, oldWhy := s.Old.usable(ratio)
	later, newWhy := s.New.usable(ratio)
	if oldWhy == "" {
		r.Old = average(old, ratio)
	}
	if newWhy == "" {
		r.New = average(later, ratio)
	}
	switch {
	case !known:
		r.Verdict, r.Reason = NotComparable, fmt.Sprintf("whether more or less of %q is better is not known", s.Unit)
		return r
	case oldWhy != "" && newWhy != "" && oldWhy != newWhy:
		r.Verdict, r.Reason = NotComparable, "old: "+oldWhy+"; new: "+newWhy
		return r
	case oldWhy != "" && newWhy != "":
		r.Verdict, r.Reason = NotComparable, "old and new: "+oldWhy
		return r
	case oldWhy != "":
		r.Verdict, r.Reason = NotComparable, "old: "+oldWhy
		return r
	case newWhy != "":
		r.Verdict, r.Reason, r.Lost = NotComparable, "new: "+newWhy, true
		return r
	}
	r.Change = change(mean(later)-mean(old), ratio)
	p, exact := Permutation(old, later, o.Seed)
	r.PValue, r.PValueMethod = &p, method(len(old), len(later), exact)
	if slices.Min(old) == slices.Max(old) && slices.Equal(slices.Compact(slices.Concat(old, later)), old[:1]) {
		// However they are dealt nothing differs, so that it is no chance of a
		// false alarm and costs the others nothing (Tarone, A Modified Bonferroni
		// Method for Discrete Data, Biometrics 46, 1990).
		r.Adjusted, r.Verdict, r.Reason = &p, NoDifference, "every lifecycle of both runs has the same value"
	}
	return r
}

func (s Series) interval(o Options) *Interval {
	ratio, _, _ := relative(s.Unit)
	old, _ := s.Old.usable(ratio)
	later, _ := s.New.usable(ratio)
	i := Invert(old, later, o.Level, o.Seed)
	if i.Low != nil {
		i = Interval{Low: change(*i.Low, ratio), High: change(*i.High, ratio)}
	}
	return &i
}

// usable are the values as they are compared, logarithms where a change is a
// ratio, or why there are none.
func (s Sample) usable(ratio bool) ([]float64, string) {
	if s.Reason != "" {
		return nil, s.Reason
	}
	if len(s.Values) == 0 {
		return nil, "no lifecycle has it"
	}
	out := slices.Clone(s.Values)
	for i, v := range out {
		switch {
		case math.IsNaN(v) || math.IsInf(v, 0):
			return nil, fmt.Sprintf("a lifecycle's value is %g, which is no number", v)
		case ratio && v <= 0:
			return nil, fmt.Sprintf("a lifecycle's value is %g, of which there is no ratio", v)
		case ratio:
			out[i] = math.Log(v)
		}
	}
	return out, ""
}

// judge gives a row its verdict. Different is what the adjusted p-value calls so
// and changed by the minimum at least; of a smaller change nothing is said to be
// better or worse, however sure it is.
func (r *Row) judge(adjusted float64, comparisons int, o Options) {
	r.Adjusted = &adjusted
	_, more, _ := relative(r.Unit)
	alpha := 1 - o.Level + 1e-12
	switch {
	case float64(comparisons)*SmallestP(r.OldN, r.NewN) > alpha:
		need := FewestLifecycles(comparisons, o.Level)
		r.Verdict = TooFew
		r.Reason = fmt.Sprintf("%d against %d lifecycles can show none of %d comparisons at %s: run %d of each arm, or compare fewer metrics", r.OldN, r.NewN, comparisons, percent(o.Level), need)
	case adjusted > alpha:
		r.Verdict = NoDifference
	case math.Abs(*r.Change) < o.Minimum:
		r.Verdict, r.Reason = NoDifference, fmt.Sprintf("a change is shown, and it is smaller than the minimum of %s", percent(o.Minimum))
	case (*r.Change > 0) == more:
		r.Verdict = Better
	default:
		r.Verdict = Worse
	}
}

// verdict is that of all rows.
func (c Comparison) verdict() (Verdict, string) {
	of := map[Verdict]int{}
	lost := 0
	for _, r := range c.Rows {
		of[r.Verdict]++
		if r.Lost {
			lost++
		}
	}
	decided := of[Better] + of[NoDifference]
	switch {
	case of[Worse] > 0:
		return Worse, fmt.Sprintf("%d of %d compared numbers are worse", of[Worse], c.Compared)
	case lost > 0:
		return NotComparable, fmt.Sprintf("the new run lacks %d number(s) that the old one has", lost)
	case len(c.Rows) == 0:
		return NotComparable, "there is no number to compare"
	case c.Compared == 0 && of[NoDifference] == 0:
		return NotComparable, "not one number could be compared"
	case of[TooFew] > 0 && of[TooFew] == c.Compared:
		return TooFew, "no number could be shown to differ, whatever it did"
	case of[Better] > 0:
		return Better, fmt.Sprintf("%d of %d compared numbers are better, and none is worse", of[Better], c.Compared)
	default:
		return NoDifference, fmt.Sprintf("of %d numbers none is shown to be better or worse", decided)
	}
}

// change is a difference of means as it is shown.
func change(difference float64, ratio bool) *float64 {
	if ratio {
		difference = math.Expm1(difference)
	}
	return rounded(difference)
}

func average(values []float64, ratio bool) *float64 {
	m := mean(values)
	if ratio {
		m = math.Exp(m)
	}
	return rounded(m)
}

func mean(values []float64) float64 {
	total := 0.0
	for _, v := range values {
		total += v
	}
	return total / float64(len(values))
}

func rounded(v float64) *float64 {
	v = metric.Round(v)
	return &v
}

func percent(share float64) string {
	return strconv.FormatFloat(math.Round(share*1e6)/1e4, 'g', -1, 64) + " %"
}
