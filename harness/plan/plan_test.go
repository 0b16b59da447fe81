package plan_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"assay/golden"
	"assay/harness/plan"
)

func TestEveryMistakeIsToldAtOnceWithItsPlace(t *testing.T) {
	g := NewWithT(t)
	_, err := plan.Load("testdata/mistakes.yaml")
	var mistakes *plan.Mistakes
	g.Expect(errors.As(err, &mistakes)).To(BeTrue())
	g.Expect(len(mistakes.List)).To(BeNumerically(">=", 20))
	golden.Hold(t, "mistakes.golden", err.Error()+"\n")
}

// edit parses the shipped emulated plan after a change to its text.
func edit(t *testing.T, old, new string) (*plan.Plan, error) {
	t.Helper()
	data, err := os.ReadFile("../../suites/concurrency/plans/emulated.yaml")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(string(data)).To(ContainSubstring(old))
	return plan.Parse("plan.yaml", []byte(strings.Replace(string(data), old, new, 1)))
}

// two is a plan of a process and an endpoint, for what an emulated one lacks.
const two = `
schema: assay.plan/v1
name: x
experiment: concurrency
labels: [cpu]
seed: 1
model: {name: m, revision: r, served_as: m}
arms:
  - {name: a, role: baseline, on_disconnect: finish, engine: {process: {command: ["${SERVER}", --port, "${PORT}"], env: {HF_TOKEN: "${HF_TOKEN}", PASSWORD: "${PLAIN}"}, dir: "${DIR:-/srv}"}}}
  - {name: b, role: candidate, engine: {endpoint: {url: "${URL}", api_key_env: GATE}}}
workload: {prompts: eight, max_tokens: 1, lane: natural}
schedule: {tiers: [1], repeats: 1}
timeouts: {ready: 1s, request: 1s, stop: 1s}
claims: []
`

