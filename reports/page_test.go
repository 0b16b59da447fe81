package reports_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"
	. "github.com/onsi/gomega"
	"golang.org/x/net/html"

	"assay/harness/metric"
	"assay/harness/plan"
	"assay/harness/record"
	"assay/harness/record/recordtest"
	"assay/reports"
	"assay/reports/html/browser"
)

func TestTheUsualBundleHasAPageAndAnOlderOneHoldsWithout(t *testing.T) {
	g := NewWithT(t)
	dir := bundle(t, recordtest.Plan(), recordtest.Options{Fails: failing})
	name := filepath.Join(dir, reports.PageFile)
	g.Expect(name).To(BeAnExistingFile())
	g.Expect(os.Remove(name)).To(Succeed())
	g.Expect(reports.Seal(dir)).To(Succeed())
	v, err := reports.Verify(dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(v.Reasons).To(BeEmpty())
}

func TestThePageOfARunIsThatOfItsRecordsReadAgain(t *testing.T) {
	g := NewWithT(t)
	p, busy := recordtest.Plan(), 0.25
	run := recordtest.Run(p, recordtest.Options{Fails: failing})
	run.Environment.Facts["client_proof"] = record.Fact{Value: record.ClientProof{Streams: 64, Events: 6400, Busiest: &busy}, Provenance: record.ClientObserved}
	dir := written(t, filepath.Join(t.TempDir(), "bundle"), p, run)
	v, err := reports.Verify(dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(v.Reasons).To(BeEmpty())
}

func TestAPageThatSaysAnotherNumberDoesNotHold(t *testing.T) {
	number := regexp.MustCompile(`<td>1999\.`)
	for name, c := range map[string]struct {
		edit func(string) string
		says string // empty: it holds
	}{
		"a number of the table":       {func(s string) string { return number.ReplaceAllString(s, "<td>9999.") }, "9999."},
		"a place that can't be seen":  {func(s string) string { return strings.Replace(s, `y="209.5"`, `y="209.6"`, 1) }, ""},
		"a mark somewhere else":       {func(s string) string { return strings.Replace(s, `y="209.5"`, `y="109.5"`, 1) }, "it has 109.5"},
		"a page of another version":   {func(s string) string { return strings.ReplaceAll(s, "assay.page/v1", "assay.page/v0") }, "no page of version assay.page/v1"},
		"a script that was not there": {func(s string) string { return strings.Replace(s, "</main>", "<script>alert(1)</script></main>", 1) }, "alert"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			dir := bundle(t, recordtest.Plan(), recordtest.Options{Fails: failing})
			file := filepath.Join(dir, reports.PageFile)
			before, err := os.ReadFile(file)
			g.Expect(err).NotTo(HaveOccurred())
			after := c.edit(string(before))
			g.Expect(after).NotTo(Equal(string(before)), "the edit found nothing")
			g.Expect(os.WriteFile(file, []byte(after), 0o644)).To(Succeed())
			g.Expect(reports.Seal(dir)).To(Succeed())
			v, err := reports.Verify(dir)
			g.Expect(err).NotTo(HaveOccurred())
			if c.says == "" {
				g.Expect(v.Reasons).To(BeEmpty())
				return
			}
			g.Expect(v.Reasons).To(ConsistOf(And(HavePrefix(reports.PageFile), ContainSubstring(c.says))))
		})
	}
}

// derived is what is derived of records that were written, with their chains.
func derived(t *testing.T, p *plan.Plan, run record.Run) reports.Bundle {
	t.Helper()
	run, err := recordtest.Write(filepath.Join(t.TempDir(), "bundle"), p, run)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return reports.Derive(p, run)
}

// page is a run's page.
func page(t *testing.T, b reports.Bundle) string {
	t.Helper()
	data, err := reports.HTML(b)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return string(data)
}

// elements are those of a parsed page for which something holds, in order.
func elements(n *html.Node, is func(*html.Node) bool) []*html.Node {
	var out []*html.Node
	if n.Type == html.ElementNode && is(n) {
		out = append(out, n)
	}
	for c := range n.ChildNodes() {
		out = append(out, elements(c, is)...)
	}
	return out
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func text(n *html.Node) string {
	if n.Type == html.TextNode {
		return n.Data
	}
	var out strings.Builder
	for c := range n.ChildNodes() {
		out.WriteString(text(c))
	}
	return out.String()
}

func parsed(t *testing.T, data string) *html.Node {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(data))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return doc
}

// cells are the rows of the one table, headings not.
func cells(t *testing.T, data string) [][]string {
	sections := elements(parsed(t, data), func(n *html.Node) bool { return attribute(n, "id") == "table" })
	NewWithT(t).Expect(sections).To(HaveLen(1))
	var out [][]string
	for _, body := range elements(sections[0], func(n *html.Node) bool { return n.Data == "tbody" }) {
		for _, tr := range elements(body, func(n *html.Node) bool { return n.Data == "tr" }) {
			var row []string
			for _, c := range elements(tr, func(n *html.Node) bool { return n.Data == "td" || n.Data == "th" }) {
				row = append(row, text(c))
			}
			out = append(out, row)
		}
	}
	return out
}

// same is whether a cell, as it is written, is a value to the digits that it
// shows.
func same(cell string, v float64) bool {
	number := regexp.MustCompile(`[0-9]+(\.[0-9]+)?`).FindString(cell)
	shown, err := strconv.ParseFloat(number, 64)
	_, digits, _ := strings.Cut(number, ".")
	unit := 1.0
	for range digits {
		unit /= 10
	}
	return err == nil && shown-v <= unit && v-shown <= unit
}

func TestEveryNumberOfTheOneTableIsTheSummarys(t *testing.T) {
	g := NewWithT(t)
	p := recordtest.Plan()
	b := derived(t, p, recordtest.Run(p, recordtest.Options{Fails: failing}))
	rows := cells(t, page(t, b))
	g.Expect(rows).To(HaveLen(len(b.Summary.Tiers)))
	for i, tier := range b.Summary.Tiers {
		row := rows[i]
		g.Expect(row[0]).To(Equal(fmt.Sprint(tier.Tier)))
		for j, a := range []metric.Arm{tier.Baseline, tier.Candidate} {
			spread := regexp.MustCompile(`[0-9.]+`).FindAllString(row[1+j], -1)
			g.Expect(spread).To(HaveLen(3), row[1+j])
			g.Expect(same(spread[0], *a.Goodput.Median.Value)).To(BeTrue(), "%s, median %v", row[1+j], *a.Goodput.Median.Value)
			g.Expect(same(spread[1], *a.Goodput.Min)).To(BeTrue(), row[1+j])
			g.Expect(same(spread[2], *a.Goodput.Max)).To(BeTrue(), row[1+j])
			g.Expect(same(row[4+j], *a.TTFT95.Value)).To(BeTrue(), row[4+j])
			g.Expect(row[6+j]).To(HavePrefix(fmt.Sprintf("%d/%d ", a.Counts.Failed, a.Counts.Attempted)))
		}
		g.Expect(same(row[3], *tier.SpeedUp.Value)).To(BeTrue(), row[3])
	}
}

func TestTheDistributionsPercentilesAreTheSummarys(t *testing.T) {
	g := NewWithT(t)
	b := published(t, "h200-naive-vs-vllm")
	figure := elements(parsed(t, page(t, b)), func(n *html.Node) bool { return attribute(n, "id") == "ttft" })
	g.Expect(figure).To(HaveLen(1))
	rows := map[string][]string{}
	for _, tr := range elements(figure[0], func(n *html.Node) bool { return n.Data == "tr" }) {
		var row []string
		for _, c := range elements(tr, func(n *html.Node) bool { return n.Data == "td" || n.Data == "th" }) {
			row = append(row, text(c))
		}
		rows[row[0]+", "+row[1]] = row
	}
	for _, tier := range b.Summary.Tiers {
		for _, a := range []metric.Arm{tier.Baseline, tier.Candidate} {
			row := rows[fmt.Sprintf("%s, %s", record.Clients(tier.Tier), a.Arm)]
			g.Expect(row).To(HaveLen(10))
			g.Expect(row[2:4]).To(Equal([]string{fmt.Sprint(a.TTFTAll95.N), fmt.Sprint(a.TTFTAll95.Censored)}))
			for i, v := range map[int]metric.Value{5: a.TTFTAll50, 7: a.TTFTAll95, 8: a.TTFTAll99} {
				g.Expect(same(row[i], *v.Value)).To(BeTrue(), "%s is %v", row[i], *v.Value)
				g.Expect(strings.HasPrefix(row[i], "≥")).To(Equal(v.AtLeast), row[i])
			}
		}
	}
}

func TestWhateverRanHasAPage(t *testing.T) {
	stopped := func(lifecycle, wave int) bool { return lifecycle == 1 && wave == 1 }
	for name, c := range map[string]struct {
		run  func(p *plan.Plan) record.Run
		says string
	}{
		"a tier alone": {func(p *plan.Plan) record.Run {
			return recordtest.Run(p, recordtest.Options{Selected: func(tier int) bool { return tier == 4 }})
		}, "The run is partial."},
		"stopped": {func(p *plan.Plan) record.Run { return recordtest.Run(p, recordtest.Options{Stopped: stopped}) }, "The run is interrupted."},
		"all failed": {func(p *plan.Plan) record.Run {
			return recordtest.Run(p, recordtest.Options{Fails: func(record.Request) bool { return true }})
		}, "8 of 8 cut off"},
		"no record":     {func(p *plan.Plan) record.Run { return record.Run{} }, "Nothing was recorded that could be compared."},
		"mad times":     {func(p *plan.Plan) record.Run { return mad(recordtest.Run(p, recordtest.Options{Fails: failing})) }, "INVALID"},
		"no first sent": {func(p *plan.Plan) record.Run { return unsent(recordtest.Run(p, recordtest.Options{})) }, "INVALID"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p := recordtest.Plan("tiers: [1, 4], repeats: 2", "tiers: [1, 4], repeats: 2")
			data := page(t, reports.Derive(p, c.run(p)))
			for what, is := range map[string]bool{"</html>": true, "NaN": false, "+Inf": false, c.says: true} {
				g.Expect(strings.Contains(data, what)).To(Equal(is), "the page has %q", what)
			}
		})
	}
}

