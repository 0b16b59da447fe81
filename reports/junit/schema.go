package junit

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// The schema is the one that Jenkins' xUnit plugin publishes as junit-10.xsd.
// Each element has the elements that it may have, in any order and number, the
// attributes that it may have and must have, and whether text may stand in it.
type element struct {
	elements []string
	may      []string
	must     []string
	text     bool
}

var schema = map[string]element{
	"testsuites": {elements: []string{"testsuite"}, may: []string{"name", "time", "tests", "failures", "errors"}},
	"testsuite": {
		elements: []string{"testsuite", "properties", "testcase", "system-out", "system-err"},
		must:     []string{"name", "tests", "failures", "errors"},
		may:      []string{"group", "time", "skipped", "timestamp", "hostname", "id", "package", "file", "log", "url"},
	},
	"properties": {elements: []string{"property"}},
	"property":   {must: []string{"name", "value"}},
	"testcase": {
		elements: []string{"skipped", "error", "failure", "system-out", "system-err"}, // of reruns there are none here
		must:     []string{"name"}, may: []string{"time", "classname", "group"},
	},
	"failure":    {may: []string{"type", "message"}, text: true},
	"error":      {may: []string{"type", "message"}, text: true},
	"skipped":    {may: []string{"type", "message"}, text: true},
	"system-out": {text: true},
	"system-err": {text: true},
}

// timePattern is what the time of a suite has to look like.
var timePattern = regexp.MustCompile(`^(([0-9]{0,3},)*[0-9]{3}|[0-9]{0,3})*(\.[0-9]*)?$`)

// Check says, joined, at which lines a report is no JUnit by the schema.
func Check(data []byte) error {
	var errs []error
	d := xml.NewDecoder(bytes.NewReader(data))
	found := func(format string, args ...any) {
		line, _ := d.InputPos()
		errs = append(errs, fmt.Errorf("line %d: %s", line, fmt.Sprintf(format, args...)))
	}
	var open []string
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return errors.Join(errs...)
		}
		if err != nil {
			found("%s", err)
			return errors.Join(errs...)
		}
		switch t := token.(type) {
		case xml.StartElement:
			name := t.Name.Local
			if of, known := schema[name]; !known {
				found("there is no element %s", name)
			} else {
				of.attributes(name, t.Attr, found)
			}
			switch {
			case len(open) == 0 && name != "testsuites" && name != "testsuite":
				found("a report begins with testsuites, and not with %s", name)
			case len(open) > 0 && !slices.Contains(schema[open[len(open)-1]].elements, name):
				found("there is no %s in a %s", name, open[len(open)-1])
			}
			open = append(open, name)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			if len(open) > 0 && !schema[open[len(open)-1]].text && len(bytes.TrimSpace(t)) > 0 {
				found("there is no text in a %s", open[len(open)-1])
			}
		}
	}
}

func (e element) attributes(name string, has []xml.Attr, found func(string, ...any)) {
	missing := slices.Clone(e.must)
	for _, a := range has {
		missing = slices.DeleteFunc(missing, func(m string) bool { return m == a.Name.Local })
		switch {
		case !slices.Contains(e.must, a.Name.Local) && !slices.Contains(e.may, a.Name.Local):
			found("a %s has no attribute %s", name, a.Name.Local)
		case a.Name.Local == "time" && strings.HasPrefix(name, "testsuite") && !timePattern.MatchString(a.Value):
			found("%q is no time of a %s", a.Value, name)
		}
	}
	for _, m := range missing {
		found("a %s has to have the attribute %s", name, m)
	}
}
