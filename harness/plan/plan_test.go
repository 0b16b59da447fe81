package plan_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"assay/harness/plan"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		NewWithT(t).Expect(os.WriteFile(file, []byte(got), 0o644)).To(Succeed())
	}
	want, err := os.ReadFile(file)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(got).To(Equal(string(want)), "go test -update writes it anew")
}

func TestEveryMistakeIsToldAtOnceWithItsPlace(t *testing.T) {
	g := NewWithT(t)
	_, err := plan.Load("testdata/mistakes.yaml")
	var mistakes *plan.Mistakes
	g.Expect(errors.As(err, &mistakes)).To(BeTrue())
	g.Expect(len(mistakes.List)).To(BeNumerically(">=", 20))
	golden(t, "mistakes.golden", err.Error()+"\n")
}

// edit parses the shipped emulated plan after a change to its text.
func edit(t *testing.T, old, new string) (*plan.Plan, error) {
	t.Helper()
	data, err := os.ReadFile("../../suites/concurrency/plans/emulated.yaml")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(string(data)).To(ContainSubstring(old))
	return plan.Parse("plan.yaml", []byte(strings.Replace(string(data), old, new, 1)))
}

func TestCombinationsThatCanNotBeRun(t *testing.T) {
	for _, test := range []struct{ old, new, says string }{
		{"role: candidate", "role: baseline", "both arms are the baseline"},
		{"name: vllm", "name: naive", "the name of arms[0] already"},
		{"time_scale: 20", "time_scale: 0", "time_scale"},
		{"emulated: {parameters: t4-vllm, startup: 40s}", "endpoint: {url: http://127.0.0.1:1}", "not every arm is emulated"},
		{"tiers: [1, 8, 32, 64]", "tiers: [1, 8, 8]", "rising order"},
		{"settle: {idle: 5m}", "settle: none", "carry_over"},
		{"settle: {idle: 5m}", "settle: {idle: 0s}", "leaves no time"},
		{"parameters: t4-vllm", "parameters: t4-vlm", "no set"},
		{"startup: 40s", "startup: 40s, faults: [{kind: exit, status: 500}]", "goes with http_status"},
		{"startup: 40s", "startup: 40s, faults: [{kind: exitt}]", "did you mean exit?"},
		{"labels: [emulated]", "labels: [emulated, emulated]", "twice"},
		{"experiment: concurrency", "experiment: crossover", "does not run yet"},
		{"    on_disconnect: cancel\n", "", "what this server does with a request"},
		{"    on_disconnect: cancel\n", "    on_disconnect: unknown\n", "for an endpoint"},
		{"served_as: emulated", `served_as: "${NAME}"`, "belong to a machine"},
		{"seed: 20260920", "seed: 1\nseed: 2", "second time: the first is on line"},
		{"seed: 20260920", "seed: [", "no valid YAML"},
		{"seed: 20260920", "seed: &a 1", "not used in plans"},
		{"request: 60s", "request: 60", "60s"},
	} {
		t.Run(test.says, func(t *testing.T) {
			_, err := edit(t, test.old, test.new)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(test.says)))
			NewWithT(t).Expect(err).To(MatchError(MatchRegexp(`^plan.yaml:\d+:\d+: `)))
		})
	}
}

func TestWhatDecidesTheExperimentDecidesTheHash(t *testing.T) {
	g := NewWithT(t)
	hash := func(old, new string) string {
		p, err := edit(t, old, new)
		g.Expect(err).NotTo(HaveOccurred())
		f, err := plan.Freeze(p)
		g.Expect(err).NotTo(HaveOccurred())
		return f.SHA256
	}
	same := hash("seed: 20260920", "seed: 20260920")
	g.Expect(hash("seed: 20260920", "seed:   20260920 # a comment")).To(Equal(same))
	g.Expect(hash("request: 60s", "request: 1m")).To(Equal(same))
	g.Expect(hash("request: 60s", "request: 60s, poll: 50ms")).To(Equal(same), "a default that is written out")
	g.Expect(hash("seed: 20260920", "seed: 20260921")).NotTo(Equal(same))
	g.Expect(hash("coalesced: 50%", "coalesced: 0%")).NotTo(Equal(hash("coalesced: 50%, ", "")), "0% is not the default")
}