// mad is a run with moments that no clock gives.
func mad(run record.Run) record.Run {
	for i := range run.Requests {
		r := &run.Requests[i]
		switch i % 4 {
		case 0:
			r.EndedAt = 1 << 62
		case 1:
			r.ScheduledAt, r.EndedAt = 1<<62, 0
		case 2:
			early := int64(-1 << 62)
			r.FirstTokenAt, r.LastTokenAt = &early, &early
		default:
			r.Ordinal, r.Tier = -7, 0
		}
	}
	return run
}

// unsent is a run of which nothing says when it was sent.
func unsent(run record.Run) record.Run {
	for i := range run.Requests {
		r := &run.Requests[i]
		r.SentAt, r.FirstTokenAt, r.LastTokenAt = nil, nil, nil
	}
	for i := range run.Waves {
		run.Waves[i].ReleasedAt = nil
	}
	return run
}

func TestEveryPairsCurveIsTheOneThatTheMeanIsOf(t *testing.T) {
	g := NewWithT(t)
	b := published(t, "crossover-cpu")
	data := page(t, b)
	pairs := regexp.MustCompile(`pair [0-9]+: D\(([0-9]+)\) (-?[0-9.]+) s`)
	means := regexp.MustCompile(`mean D\(([0-9]+)\) of ([0-9]+) pairs: (-?[0-9.]+) s`)
	seen := 0
	for _, panel := range elements(parsed(t, data), func(n *html.Node) bool { return n.Data == "svg" }) {
		sum, count := map[string]float64{}, map[string]int{}
		once := map[string]bool{}
		for _, m := range pairs.FindAllStringSubmatch(text(panel), -1) {
			if once[m[0]] {
				continue // its first crossing has a mark of its own
			}
			once[m[0]] = true
			v, err := strconv.ParseFloat(m[2], 64)
			g.Expect(err).NotTo(HaveOccurred())
			sum[m[1]] += v
			count[m[1]]++
		}
		for _, m := range means.FindAllStringSubmatch(text(panel), -1) {
			k, err := strconv.Atoi(m[2])
			g.Expect(err).NotTo(HaveOccurred())
			if count[m[1]] != k {
				continue // not every pair has a mark there
			}
			mean, err := strconv.ParseFloat(m[3], 64)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(sum[m[1]]/float64(k)).To(BeNumerically("~", mean, 0.002), "D(%s)", m[1])
			seen++
		}
	}
	g.Expect(seen).To(BeNumerically(">", 40))
}

