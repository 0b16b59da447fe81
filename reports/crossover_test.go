package reports_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"assay/golden"
	"assay/harness/plan"
	"assay/harness/record"
	"assay/harness/record/recordtest"
	"assay/reports"
	"assay/workloads"
)

// answered gives each attempt its task, and the right answer; in compiled, the
// natural lane's third and eleventh are wrong.
func answered(t *testing.T, p *plan.Plan) func(r record.Request) recordtest.Answered {
	t.Helper()
	tasks, err := reports.Tasks(p)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return func(r record.Request) recordtest.Answered {
		task := workloads.Of(tasks[plan.Lane(r.Lane)], r.Ordinal)
		a := recordtest.Answered{PromptID: task.ID, Text: task.Answer, Reason: "the fixed lane forces tokens past the answer's end"}
		if r.Arm == "compiled" && r.Lane == "natural" && (r.Ordinal == 3 || r.Ordinal == 11) {
			a.Text = "I do not know."
		}
		if r.Lane == "natural" {
			correct, _ := task.Evaluate(a.Text)
			a.Correct = &correct
		}
		return a
	}
}

// reset cuts an attempt of the candidate's in the third pair of a lane's.
func reset(r record.Request) bool { return r.Arm == "compiled" && r.Pair == 5 && r.Ordinal == 20 }

func crossovers(t *testing.T, o recordtest.Options, edits ...string) (string, *plan.Plan) {
	t.Helper()
	p := recordtest.Pairs(edits...)
	dir := filepath.Join(t.TempDir(), "bundle")
	return written(t, dir, p, recordtest.Sequences(p, o, answered(t, p))), p
}

func TestACrossoversBundleHolds(t *testing.T) {
	for name, edits := range map[string][]string{
		"two lanes": nil,
		"stop_pair": {"exclude_pair", "stop_pair"},
		"one lane":  {"  natural: {tasks: mixed, requests: 12, cycle: 12, max_tokens: 8}\n", "", ", natural_quality", ""},
	} {
		for _, fails := range []func(record.Request) bool{nil, reset} {
			dir, _ := crossovers(t, recordtest.Options{Fails: fails, Partial: func(record.Request) int { return 2 }}, edits...)
			v, err := reports.Verify(dir)
			g := NewWithT(t)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(v.Reasons).To(BeEmpty(), name)
			g.Expect(v.Validity.Reasons).To(BeEmpty(), name)
		}
	}
}

func TestWhatPeopleReadOfACrossover(t *testing.T) {
	g := NewWithT(t)
	dir, p := crossovers(t, recordtest.Options{Fails: reset, Partial: func(record.Request) int { return 2 }})
	b, err := reports.Read(dir)
	g.Expect(err).NotTo(HaveOccurred())
	figure, err := os.ReadFile(filepath.Join(dir, "curve-fixed.svg"))
	g.Expect(err).NotTo(HaveOccurred())
	hide := strings.NewReplacer(b.Summary.PlanSHA256, "<the plan's SHA-256>", b.Summary.ScheduleSHA256, "<the schedule's SHA-256>")
	for name, got := range map[string]string{"crossover.md": reports.Markdown(b), "crossover.txt": reports.Terminal(b), "curve-fixed.svg": string(figure)} {
		got = hide.Replace(got)
		golden.Hold(t, name, got)
		for _, line := range strings.Split(got, "\n") {
			if strings.HasSuffix(name, ".txt") {
				g.Expect(len([]rune(line))).To(BeNumerically("<=", 120), line)
			}
		}
	}
	g.Expect(p.Pairing.Failure).To(Equal(plan.ExcludePair))
}

func TestEachWayToForgeACrossoverIsNamed(t *testing.T) {
	p := recordtest.Pairs()
	for says, change := range map[string]func(run *record.Run){
		"its answer is called right, and its evaluator says wrong": func(run *record.Run) { right := true; of(run, "compiled", "natural", 3).Correct = &right },
		"it was asked copy/1/9, and the plan's task there is":      func(run *record.Run) { swap(run, "copy/1/9") },
		"correct is null since \"nobody looked\"":                  func(run *record.Run) { of(run, "eager", "fixed", 2).Nulls["correct"] = "nobody looked" },
		"it is a sequence of 12 in the natural lane":               func(run *record.Run) { run.Waves[0].Requests, run.Waves[0].Lane = 12, "natural" },
		"in the natural lane, the schedule has":                    func(run *record.Run) { run.Lifecycles[0].Lane = "natural" },
		"before the one ahead of it had ended": func(run *record.Run) {
			r := of(run, "eager", "fixed", 2)
			r.ScheduledAt -= 200_000
			*r.SentAt -= 200_000
		},
		"a sequence has a release lag": func(run *record.Run) {
			zero := int64(0)
			run.Waves[1].ReleaseLag = &zero
			delete(run.Waves[1].Nulls, "release_lag_ns")
		},
		"the plan lets nothing go on after an interruption": func(run *record.Run) {
			run.Environment.Invocations = []record.Invocation{{StartedAt: "2026-01-01T00:00:00Z", Cause: "weather", Facts: map[string]record.Fact{}}}
		},
	} {
		t.Run(says, func(t *testing.T) {
			g := NewWithT(t)
			run := recordtest.Sequences(p, recordtest.Options{}, answered(t, p))
			change(&run)
			v, err := reports.Verify(written(t, filepath.Join(t.TempDir(), "bundle"), p, run))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(v.Reasons).To(ContainElement(ContainSubstring(says)))
		})
	}
}

// of is an attempt of the first lifecycle of an arm in a lane.
func of(run *record.Run, arm, lane string, ordinal int) *record.Request {
	for i := range run.Requests {
		if r := &run.Requests[i]; r.Arm == arm && r.Lane == lane && r.Ordinal == ordinal {
			return r
		}
	}
	panic("there is no such attempt")
}

// swap asks something else at the first ordinal, everywhere.
func swap(run *record.Run, id string) {
	for i := range run.Requests {
		if run.Requests[i].Ordinal == 1 {
			run.Requests[i].PromptID = id
		}
	}
}

func TestAFigureThatWasRedrawnIsNotTheRecords(t *testing.T) {
	g := NewWithT(t)
	dir, _ := crossovers(t, recordtest.Options{})
	path := filepath.Join(dir, "curve-fixed.svg")
	data, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	for change, says := range map[[2]string]string{
		{"mean of pairs", "mean of all pairs"}: "curve-fixed.svg: it is not the figure that the records give",
		{"<path d=\"M", "<path d=\"M9"}:        "curve-fixed.svg: it has",
	} {
		text := strings.Replace(string(data), change[0], change[1], 1)
		g.Expect(text).NotTo(Equal(string(data)), change[0])
		g.Expect(os.WriteFile(path, []byte(text), 0o644)).To(Succeed())
		g.Expect(reports.Seal(dir)).To(Succeed())
		v, err := reports.Verify(dir)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(v.Reasons).To(ContainElement(ContainSubstring(says)))
	}
}
