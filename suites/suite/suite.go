package suite

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	"assay/harness/plan"
)

// For makes the containers of one kind of experiment: one for each plan in the
// suite's own plans folder, or for the plan that -plan names. body is called
// once for each, inside its container. [Main] has refused plans that don't
// load.
func For(kind plan.Experiment, body func(*Experiment)) bool {
	var experiments []*Experiment
	ginkgo.Describe(string(kind), func() {
		files, _ := planFiles()
		for _, file := range files {
			exp, err := newExperiment(file, filter())
			if err != nil || exp.Plan.Experiment != kind {
				continue
			}
			exp.progress = newProgress(os.Stderr)
			experiments = append(experiments, exp)
			ginkgo.Context(exp.Plan.Name, exp.Labels(), func() { body(exp) })
		}
	})
	return ginkgo.ReportAfterSuite("the bundles of "+string(kind), func(ctx ginkgo.SpecContext, report ginkgo.Report) {
		var err error
		for _, exp := range experiments {
			err = errors.Join(err, exp.close(ctx, report))
		}
		if err != nil {
			ginkgo.Fail(err.Error())
		}
	})
}

// Main is a suite's entry point. It refuses what would make the evidence
// worthless before anything is run.
func Main(t *testing.T, name string, labels ...string) {
	config, _ := ginkgo.GinkgoConfiguration()
	err := guard(config)
	// A spec that failed for it would have no label, and a filter would leave it
	// out: green, and nothing done.
	if planErr := loadPlans(); planErr != nil {
		refuse(t, planErr)
	}
	known, knownErr := knownLabels(labels)
	err = errors.Join(err, knownErr)
	if knownErr == nil {
		err = errors.Join(err, unknown(config.LabelFilter, known))
	}
	if err != nil {
		refuse(t, err)
	}
	gomega.RegisterFailHandler(ginkgo.Fail)
	ginkgo.RunSpecs(t, name)
}

func refuse(t *testing.T, err error) {
	t.Fatal("refused: " + strings.ReplaceAll(err.Error(), "\n", "\nrefused: "))
}

var _ = ginkgo.AddTreeConstructionNodeArgsTransformer(noRetries)

func filter() string {
	config, _ := ginkgo.GinkgoConfiguration()
	return config.LabelFilter
}

// loadPlans finds every fault of every plan that this suite would run, and of
// what it is to go on from.
func loadPlans() error {
	files, err := planFiles()
	for _, file := range files {
		_, fault := newExperiment(file, filter())
		err = errors.Join(err, fault)
	}
	return err
}

// planFiles are the plans that this suite runs: those in its plans folder. Those
// in plans/named run only where -plan names one.
func planFiles() ([]string, error) {
	if *planFlag != "" {
		file, err := atRoot(*planFlag)
		return []string{file}, err
	}
	files, err := filepath.Glob(filepath.Join("plans", "*.yaml"))
	slices.Sort(files)
	return files, err
}

// knownLabels are all labels of all plans of the module, with those given.
func knownLabels(labels []string) ([]string, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	var files []string
	for _, folder := range []string{"plans", filepath.Join("plans", "named")} {
		found, err := filepath.Glob(filepath.Join(root, "suites", "*", folder, "*.yaml"))
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	if own, err := planFiles(); err == nil {
		files = append(files, own...)
	}
	known := append([]string{"protocol", "recorded"}, labels...)
	for _, file := range files {
		p, err := plan.Load(file)
		if err != nil {
			continue // it is a spec of its suite, and fails there
		}
		known = append(known, p.Labels...)
		for _, tier := range p.Sweep.Tiers {
			known = append(known, p.TierLabel(tier))
		}
		if p.Arrivals != nil {
			known = append(known, plan.SearchLabel, plan.RateLabel(0))
			for _, r := range p.Arrivals.Levels() {
				known = append(known, plan.RateLabel(float64(r)))
			}
		}
		if p.Pairing != nil {
			for _, lane := range p.Pairing.Lanes.Each() {
				known = append(known, plan.LaneLabel(lane))
			}
		}
	}
	slices.Sort(known)
	return slices.Compact(known), nil
}
