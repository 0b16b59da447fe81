package junit_test

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"assay/golden"
	"assay/reports/junit"
)

// told is a suite with a spec of each kind, and a server's words in them.
func told() junit.Suite {
	const spoken = "<failure/>]]>&lt;b&gt; \"quoted\" \x1b[31mred\x00 \u202eevil \xff"
	return junit.Suite{
		Name: "concurrency: vllm against naive (fixture)", Start: time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("there", 3600)), Took: 1234567 * time.Millisecond,
		Properties: [][2]string{{"assay.run", "fixture-20260101T000000Z"}, {"said", spoken}},
		Cases: []junit.Case{
			{Name: "naive serves 8 clients, repeat 1 of 3 (lifecycle 1 of 2)", Class: "concurrency.fixture", Took: 1500 * time.Microsecond, Output: "verdicts: unsupported"},
			{Name: "vllm serves 8 clients, repeat 1 of 3 (lifecycle 2 of 2)", Class: "concurrency.fixture", Outcome: junit.Failed, Kind: "failed",
				Message: "vllm, 8 clients, repeat 1 does not account for each of its 8 scheduled attempts:\nordinal 3 has 2 attempts: there are no retries\n(and 1 more)\n9 attempts: 8 ok, 1 http_error",
				Trace:   "> Enter [It]\n" + spoken},
			{Name: "the evidence kept the protocol", Class: "concurrency.fixture", Outcome: junit.Errored, Kind: "panicked", Message: spoken + strings.Repeat(" more", 100)},
			{Name: "vllm serves 64 clients, repeat 1 of 3 (lifecycle 2 of 2)", Class: "concurrency.fixture", Outcome: junit.Skipped, Message: "skipped: no GPU"},
		},
	}
}

func TestAReportIsWhatReadersShowAndTheSchemaHas(t *testing.T) {
	g := NewWithT(t)
	data, err := told().Write()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(junit.Check(data)).To(Succeed())
	golden.Hold(t, "junit.xml", string(data))
	type why struct {
		Text string `xml:",chardata"`
	}
	var back struct {
		Suites []struct {
			Cases []struct {
				Failure *why `xml:"failure"`
				Error   *why `xml:"error"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	g.Expect(xml.Unmarshal(data, &back)).To(Succeed())
	g.Expect(back.Suites[0].Cases[1].Failure.Text).To(ContainSubstring("ordinal 3 has 2 attempts: there are no retries\n(and 1 more)\n9 attempts: 8 ok, 1 http_error"))
	g.Expect(back.Suites[0].Cases[2].Error.Text).To(HavePrefix("<failure/>]]>&lt;b&gt; \"quoted\" ␛[31mred␀ ⟨U+202E⟩evil \ufffd"))
	_, err = junit.Suite{Cases: []junit.Case{{Outcome: "fine"}}}.Write()
	g.Expect(err).To(MatchError(`"fine" is no outcome of a spec`))
}

func TestWhatIsNoReportIsSaidAtItsLines(t *testing.T) {
	for text, says := range map[string][]string{
		`<testsuite name="a" tests="0" failures="0" errors="0"/>`:                                                      nil,
		"<testsuites time=\"1,234.5\">\n <testsuite name=\"a\" tests=\"0\" failures=\"0\" errors=\"0\"/></testsuites>": nil,
		`<testcase name="a"/>`: {"line 1: a report begins with testsuites, and not with testcase"},
		"<testsuites disabled=\"0\">\n<testsuite name=\"a\" tests=\"1\">words<testcase status=\"passed\"><properties/></testcase>\n</testsuite><suite/></testsuites>": {
			"line 1: a testsuites has no attribute disabled",
			"line 2: a testsuite has to have the attribute failures", "line 2: a testsuite has to have the attribute errors", "line 2: there is no text in a testsuite",
			"line 2: a testcase has no attribute status", "line 2: a testcase has to have the attribute name", "line 2: there is no properties in a testcase",
			"line 3: there is no element suite", "line 3: there is no suite in a testsuites",
		},
		`<testsuites time="1e3"/>`: {`line 1: "1e3" is no time of a testsuites`},
		"<testsuites>\n<testsuite": {"line 2: XML syntax error on line 2: unexpected EOF"},
		"<testsuites>\x00":         {"line 1: XML syntax error on line 1: illegal character code U+0000"},
	} {
		g := NewWithT(t)
		var got []string
		if err := junit.Check([]byte(text)); err != nil {
			got = strings.Split(err.Error(), "\n")
		}
		g.Expect(got).To(Equal(says), text)
	}
}

// FuzzWrite holds that whatever a spec says comes out as JUnit by the schema, and
// comes back as what is shown of it.
func FuzzWrite(f *testing.F) {
	f.Add("a\x00]]>", "<b>\r\n\x1b")
	f.Add("\ufffe\ud7ff", "&#x0;")
	f.Fuzz(func(t *testing.T, name, message string) {
		data, err := junit.Suite{Name: name, Properties: [][2]string{{name, message}}, Cases: []junit.Case{
			{Name: name, Class: message, Outcome: junit.Failed, Kind: "failed", Message: message, Output: name, Trace: message},
		}}.Write()
		if err != nil {
			t.Fatal(err)
		}
		if err := junit.Check(data); err != nil {
			t.Fatalf("%q, %q: %s", name, message, err)
		}
		d := xml.NewDecoder(strings.NewReader(string(data)))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
	})
}
