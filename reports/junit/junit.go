package junit

import (
	"encoding/xml"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"assay/harness/record"
)

// Suite is a report of one suite.
type Suite struct {
	Name       string
	Properties [][2]string // names and values, in order
	Cases      []Case
	Start      time.Time
	Took       time.Duration
}

// Outcome is how a case ended.
type Outcome string

// The outcomes. An error is that it could not be told: a panic, an interruption.
const (
	Passed  Outcome = ""
	Failed  Outcome = "failure"
	Errored Outcome = "error"
	Skipped Outcome = "skipped"
)

// Case is one spec.
type Case struct {
	Name    string // a sentence
	Class   string // what it is a part of; readers group by it
	Took    time.Duration
	Outcome Outcome
	Kind    string // of a failure or an error, such as "timedout"
	Message string // why it did not pass; its first lines are the headline
	Output  string // what it said besides
	Trace   string // what happened in one that did not pass
}

// The elements, by the schema's names.
type (
	suites struct {
		XMLName  xml.Name `xml:"testsuites"`
		Name     string   `xml:"name,attr"`
		Tests    int      `xml:"tests,attr"`
		Failures int      `xml:"failures,attr"`
		Errors   int      `xml:"errors,attr"`
		Time     string   `xml:"time,attr"`
		Suite    suite    `xml:"testsuite"`
	}
	suite struct {
		Name       string     `xml:"name,attr"`
		Tests      int        `xml:"tests,attr"`
		Failures   int        `xml:"failures,attr"`
		Errors     int        `xml:"errors,attr"`
		Skipped    int        `xml:"skipped,attr"`
		Time       string     `xml:"time,attr"`
		Timestamp  string     `xml:"timestamp,attr"`
		Properties []property `xml:"properties>property"`
		Cases      []testcase `xml:"testcase"`
	}
	property struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	testcase struct {
		Name    string `xml:"name,attr"`
		Class   string `xml:"classname,attr"`
		Time    string `xml:"time,attr"`
		Skipped *why   `xml:"skipped"`
		Error   *why   `xml:"error"`
		Failure *why   `xml:"failure"`
		Out     string `xml:"system-out,omitempty"`
		Err     string `xml:"system-err,omitempty"`
	}
	why struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
		Text    string `xml:",chardata"`
	}
)

// Write writes the report. What texts hide is made visible in it, and what XML
// 1.0 can't carry with it.
func (s Suite) Write() ([]byte, error) {
	shown := record.Visible
	out := suite{
		Name: shown(s.Name), Tests: len(s.Cases), Time: seconds(s.Took), Timestamp: s.Start.UTC().Format("2006-01-02T15:04:05"), Properties: []property{},
	}
	for _, p := range s.Properties {
		out.Properties = append(out.Properties, property{shown(p[0]), shown(p[1])})
	}
	for _, c := range s.Cases {
		t := testcase{Name: shown(c.Name), Class: shown(c.Class), Time: seconds(c.Took), Out: shown(c.Output), Err: shown(c.Trace)}
		w := &why{Message: headline(shown(c.Message)), Type: c.Kind, Text: shown(c.Message)}
		switch c.Outcome {
		case Passed:
		case Failed:
			t.Failure = w
			out.Failures++
		case Errored:
			t.Error = w
			out.Errors++
		case Skipped:
			t.Skipped = w
			out.Skipped++
		default:
			return nil, fmt.Errorf("%q is no outcome of a spec", c.Outcome)
		}
		out.Cases = append(out.Cases, t)
	}
	data, err := xml.MarshalIndent(suites{Name: out.Name, Tests: out.Tests, Failures: out.Failures, Errors: out.Errors, Time: out.Time, Suite: out}, "", " ")
	return append([]byte(xml.Header), append(data, '\n')...), err
}

// seconds are to the millisecond, as the schema's pattern of a time has them.
func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }

// longestHeadline is how many characters of a message readers show in a list.
const longestHeadline = 240

// headline is a message on one line, its beginning if it is long.
func headline(message string) string {
	words := strings.Fields(message)
	line := strings.Join(words, " ")
	if utf8.RuneCountInString(line) <= longestHeadline {
		return line
	}
	return string([]rune(line)[:longestHeadline]) + "…"
}