// published is a packed bundle of docs/results.
func published(t *testing.T, name string) reports.Bundle {
	t.Helper()
	g := NewWithT(t)
	file, err := os.Open(filepath.Join("..", "docs", "results", name+reports.PackedExtension))
	g.Expect(err).NotTo(HaveOccurred())
	defer file.Close()
	dir, err := reports.Unpack(file, t.TempDir())
	g.Expect(err).NotTo(HaveOccurred())
	b, err := reports.Read(dir)
	g.Expect(err).NotTo(HaveOccurred())
	return b
}

// hostile is what a server may say to whoever reads its answers.
const hostile = "<script>document.title='run'</script>\"><img src=x onerror=document.title='run'>]]><!-- ${7*7} {{7*7}}\x1b[31mred\x1b]0;title\x07\u202egnitset\u2066\u200b \xff javascript:alert(1)"

func attacked(t *testing.T, p *plan.Plan, run record.Run) reports.Bundle {
	t.Helper()
	for i := range run.Requests {
		r := &run.Requests[i]
		r.OutputText = hostile
		if r.Outcome != record.OK {
			said := hostile
			r.Error = &said
		}
	}
	run.Environment.Run = hostile
	run.Environment.Facts["cpu_model"] = record.Fact{Value: hostile, Provenance: record.ClientObserved}
	run.Environment.Facts[hostile] = record.Fact{Reason: hostile}
	for i := range run.Lifecycles {
		run.Lifecycles[i].Identity["engine_version"] = record.Fact{Value: hostile, Provenance: record.EngineReported}
	}
	return derived(t, p, run)
}