func TestMistakesSayWhatWouldBeRight(t *testing.T) {
	shipped, err := os.ReadFile("../../suites/concurrency/plans/emulated.yaml")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	everything, err := os.ReadFile("testdata/everything.yaml")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, test := range []struct {
		in             string // what is edited
		old, new, says string
	}{
		// Combinations.
		{string(shipped), "role: candidate", "role: baseline", "arms[1].role: both arms are the baseline"},
		{string(shipped), "name: vllm", "name: naive", "the name of arms[0] already"},
		{string(shipped), "emulated: {parameters: t4-vllm, startup: 40s}", "endpoint: {url: http://127.0.0.1:1}", "time_scale: 20 scales emulated time, and not every arm is emulated"},
		{string(shipped), "emulated: {parameters: t4-vllm, startup: 40s}", "health: /health", "arms[1].engine: it is none of container, process, endpoint and emulated"},
		{string(shipped), "startup: 40s}", "startup: 40s}\n      endpoint: {url: http://127.0.0.1:1}", "it is endpoint and emulated"},
		{string(shipped), "    on_disconnect: cancel\n", "", "what this server does with a request"},
		{string(shipped), "    on_disconnect: cancel\n", "    on_disconnect: unknown\n", "for an endpoint"},
		{string(everything), "identity: none", "identity: require", "a temperature of 0.7 draws them at random"},
		{string(everything), "{volume: weights,", "{volume: weights, source: /x,", "one of volume and source"},
		{string(everything), "{volume: weights, ", "{", "one of volume and source"},
		{string(everything), "target: /data", "target: /model", "another mount's target already"},
		// What is looked at beside the load.
		{string(everything), "gpu: 50ms", "gpu: 1ms", "telemetry.gpu: 1ms is faster than anything can be looked at"},
		{string(everything), "telemetry: {gpu: 50ms}", "telemetry: {gpu: 50ms, engine: 1s}", "telemetry.engine: no arm has a metrics page"},
		{string(shipped), "gates:", "telemetry: {gpu: 1s}\ngates:", "telemetry.gpu: no arm has a GPU of this machine"},
		{string(shipped), "gates: {", "gates: {engine_ttft: 1ms, ", "gates.engine_ttft: nothing is looked at that it could be held against: write telemetry.engine"},
		{string(shipped), "gates: {", "gates: {shared_gpu: invalid, ", "gates.shared_gpu: nothing is looked at"},
		{string(everything), "gpus: [\"${GPU}\", 1]", "gpus: none", "gpu_access: it gets no GPU"},
		// The schedule.
		{string(shipped), "tiers: [1, 8, 32, 64]", "tiers: [1, 8, 8]", "schedule.tiers[2]: 8 does not follow 8: write the tiers in rising order"},
		{string(shipped), "tiers: [1, 8, 32, 64]", "tiers: [0]", "schedule.tiers[0]: 0 is too small: write 1 or more"},
		{string(shipped), "tiers: [1, 8, 32, 64]", "tiers: []", "schedule.tiers: 0 of them are too few"},
		{string(shipped), "repeats: 3", "repeats: 0", "schedule.repeats: 0 is too small"},
		{string(shipped), "repeats: 3", "repeats: 90000", "schedule: 720000 waves and 18900000 requests: stay at or below"},
		{string(shipped), "lifecycles: 1", "lifecycles: 4000", "are more than a year"},
		{string(shipped), "settle: {idle: 5m}", "settle: {idle: 0s}", "schedule.settle.idle: 0s leaves no time"},
		{string(shipped), "settle: {idle: 5m}", "settle: never", `schedule.settle: "never" is wrong: write {idle: 5m}, or none`},
		{string(shipped), "settle: {idle: 5m}", "settle: {idel: 5m}", "schedule.settle.idel: unknown key; did you mean idle?"},
		// Times and gates: a zero is no default.
		{string(shipped), "request: 60s", "request: 0s", "timeouts.request: 0s leaves no time"},
		{string(shipped), "request: 60s", "request: 60s, poll: 0s", "timeouts.poll: 0s leaves no time"},
		{string(shipped), "request: 60s", "request: 60s, image: -1s", "timeouts.image: -1s is negative"},
		{string(shipped), "request: 60s", "request: 60s, poll: 60ms", "timeouts.poll: 60ms blurs"},
		{string(shipped), "ready: 10m", "ready: 10ms", "timeouts.ready: 10ms is over before the second poll"},
		{string(shipped), "request: 60s", "request: 10ms", "timeouts.request: 10ms is shorter than timeouts.poll"},
		{string(shipped), "request: 60s", "request: 60", "timeouts.request: 60 has no unit"},
		{string(shipped), "request: 60s", `request: "60"`, `timeouts.request: "60" has no unit`},
		{string(shipped), "request: 60s", "request: 99999999999h", `timeouts.request: "99999999999h" is wrong: write a time`},
		{string(shipped), "request: 60s", "request: 10000h", "timeouts.request: 10000h0m0s is longer than a year"},
		{string(shipped), "client_lag: 20ms", "client_lag: 0s", "gates.client_lag: 0s leaves no time"},
		{string(shipped), "coalesced: 50%", "coalesced: 101%", `gates.coalesced: "101%" is wrong: write a share from 0% to 100%`},
		{string(shipped), "coalesced: 50%", "coalesced: 0.5", "gates.coalesced: 0.5 has no unit"},
		{string(shipped), "startup: 40s", "startup: -1s", "emulated.startup: -1s is negative"},
		{string(shipped), "time_scale: 20", "time_scale: 0", "time_scale: 0 is too small"},
		{string(shipped), "time_scale: 20", "time_scale: .inf", "time_scale: inf"},
		// Words.
		{string(shipped), "parameters: t4-vllm", "parameters: t4-vlm", `there is no set "t4-vlm"`},
		{string(shipped), "startup: 40s", "startup: 40s, faults: [{kind: exit, status: 500}]", "goes with http_status"},
		{string(shipped), "startup: 40s", "startup: 40s, faults: [{kind: exitt}]", "did you mean exit?"},
		{string(shipped), "labels: [emulated]", "labels: [emulated, Emulated]", "labels[1]: \"Emulated\" stands there already, as labels[0]"},
		{string(shipped), "labels: [emulated]", `labels: ["a&&b"]`, `labels[0]: "a&&b" is wrong`},
		{string(shipped), "labels: [emulated]", "labels: []", "labels: 0 of them are too few"},
		{string(shipped), "labels: [emulated]", `labels: [""]`, `labels[0]: "" is wrong`},
		{string(shipped), "claims: [goodput, failures, ttft]", "claims: [goodput, ttft, goodput]", "claims[2]: \"goodput\" stands there already"},
		{string(shipped), "lane: natural", "lane: narrow", `workload.lane: "narrow" is not known: write natural`},
		// Numbers.
		{string(shipped), "seed: 20260920", "seed: 18446744073709551616", `seed: "18446744073709551616" is wrong: write a whole number`},
		{string(shipped), "seed: 20260920", "seed: 1.5", "seed: 1.5 is wrong: write a whole number"},
		{string(shipped), "max_tokens: 128", "max_tokens: [128]", "workload.max_tokens: a list is wrong"},
		{string(shipped), "max_tokens: 128, ", "", "workload.max_tokens: missing: write how many tokens"},
		// Variables, secrets, addresses.
		{string(shipped), "served_as: emulated", `served_as: "${NAME}"`, "belong to a machine"},
		{string(everything), `[--max-model-len, "2048"`, `[--max-model-len, "${LEN}"`, "belong to a machine"},
		{string(everything), "dir: \"${DIR:-/srv}\"", "dir: \"/srv/${PORT}\"", "the free port that the harness picks"},
		{string(everything), "${DATA}/x", "${DATA/x", "a ${ that is no ${NAME}"},
		{string(everything), "HF_TOKEN: \"${HF_TOKEN}\"", "HF_TOKEN: hf_1234", "env.HF_TOKEN: a secret that is written here would be in every bundle: write ${HF_TOKEN}"},
		{string(everything), "HF_TOKEN: \"${HF_TOKEN}\"", "HF_TOKEN: \"${HF_TOKEN:-hf_1234}\"", "a secret that is written here"},
		{string(everything), "gpus: [\"${GPU}\", 1]", "gpus: [GPU-1234, 1]", "gpus[0]: \"GPU-1234\" would be written into the bundle"},
		{string(everything), "gpus: [\"${GPU}\", 1]", "gpus: [1, 1]", "gpus[1]: \"1\" stands there twice"},
		{string(everything), "gpus: [\"${GPU}\", 1]", "gpus: both", `gpus: "both" is not known: write none, all, or a list`},
		{string(everything), "shm_size: 1024MiB", "shm_size: 1024", "shm_size: 1024 has no unit: write a size"},
		{string(everything), "Z: \"1\"", "Z: 1", "env.Z: 1 is wrong: write text; put numbers"},
		{two, `"${URL}"`, "http://host:8000/v1", "ends in /v1, which is added"},
		{two, `"${URL}"`, "http://me:word@host", "it holds a user or a password"},
		{two, `"${URL}"`, "http://host?x=1", "has a query"},
		{two, `"${URL}"`, "ftp://host", "write an http or https URL"},
		// YAML.
		{string(shipped), "seed: 20260920", "seed: 1\nseed: 2", "second time: the first is on line"},
		{string(shipped), "seed: 20260920", "seed: [", "no valid YAML"},
		{string(shipped), "seed: 20260920", "seed: &a 1", "not used in plans"},
	} {
		t.Run(test.says, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(test.in).To(ContainSubstring(test.old))
			_, err := plan.Parse("plan.yaml", []byte(strings.Replace(test.in, test.old, test.new, 1)))
			g.Expect(err).To(MatchError(ContainSubstring(test.says)))
			var mistakes *plan.Mistakes
			g.Expect(errors.As(err, &mistakes)).To(BeTrue())
			g.Expect(mistakes.List).To(HaveLen(1), "one slip is one message, and breeds no other:\n%s", err)
			g.Expect(err).To(MatchError(MatchRegexp(`^plan.yaml:\d+:\d+: `)))
		})
	}
}

