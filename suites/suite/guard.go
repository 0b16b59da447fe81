package suite

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
)

// guard refuses the ways of running Ginkgo that would make the evidence
// worthless, all of them at once.
func guard(config types.SuiteConfig) error {
	var errs []error
	if config.FlakeAttempts > 0 {
		errs = append(errs, fmt.Errorf("--flake-attempts=%d: a spec that is tried again until it passes hides its failures; run without it", config.FlakeAttempts))
	}
	if config.MustPassRepeatedly > 1 {
		errs = append(errs, fmt.Errorf("--must-pass-repeatedly=%d: a wave is recorded once; declare repeats in the plan", config.MustPassRepeatedly))
	}
	if config.ParallelTotal > 1 {
		errs = append(errs, fmt.Errorf("%d parallel processes: they would load each other's servers; run without -p and --procs", config.ParallelTotal))
	}
	if config.RandomizeAllSpecs {
		errs = append(errs, errors.New("--randomize-all: the order is the schedule's; run without it"))
	}
	// A spec that judges the evidence must not be left out by its text: a label
	// takes the judging specs along.
	for flag, given := range map[string]int{"--focus": len(config.FocusStrings), "--skip": len(config.SkipStrings), "--focus-file": len(config.FocusFiles), "--skip-file": len(config.SkipFiles)} {
		if given > 0 {
			errs = append(errs, fmt.Errorf("%s: it can leave out the specs that judge; pick by labels, with --label-filter", flag))
		}
	}
	return errors.Join(errs...)
}

// noRetries refuses decorators that would repeat a spec.
func noRetries(_ types.NodeType, _ ginkgo.Offset, text string, args []any) (string, []any, []error) {
	var errs []error
	for _, arg := range args {
		switch n := arg.(type) {
		case ginkgo.FlakeAttempts:
			errs = append(errs, fmt.Errorf("%q has FlakeAttempts(%d): retries do not exist here", text, n))
		case ginkgo.MustPassRepeatedly:
			errs = append(errs, fmt.Errorf("%q has MustPassRepeatedly(%d): a wave is recorded once", text, n))
		}
	}
	return text, args, errs
}

// asked says whether a label filter asked for a spec by name: it takes the
// spec's labels, and would not take them without the engine's. "gpu" and
// "gpu && tier:8" ask for a GPU's specs; "!slow" does not, nor does no filter.
func asked(filter string, labels, engine []string) (bool, error) {
	if strings.TrimSpace(filter) == "" {
		return false, nil
	}
	takes, err := types.ParseLabelFilter(filter)
	if err != nil {
		return false, err
	}
	without := slices.DeleteFunc(slices.Clone(labels), func(l string) bool { return slices.Contains(engine, l) })
	return takes(labels) && !takes(without), nil
}

var (
	filterRegexps   = regexp.MustCompile(`/[^/]*/`)
	filterOperators = regexp.MustCompile(`[&|!(),{}]+`)
	filterSetTest   = regexp.MustCompile(`^\S+:\s`)
)

// named lists the labels that a filter spells out. What it says by a regular
// expression or a set operation names none.
func named(filter string) []string {
	var out []string
	for _, word := range filterOperators.Split(filterRegexps.ReplaceAllString(filter, " "), -1) {
		word = strings.TrimSpace(word)
		if word == "" || filterSetTest.MatchString(word+" ") && strings.HasSuffix(strings.Fields(word)[0], ":") {
			continue
		}
		out = append(out, word)
	}
	return out
}

// unknown is an error if the filter names a label that nothing in the module
// has: a suite that a filter empties passes quietly, and a misspelt label
// would empty them all.
func unknown(filter string, known []string) error {
	lower := make([]string, len(known))
	for i, k := range known {
		lower[i] = strings.ToLower(k)
	}
	var missing []string
	for _, label := range named(filter) {
		if !slices.Contains(lower, strings.ToLower(label)) {
			missing = append(missing, label)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("--label-filter %q names %s, which no plan has; there are: %s",
		filter, strings.Join(missing, ", "), strings.Join(known, ", "))
}