func TestWhatAServerSaysIsShownAndNeverRun(t *testing.T) {
	g := NewWithT(t)
	p := recordtest.Plan()
	data := page(t, attacked(t, p, recordtest.Run(p, recordtest.Options{Fails: failing})))
	for _, hidden := range []string{"\x1b", "\x07", "\u202e", "\u2066", "\u200b", "\xff"} {
		g.Expect(strings.Contains(data, hidden)).To(BeFalse(), "%q is in the page", hidden)
	}
	g.Expect(data).To(ContainSubstring("␛[31mred"))
	g.Expect(data).To(ContainSubstring("⟨U+202E⟩gnitset"))
	doc := parsed(t, data)
	g.Expect(elements(doc, func(n *html.Node) bool { return n.Data == "script" })).To(HaveLen(1))
	g.Expect(elements(doc, func(n *html.Node) bool { return n.Data == "img" })).To(BeEmpty())
	for _, n := range elements(doc, func(*html.Node) bool { return true }) {
		for _, a := range n.Attr {
			g.Expect(strings.HasPrefix(a.Key, "on")).To(BeFalse(), "<%s %s>", n.Data, a.Key)
			g.Expect(a.Key == "style").To(BeFalse(), "<%s %s>", n.Data, a.Key)
			if a.Key == "href" {
				g.Expect(a.Val).To(Or(HavePrefix("#"), Equal("data:,")))
			}
		}
	}
}