func TestOneMistakeHidesNoOther(t *testing.T) {
	g := NewWithT(t)
	// A key twice, a wrong type, an unknown key, a bad combination and a zero,
	// in the same mapping where they can be.
	_, err := edit(t, "workload: {prompts: eight, max_tokens: 128, temperature: 0, lane: natural}",
		"workload: {prompts: nine, prompts: eight, max_tokens: many, temprature: 0, lane: natural}\nsampling: {top_p: 2, repetition_penalty: 0}")
	g.Expect(err).To(HaveOccurred())
	for _, says := range []string{
		`workload.prompts: there is no set "nine"`, "workload.prompts: the key stands here for the second time",
		"workload.max_tokens", "workload.temprature", "sampling.top_p", "sampling.repetition_penalty",
	} {
		g.Expect(err).To(MatchError(ContainSubstring(says)))
	}
	g.Expect(strings.Split(err.Error(), "\n")).To(HaveLen(6))
}

func TestTheCanonicalFormIsPinned(t *testing.T) {
	g := NewWithT(t)
	p, err := plan.Load("testdata/everything.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	frozen, err := plan.Freeze(p)
	g.Expect(err).NotTo(HaveOccurred())
	golden.Hold(t, "everything.frozen.golden", string(frozen.Bytes))
	again, err := plan.Parse("frozen", frozen.Bytes)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).To(Equal(p))

	p, err = plan.Parse("two", []byte(two))
	g.Expect(err).NotTo(HaveOccurred())
	frozen, err = plan.Freeze(p)
	g.Expect(err).NotTo(HaveOccurred())
	golden.Hold(t, "defaults.frozen.golden", string(frozen.Bytes))
}

