package reports_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	. "github.com/onsi/gomega"

	"assay/harness/plan"
	"assay/harness/record"
	"assay/harness/record/recordtest"
	"assay/reports"
)

// sealedAgain verifies a bundle of which somebody changed a file, with new sums.
func sealedAgain(t *testing.T, dir string) (reports.Verdict, error) {
	t.Helper()
	NewWithT(t).Expect(reports.Seal(dir)).To(Succeed())
	return reports.Verify(dir)
}

func TestRecordsThatWereCutAreSaidToBe(t *testing.T) {
	for name, test := range map[string]struct {
		cut  func([]byte) []byte
		says []string
	}{
		"inside the last line": {func(b []byte) []byte { return b[:len(b)-100] },
			[]string{"requests.jsonl:20: the last line has no end: it was cut off", "requests.jsonl:20: no record: unexpected EOF",
				"incomplete: lifecycle 2, wave 4: ordinal 4 has no attempt", "the last lifecycle does not stand behind the last line of requests.jsonl and waves.jsonl"}},
		"its last line feed": {func(b []byte) []byte { return b[:len(b)-1] },
			[]string{"requests.jsonl:20: the last line has no end: it was cut off"}},
		"between two lines": {func(b []byte) []byte { return b[:bytes.LastIndexByte(b[:len(b)-1], '\n')+1] },
			[]string{"incomplete: lifecycle 2, wave 4: ordinal 4 has no attempt", "lifecycle 2: its requests_head is no line of requests.jsonl that could have been the last then"}},
		"in the middle": {func(b []byte) []byte { return b[:len(b)/2] },
			[]string{"the last line has no end: it was cut off", "incomplete: lifecycle 2, wave 4: ordinal 4 has no attempt"}},
		"everything": {func([]byte) []byte { return nil },
			[]string{"incomplete: lifecycle 1, wave 1: ordinal 1 has no attempt", "lifecycle 1: it had 10 attempts and 4 waves, and there are 0 and 4"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			dir := bundle(t, recordtest.Plan(), recordtest.Options{})
			path := filepath.Join(dir, record.RequestsFile)
			data, err := os.ReadFile(path)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(os.WriteFile(path, test.cut(data), 0o644)).To(Succeed())
			v, err := sealedAgain(t, dir)
			g.Expect(err).NotTo(HaveOccurred())
			for _, says := range test.says {
				g.Expect(v.Reasons).To(ContainElement(ContainSubstring(says)))
			}
		})
	}
}