func TestEveryClaimLeadsToItsRecords(t *testing.T) {
	g := NewWithT(t)
	p := recordtest.Plan()
	doc := parsed(t, page(t, derived(t, p, recordtest.Run(p, recordtest.Options{}))))
	ids := map[string]int{}
	for _, n := range elements(doc, func(n *html.Node) bool { return attribute(n, "id") != "" }) {
		ids[attribute(n, "id")]++
	}
	for id, n := range ids {
		g.Expect(n).To(Equal(1), "id %s", id)
	}
	links := 0
	for _, n := range elements(doc, func(n *html.Node) bool { return n.Data == "a" }) {
		to, local := strings.CutPrefix(attribute(n, "href"), "#")
		g.Expect(local).To(BeTrue())
		g.Expect(ids).To(HaveKey(to))
		if strings.HasPrefix(to, "w") {
			links++
		}
	}
	g.Expect(links).To(BeNumerically(">=", 12))
	for _, n := range elements(doc, func(n *html.Node) bool { return n.Data == "th" }) {
		g.Expect(attribute(n, "scope")).To(BeElementOf("col", "row"))
	}
	for _, n := range elements(doc, func(n *html.Node) bool { return attribute(n, "role") == "img" }) {
		g.Expect(elements(n, func(n *html.Node) bool { return n.Data == "title" })).NotTo(BeEmpty())
		g.Expect(elements(n, func(n *html.Node) bool { return n.Data == "desc" })).To(HaveLen(1))
	}
}

func TestAPageIsSmallHoweverManyAttemptsThereWere(t *testing.T) {
	for _, c := range []struct {
		schedule string
		attempts int
		most     int
	}{
		{"tiers: [1, 8, 32, 64], repeats: 3, lifecycles: 1", 630, 3 << 20},
		{"tiers: [10, 100, 500], repeats: 82, lifecycles: 1", 100_000, 15 << 20},
	} {
		if testing.Short() && c.attempts > 1000 {
			continue
		}
		g := NewWithT(t)
		p := recordtest.Plan("tiers: [1, 4], repeats: 2, lifecycles: 1", c.schedule)
		b := derived(t, p, recordtest.Run(p, recordtest.Options{Fails: func(r record.Request) bool { return r.Arm == "naive" && r.Ordinal%7 == 3 }}))
		g.Expect(len(b.Run.Requests)).To(BeNumerically(">=", c.attempts))
		began := time.Now()
		data := page(t, b)
		t.Logf("%d attempts: %d bytes in %s", len(b.Run.Requests), len(data), time.Since(began))
		g.Expect(len(data)).To(BeNumerically("<", c.most))
		g.Expect(b.Summary.Validity.Valid).To(BeTrue())
		if c.attempts > 1000 {
			g.Expect(data).To(ContainSubstring("Of a wave with more than 320 attempts as many have a row"))
		}
	}
}

// chromium is where a browser is; a test that needs one is skipped without, or
// fails if one was asked for by name.
func chromium(t *testing.T) string {
	t.Helper()
	path, err := browser.Find()
	switch {
	case err == nil:
		return path
	case os.Getenv(browser.Variable) != "":
		t.Fatal(err)
	}
	t.Skip(err)
	return ""
}

// opened is a page in a browser.
func opened(t *testing.T, data string, v browser.View) *browser.Tab {
	t.Helper()
	path := chromium(t)
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), reports.PageFile)
	g.Expect(os.WriteFile(file, []byte(data), 0o644)).To(Succeed())
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	tab, err := browser.Open(ctx, path, file, v)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(tab.Close)
	return tab
}

func evaluate[T any](t *testing.T, tab *browser.Tab, expression string) T {
	t.Helper()
	out, err := browser.Evaluate[T](tab, expression)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return out
}