func TestAPlanThatSaysChatIsOneThatSaysNothing(t *testing.T) {
	g := NewWithT(t)
	frozen := func(api string) string {
		p, err := edit(t, "workload: {", "workload: {"+api)
		g.Expect(err).NotTo(HaveOccurred())
		f, err := plan.Freeze(p)
		g.Expect(err).NotTo(HaveOccurred())
		return string(f.Bytes)
	}
	g.Expect(frozen("api: chat, ")).To(Equal(frozen("")), "the hashes of published plans depend on it")
	g.Expect(frozen("")).NotTo(ContainSubstring("api:"))
	g.Expect(frozen("api: completions, ")).To(ContainSubstring("api: completions"))
	_, err := edit(t, "workload: {", "workload: {api: responses, ")
	g.Expect(err).To(MatchError(ContainSubstring(`workload.api: "responses" is not known: write chat`)))
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

func variables(values map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := values[name]; return v, ok }
}

func TestVariablesStayOutOfTheHashAndAreRecorded(t *testing.T) {
	g := NewWithT(t)
	p, err := plan.Parse("p", []byte(two))
	g.Expect(err).NotTo(HaveOccurred())
	before, err := plan.Freeze(p)
	g.Expect(err).NotTo(HaveOccurred())
	here := variables(map[string]string{
		"SERVER": "/home/someone/bin/serve", "HF_TOKEN": "hf_secret", "PLAIN": "not so plain", "URL": "http://127.0.0.1:9/base/", "HOME": "/home/someone", "DIR": "", "GATE": "key",
	})
	expanded, said, err := p.Expand(here)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(expanded.Arms[0].Engine.Process.Command).To(Equal([]string{"/home/someone/bin/serve", "--port", "${PORT}"}))
	g.Expect(expanded.Arms[0].Engine.Process.Dir).To(Equal("/srv"), "an empty variable has its default, as in a shell")
	g.Expect(expanded.Arms[0].Engine.Process.Env["HF_TOKEN"]).To(Equal("hf_secret"))
	g.Expect(expanded.Arms[1].Engine.Endpoint.URL).To(Equal("http://127.0.0.1:9/base"))
	g.Expect(said).To(Equal(map[string]string{
		"SERVER": "~/bin/serve", "HF_TOKEN": "[redacted secret]", "PLAIN": "[redacted secret]", "URL": "http://127.0.0.1:9/base/", "DIR": "/srv",
	}))
	g.Expect(p.Secrets(here)).To(Equal([]string{"hf_secret", "key", "not so plain"}))
	after, err := plan.Freeze(p)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(after).To(Equal(before), "the plan itself keeps the names")
	g.Expect(string(after.Bytes)).To(ContainSubstring("${SERVER}"))
}