func TestVariablesStayOutOfTheHashAndAreRecorded(t *testing.T) {
	g := NewWithT(t)
	data := `
schema: assay.plan/v1
name: x
experiment: concurrency
labels: [cpu]
seed: 1
model: {name: m, revision: r, served_as: m}
arms:
  - {name: a, role: baseline, on_disconnect: finish, engine: {process: {command: ["${SERVER}", --port, "${PORT}"], env: {HF_TOKEN: "${HF_TOKEN}"}, dir: "${DIR:-/srv}"}}}
  - {name: b, role: candidate, engine: {endpoint: {url: "${URL}", api_key_env: KEY}}}
workload: {prompts: eight, max_tokens: 1, lane: natural}
schedule: {tiers: [1], repeats: 1}
timeouts: {ready: 1s, request: 1s, stop: 1s}
claims: []
`
	p, err := plan.Parse("p", []byte(data))
	g.Expect(err).NotTo(HaveOccurred())
	_, _, err = p.Expand(func(string) (string, bool) { return "", false })
	g.Expect(err).To(MatchError(And(ContainSubstring("SERVER"), ContainSubstring("HF_TOKEN"), ContainSubstring("URL"))))
	expanded, said, err := p.Expand(func(name string) (string, bool) {
		v, ok := map[string]string{"SERVER": "/bin/serve", "HF_TOKEN": "hf_secret", "URL": "http://127.0.0.1:9/"}[name]
		return v, ok
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(expanded.Arms[0].Engine.Process.Command).To(Equal([]string{"/bin/serve", "--port", "${PORT}"}))
	g.Expect(expanded.Arms[0].Engine.Process.Dir).To(Equal("/srv"))
	g.Expect(expanded.Arms[1].Engine.Endpoint.URL).To(Equal("http://127.0.0.1:9"))
	g.Expect(said).To(Equal(map[string]string{"SERVER": "/bin/serve", "HF_TOKEN": "[redacted secret]", "URL": "http://127.0.0.1:9/", "DIR": "/srv"}))
	g.Expect(p.Arms[0].Engine.Process.Command[0]).To(Equal("${SERVER}"), "the frozen plan keeps the name")
}

func TestTheScheduleCountsEverything(t *testing.T) {
	g := NewWithT(t)
	p, err := edit(t, "lifecycles: 1", "lifecycles: 1, warmup: 2")
	g.Expect(err).NotTo(HaveOccurred())
	s := p.Schedule()
	g.Expect(s.Waves()).To(Equal(2 * (2 + 12)))
	g.Expect(s.Requests()).To(Equal(2 * (2 + 3*(1+8+32+64))))
	g.Expect(s.Lifecycles[0].Arm).To(Equal("naive"))
	g.Expect(s.Lifecycles[1].Arm).To(Equal("vllm"))
	g.Expect(s.SHA256()).To(Equal(p.Schedule().SHA256()))
	g.Expect(p.WorstCase()).To(BeNumerically(">", time.Minute))
}

func TestPairsAreCounterbalancedFromTheSeed(t *testing.T) {
	g := NewWithT(t)
	orders := map[string]bool{}
	for seed := range 20 {
		p, err := edit(t, "lifecycles: 1", "lifecycles: 4")
		g.Expect(err).NotTo(HaveOccurred())
		p.Seed = uint64(seed)
		order := ""
		for i, l := range p.Schedule().Lifecycles {
			g.Expect(l.Number).To(Equal(i + 1))
			g.Expect(l.Pair).To(Equal(i/2 + 1))
			order += map[string]string{"naive": "A", "vllm": "B"}[l.Arm]
		}
		for _, block := range []string{order[:4], order[4:]} {
			g.Expect(block).To(BeElementOf("ABBA", "BAAB"))
		}
		orders[order] = true
	}
	g.Expect(len(orders)).To(Equal(4), "%v", orders)
}

func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("../../suites/*/plans/*.yaml")
	for _, file := range append(files, "testdata/mistakes.yaml") {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("a: [1, {b: c}]\n--- \nd"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := plan.Parse("f", data)
		if err != nil {
			var mistakes *plan.Mistakes
			if !errors.As(err, &mistakes) || len(mistakes.List) == 0 {
				t.Fatalf("an error without mistakes: %v", err)
			}
			return
		}
		once, err := plan.Freeze(p)
		if err != nil {
			t.Fatal(err)
		}
		again, err := plan.Parse("f", once.Bytes)
		if err != nil {
			t.Fatalf("a frozen plan that does not load: %v\n%s", err, once.Bytes)
		}
		twice, _ := plan.Freeze(again)
		if string(twice.Bytes) != string(once.Bytes) {
			t.Fatalf("no fixed point:\n%s\n%s", once.Bytes, twice.Bytes)
		}
	})
}

func ExampleParse() {
	_, err := plan.Parse("my.yaml", []byte("schema: assay.plan/v1\nname: My Plan\n"))
	fmt.Println(strings.Split(err.Error(), "\n")[0])
	// Output: my.yaml:1:1: arms: missing
}