func TestThePageInABrowser(t *testing.T) {
	chromium(t)
	watched := recordtest.WatchedPlan("engine_ttft: 1ms")
	looked := recordtest.Run(watched, recordtest.Options{Fails: failing})
	recordtest.Look(&looked, 2)
	plain := recordtest.Plan()
	for name, c := range map[string]struct {
		bundle  reports.Bundle
		figures []string
	}{
		"concurrency": {derived(t, watched, looked), []string{"goodput", "timeline-4", "timeline-1", "ttft", "latency", "schedule"}},
		"hostile":     {attacked(t, plain, recordtest.Run(plain, recordtest.Options{Fails: failing})), []string{"goodput", "timeline-4", "timeline-1", "ttft", "latency", "schedule"}},
		"crossover":   {published(t, "crossover-cpu"), []string{"crossing", "timeline-fixed", "timeline-natural", "ttft", "latency", "schedule"}},
		"arrival":     {published(t, "arrival-cpu"), []string{"rates", "probes", "timeline-1", "ttft", "latency", "schedule"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			tab := opened(t, page(t, c.bundle), browser.View{Width: 1200, Height: 900})
			for _, v := range []browser.View{{Width: 1200, Height: 900}, {Width: 360, Height: 700}, {Width: 1200, Height: 900, Dark: true}, {Width: 800, Height: 1000, Print: true}} {
				g.Expect(tab.Look(v)).To(Succeed())
				g.Expect(tab.Messages()).To(BeEmpty(), "%+v", v)
				g.Expect(tab.Asked()).To(HaveLen(1), "%+v: it asked for more than itself", v)
				g.Expect(evaluate[bool](t, tab, "document.title !== 'run'")).To(BeTrue(), "a script of somebody else's ran")
				g.Expect(evaluate[int](t, tab, "document.documentElement.scrollWidth - innerWidth")).To(BeNumerically("<=", 0), "%+v: the page is wider than its window", v)
				for _, id := range c.figures {
					marks := fmt.Sprintf("[...document.querySelectorAll('#%s svg[role=img] path')].filter(p => { const b = p.getBoundingClientRect(); return b.width + b.height > 0; }).length", id)
					g.Expect(evaluate[int](t, tab, marks)).To(BeNumerically(">", 5), "%+v: figure %s", v, id)
				}
				least := evaluate[float64](t, tab, leastContrast)
				g.Expect(least).To(BeNumerically(">=", 4.5), "%+v: contrast", v)
			}
		})
	}
}

// leastContrast is the smallest contrast of a text of the page with what lies
// behind it, by WCAG 2.2, 1.4.3.
const leastContrast = `(() => {
  const rgb = (s) => s.match(/[\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => { v /= 255; return v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; }).reduce((a, v, i) => a + v * [.2126, .7152, .0722][i], 0);
  const behind = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c; } return rgb("rgb(255,255,255)"); };
  let least = 21;
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let n; (n = walk.nextNode());) {
    const e = n.parentElement;
    if (!n.data.trim() || !e.getClientRects().length || ["SCRIPT", "STYLE"].includes(e.tagName)) continue;
    const s = getComputedStyle(e), a = light(rgb(e.closest("svg") ? s.fill : s.color)), b = light(behind(e));
    least = Math.min(least, (Math.max(a, b) + .05) / (Math.min(a, b) + .05));
  }
  return least;
})()`

func TestPointingAtAMarkShowsTheRecordBehindIt(t *testing.T) {
	g := NewWithT(t)
	p := recordtest.Plan()
	tab := opened(t, page(t, derived(t, p, recordtest.Run(p, recordtest.Options{Fails: failing}))), browser.View{Width: 1200, Height: 900})
	shown := func() string {
		return evaluate[string](t, tab, "document.getElementById('tip').hidden ? '' : document.getElementById('tip').textContent")
	}
	g.Expect(shown()).To(BeEmpty())

	at := evaluate[[]float64](t, tab, `(() => { const g = document.querySelector('#timeline-4 g.row:last-of-type'); g.scrollIntoView({block: 'center', behavior: 'instant'}); const b = g.getBoundingClientRect(); return [b.left + b.width / 2, b.top + b.height / 2]; })()`)
	moved := 0.0
	g.Eventually(func() (string, error) { // the scrolling before it hides what is shown
		moved = 1 - moved
		err := tab.Move(at[0]+moved, at[1])
		return shown(), err
	}).Should(MatchRegexp(`naive, lifecycle 1, wave \d+, ordinal 4: timeout \(requests\.jsonl, line \d+\)`))

	g.Expect(evaluate[bool](t, tab, "(() => { const s = document.querySelector('#goodput svg[tabindex]'); s.focus({preventScroll: true}); return document.activeElement === s; })()")).To(BeTrue())
	g.Expect(tab.Press(kb.End)).To(Succeed())
	g.Eventually(shown).Should(MatchRegexp(`vllm, 4 clients: median [0-9.]+ tok/s`))
	g.Expect(tab.Press(kb.Escape)).To(Succeed())
	g.Eventually(shown).Should(BeEmpty())
}