func TestEveryVariableThatIsMissingIsToldAtOnce(t *testing.T) {
	g := NewWithT(t)
	p, err := plan.Parse("p", []byte(two))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(p.Variables()).To(Equal([]string{"GATE", "HF_TOKEN", "PLAIN", "SERVER", "URL"}), "DIR has a default, and PORT is the harness's")
	_, _, err = p.Expand(variables(nil))
	for _, name := range []string{"SERVER", "HF_TOKEN", "PLAIN", "URL"} {
		g.Expect(err).To(MatchError(ContainSubstring("needs the environment variable " + name + ": set it")))
	}
	g.Expect(strings.Split(err.Error(), "\n")).To(HaveLen(4))
	_, _, err = p.Expand(variables(map[string]string{"SERVER": "", "HF_TOKEN": "", "PLAIN": "", "URL": "127.0.0.1:8000"}))
	g.Expect(err).To(MatchError(And(ContainSubstring("the command of a, ${SERVER}, is empty"), ContainSubstring(`the url of b: "127.0.0.1:8000" is no http`))))
}

func TestAPasswordInAnAddressIsNotRecorded(t *testing.T) {
	g := NewWithT(t)
	p, err := plan.Parse("p", []byte(strings.Replace(two, `command: ["${SERVER}"`, `command: ["${SERVER}", "${PROXY}"`, 1)))
	g.Expect(err).NotTo(HaveOccurred())
	_, said, err := p.Expand(variables(map[string]string{"SERVER": "s", "HF_TOKEN": "", "PLAIN": "", "URL": "http://h", "PROXY": "http://me:word@proxy:3128/"}))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(said["PROXY"]).To(Equal("http://[redacted secret]@proxy:3128/"))
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
	// 2 × (10m + 100s) + 28 × (5m + 200s + 60s), in emulated time; no images.
	g.Expect(p.WorstCaseEmulated().D()).To(Equal(2*(10*time.Minute+100*time.Second) + 28*(5*time.Minute+260*time.Second)))
	g.Expect(p.WorstCase()).To(Equal(p.WorstCaseEmulated().D() / 20))
	g.Expect(p.TierLabel(64)).To(Equal("tier:64"))
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
	f.Add([]byte(two))
	for _, file := range append(files, "testdata/mistakes.yaml", "testdata/everything.yaml", "testdata/sources.yaml", "../../suites/concurrency/plans/named/prefix-emulated.yaml") {
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
	_, err := plan.Parse("my.yaml", []byte("schema: assay.plan/v1\nname: My Plan\ntimeout: {request: 60}\n"))
	var mistakes *plan.Mistakes
	if errors.As(err, &mistakes) {
		for _, m := range mistakes.List {
			if m.Line > 1 { // what is missing is told of the first line
				fmt.Printf("line %d: %s: %s\n", m.Line, m.Key, m.Text)
			}
		}
	}
	// Output:
	// line 2: name: "My Plan" is wrong: write lower-case letters, digits, dots and dashes, such as vllm-cpu
	// line 3: timeout: unknown key; did you mean timeouts?
}

func ExamplePlan_Schedule() {
	p, err := plan.Load("../../suites/concurrency/plans/emulated.yaml")
	if err != nil {
		fmt.Println(err) // every mistake, each with its place
		return
	}
	s := p.Schedule()
	fmt.Printf("%d lifecycles, %d waves, %d requests\n", len(s.Lifecycles), s.Waves(), s.Requests())
	first := s.Lifecycles[0]
	fmt.Printf("%s begins with %d client, %s\n", first.Arm, first.Waves[0].Tier, p.TierLabel(first.Waves[0].Tier))
	// Output:
	// 2 lifecycles, 24 waves, 630 requests
	// naive begins with 1 client, tier:1
}