func TestRecordsOfTwoPlansAreSaidOnce(t *testing.T) {
	g := NewWithT(t)
	dir := bundle(t, recordtest.Plan(), recordtest.Options{})
	other := bundle(t, recordtest.Plan("seed: 7", "seed: 8"), recordtest.Options{})
	theirs, err := os.ReadFile(filepath.Join(other, record.RequestsFile))
	g.Expect(err).NotTo(HaveOccurred())
	lines(t, dir, record.RequestsFile, func(l []string) []string {
		return append(l[:10], strings.Split(strings.TrimSuffix(string(theirs), "\n"), "\n")[10:]...)
	})
	v, err := sealedAgain(t, dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(v.Reasons).To(ContainElement(MatchRegexp(
		`^plan_sha256: lifecycle 2, wave 1, ordinal 1: the record is of another plan: [0-9a-f]{12}…, this one is [0-9a-f]{12}… \(and so are 9 more of the records\)$`)))
	n := 0
	for _, r := range v.Reasons {
		if strings.HasPrefix(r, "plan_sha256: ") {
			n++
		}
	}
	g.Expect(n).To(Equal(1))
	g.Expect(v.Reasons).To(ContainElement(ContainSubstring("requests.jsonl:11: the chain is broken")))
}

func TestABundleOfAnotherVersionIsSaidToBeOne(t *testing.T) {
	for name, test := range map[string]struct {
		was, is, remedy string
	}{
		"newer": {"/v3", "/v4", "a newer version of it reads the bundle"},
		"older": {"/v3", "/v2", "an older version of it reads the bundle"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			dir := bundle(t, recordtest.Plan(), recordtest.Options{})
			lines(t, dir, record.RequestsFile, func(l []string) []string {
				for i := range l {
					l[i] = strings.Replace(l[i], record.RequestSchema, strings.Replace(record.RequestSchema, test.was, test.is, 1), 1)
					l[i] = strings.Replace(l[i], `"lifecycle"`, `"new_member":1,"lifecycle"`, 1)
				}
				return l
			})
			replace(t, dir, reports.ClaimsFile, "assay.claims/v1", "assay.claims/v7")
			_, err := sealedAgain(t, dir)
			g.Expect(err).To(MatchError(reports.ErrVersion))
			g.Expect(strings.Split(err.Error(), "\n")[1:]).To(Equal([]string{
				"requests.jsonl: it is of assay.request" + test.is + ", and this program reads assay.request/v3",
				"claims.json: it is of assay.claims/v7, and this program reads assay.claims/v1",
			}))
			_, err = reports.Read(dir)
			g.Expect(err).To(MatchError(reports.ErrVersion))
		})
	}
	g := NewWithT(t)
	dir := bundle(t, recordtest.Plan(), recordtest.Options{})
	replace(t, dir, record.RequestsFile, record.RequestSchema, "assay.request/v3.1") // no version at all
	v, err := sealedAgain(t, dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(v.Reasons).To(ContainElement(ContainSubstring(`schema: lifecycle 1, wave 1, ordinal 1: "assay.request/v3.1" where "assay.request/v3" belongs`)))
}

// spoken is what a server may say to whoever reads a report of it.
const spoken = "<script>alert(1)</script><img src=x onerror=alert(1)> ]]> &lt;b&gt; `code` ![pixel](http://198.51.100.1/x.png) [click](javascript:alert(1)) " +
	"| a | b |\n# A heading\n\n- @everyone, mail a@b.example\r\n\x1b[2J\x1b]0;title\a\x00 \u202egnp.exe\u2066 =HYPERLINK(\"http://198.51.100.1\") \xff\xfe"

// spokenIn is a run of which a server wrote whatever it could.
func spokenIn(p *plan.Plan) record.Run {
	run := recordtest.Run(p, recordtest.Options{Fails: failing})
	for i := range run.Requests {
		r := &run.Requests[i]
		r.OutputText = spoken
		if r.Error != nil {
			text := spoken
			r.Error = &text
		}
		for name := range r.Nulls {
			r.Nulls[name] = spoken
		}
		if r.Ordinal == 2 {
			r.PromptID = spoken
		}
		r.OutputTokenIDs = append([]int{}, r.OutputTokenIDs...)
		if len(r.OutputTokenIDs) > 0 {
			r.OutputTokenIDs[0] = i // so that the report names the input
		}
	}
	for i := range run.Lifecycles {
		l := &run.Lifecycles[i]
		l.Identity["engine_version"] = record.Fact{Value: spoken, Provenance: record.EngineReported}
		l.Identity["gpu_driver"] = record.Fact{Reason: spoken}
	}
	run.Lifecycles[1].Status, run.Lifecycles[1].Error = "failed", spoken
	run.Environment.Facts["cpu_model"] = record.Fact{Value: spoken, Provenance: record.ClientObserved}
	run.Environment.Facts["revision"] = record.Fact{Reason: spoken}
	return run
}

// control is a character that a terminal may take for an order, or that hides.
func control(r rune) bool {
	return r != '\n' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
}

func TestWhatAServerSaysIsTextInMarkdownAndOnATerminal(t *testing.T) {
	g := NewWithT(t)
	p := recordtest.Plan()
	b := reports.Derive(p, spokenIn(p))
	md := reports.Markdown(b)
	for name, text := range map[string]string{"Markdown": md, "terminal": reports.Terminal(b)} {
		g.Expect(text).To(ContainSubstring("alert(1)"), name+": it is shown")
		at := strings.IndexFunc(text, control)
		g.Expect(at).To(Equal(-1), "%s has %q", name, text[max(0, at-20):min(len(text), at+20)])
		g.Expect(text).NotTo(MatchRegexp(`(?m)^\s*# A heading|^- @everyone`), name)
	}
	for what, pattern := range map[string]string{
		"HTML": `<[A-Za-z/!?]`, "a link": `[^\\]\]\(`, "code": "[^\\\\]`code", "an entity": `&lt;b`, "a mention": "[^`]@everyone",
	} {
		// Its own pictures are links, and its tables have cells.
		text := regexp.MustCompile(`(?m)^!\[[^\]]*\]\([a-z-]+\.svg\)$|^\|.*\|$`).ReplaceAllString(md, "")
		g.Expect(text).NotTo(MatchRegexp(pattern), what)
	}
	g.Expect(md).To(And(ContainSubstring("`@everyone`"), ContainSubstring("mail a@b.example"), ContainSubstring("&lt;script>"), ContainSubstring("␛[2J"), ContainSubstring("⟨U+202E⟩")))
}

func TestTextIsTextAtTheBeginningOfAnItemToo(t *testing.T) {
	for said, want := range map[string]string{
		"# heading": `\# heading`, "~~~": `\~~~`, "> quote": `\> quote`, "- item": `\- item`, "1. item": `1\. item`, "2) item": `2\) item`,
		"[a]: http://b.example": `\[a]: http://b.example`, `\](x)`: `\\\](x)`, "4 clients": "4 clients", "0.5 s": "0.5 s", "a_b*c": "a_b*c",
	} {
		g := NewWithT(t)
		p := recordtest.Plan()
		run := recordtest.Run(p, recordtest.Options{})
		run.Environment.Facts["client_proof"] = record.Fact{Reason: "x"}
		b := reports.Derive(p, run)
		b.Summary.Validity.Notes = []string{said}
		g.Expect(reports.Markdown(b)).To(ContainSubstring("\n## Notes\n\n- " + want + "\n"))
	}
}

func TestAHostileBundleIsVerifiedLikeAnother(t *testing.T) {
	g := NewWithT(t)
	p := recordtest.Plan()
	run := spokenIn(p)
	dir := written(t, filepath.Join(t.TempDir(), "bundle"), p, run)
	v, err := reports.Verify(dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(v.Reasons).To(BeEmpty(), "what it says is the same when its records were read back")
	g.Expect(v.Validity.Reasons).To(ContainElement(ContainSubstring("lifecycle 2 (vllm) failed: <script>")))
}
