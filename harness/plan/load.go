package plan

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

//go:embed schema/plan.schema.json
var schemaJSON []byte

// Load reads and validates a plan's file. The error is a [*Mistakes] if the
// file is there and the plan in it can't be run.
func Load(path string) (*Plan, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("the plan can't be read: %w", err)
	}
	return Parse(filepath.Base(path), data)
}

// Parse validates a plan and fills its defaults in. name stands for the file
// in what it says. The error is always a [*Mistakes], with every mistake.
func Parse(name string, data []byte) (*Plan, error) {
	d := &document{mistakes: Mistakes{File: name}, at: map[string]*token.Token{}}
	p := d.parse(data)
	if len(d.mistakes.List) > 0 {
		d.mistakes.sort()
		return nil, &d.mistakes
	}
	return p, nil
}

// document is a plan's text on its way to a plan.
type document struct {
	mistakes Mistakes
	at       map[string]*token.Token // position of each value by its path; of a key by path + "#"
	// undecoded are the paths of what could not be decoded, and found is how
	// many mistakes the schema has told: the checks that follow are silent
	// about both.
	undecoded []string
	found     int
}

func (d *document) parse(data []byte) *Plan {
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		d.syntax(err)
		return nil
	}
	if len(file.Docs) != 1 || file.Docs[0].Body == nil {
		d.add(&token.Token{Position: &token.Position{Line: 1, Column: 1}}, "", "a plan is one YAML document, and this file has %d", documents(file))
		return nil
	}
	value := d.value(file.Docs[0].Body, "")
	if _, ok := value.(map[string]any); !ok {
		d.add(file.Docs[0].Body.GetToken(), "", "a plan is a mapping that begins with schema: %s", Schema)
		return nil
	}
	if len(d.mistakes.List) > 0 {
		return nil // duplicate keys: what the rest means is not known
	}
	d.otherExperiment(value.(map[string]any))
	d.schema(value)
	p := d.sections(file.Docs[0].Body)
	p.fill()
	d.found = len(d.mistakes.List)
	d.check(p)
	return p
}

// sections decodes each part of the plan by itself, so that a mistake in one
// does not hide those in the others. What does not decode is left empty, and
// nothing more is said about it: the schema has.
func (d *document) sections(body ast.Node) *Plan {
	var p Plan
	var values []*ast.MappingValueNode
	switch n := body.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	}
	into := map[string]any{
		"schema": &p.Schema, "name": &p.Name, "experiment": &p.Experiment, "labels": &p.Labels, "seed": &p.Seed,
		"time_scale": &p.TimeScale, "model": &p.Model, "workload": &p.Workload, "sampling": &p.Sampling,
		"schedule": &p.Sweep, "timeouts": &p.Timeouts, "gates": &p.Gates, "claims": &p.Claims,
	}
	for _, v := range values {
		key := v.Key.GetToken().Value
		if list, ok := v.Value.(*ast.SequenceNode); ok && key == "arms" {
			for i, item := range list.Values {
				p.Arms = append(p.Arms, Arm{})
				d.decode(item, fmt.Sprintf("arms[%d]", i), &p.Arms[i])
			}
		} else if to, ok := into[key]; ok {
			d.decode(v.Value, key, to)
		}
	}
	return &p
}

func (d *document) decode(node ast.Node, path string, to any) {
	err := yaml.NodeToValue(node, to)
	if err == nil {
		return
	}
	if !d.said(path) {
		d.wrong(path, "%s", strings.ReplaceAll(err.Error(), "\n", " "))
	}
	d.undecoded = append(d.undecoded, path)
}

// said is whether something at a path, or below it, was found wrong.
func (d *document) said(path string) bool {
	return slices.ContainsFunc(d.mistakes.List, func(m Mistake) bool { return within(m.Key, path) })
}

// within says whether a path is another or lies below it.
func within(path, above string) bool {
	rest, ok := strings.CutPrefix(path, above)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

func documents(file *ast.File) int {
	n := 0
	for _, doc := range file.Docs {
		if doc.Body != nil {
			n++
		}
	}
	return n
}

func (d *document) add(at *token.Token, key, format string, args ...any) {
	m := Mistake{Line: 1, Column: 1, Key: key, Text: fmt.Sprintf(format, args...)}
	if at != nil && at.Position != nil {
		m.Line, m.Column = at.Position.Line, at.Position.Column
	}
	d.mistakes.List = append(d.mistakes.List, m)
}

// wrong adds a mistake at the value of a path, or at the nearest thing above
// it that the document has.
func (d *document) wrong(path, format string, args ...any) {
	d.add(d.place(path), path, format, args...)
}

func (d *document) place(path string) *token.Token {
	for {
		if at, ok := d.at[path]; ok {
			return at
		}
		cut := strings.LastIndexAny(path, ".[")
		if cut < 0 {
			return d.at[""]
		}
		path = path[:cut]
	}
}

func (d *document) syntax(err error) {
	var at yaml.Error
	if errors.As(err, &at) {
		d.add(at.GetToken(), "", "no valid YAML: %s", at.GetMessage())
		return
	}
	d.add(nil, "", "no valid YAML: %s", err)
}

// value turns a node into what JSON would hold, and notes where everything is.
func (d *document) value(node ast.Node, path string) any {
	d.at[path] = node.GetToken()
	switch n := node.(type) {
	case *ast.MappingNode:
		return d.mapping(n.Values, path)
	case *ast.MappingValueNode:
		return d.mapping([]*ast.MappingValueNode{n}, path)
	case *ast.SequenceNode:
		out := make([]any, 0, len(n.Values))
		for i, item := range n.Values {
			out = append(out, d.value(item, fmt.Sprintf("%s[%d]", path, i)))
		}
		return out
	case *ast.NullNode:
		return nil
	case *ast.BoolNode:
		return n.Value
	case *ast.IntegerNode:
		return json.Number(fmt.Sprint(n.Value))
	case *ast.FloatNode:
		return json.Number(strconv.FormatFloat(n.Value, 'g', -1, 64))
	case *ast.StringNode:
		return n.Value
	case *ast.LiteralNode:
		return n.Value.Value
	default:
		d.add(node.GetToken(), path, "%s is not used in plans: write the value itself", strings.ToLower(node.Type().String()))
		return nil
	}
}

func (d *document) mapping(values []*ast.MappingValueNode, path string) any {
	if len(values) > 0 {
		d.at[path] = values[0].Key.GetToken()
	}
	out := map[string]any{}
	for _, v := range values {
		key := v.Key.GetToken().Value
		below := join(path, key)
		if first, twice := d.at[below+"#"]; twice {
			d.add(v.Key.GetToken(), below, "the key stands here for the second time: the first is on line %d", first.Position.Line)
			continue
		}
		d.at[below+"#"] = v.Key.GetToken()
		out[key] = d.value(v.Value, below)
	}
	return out
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// otherExperiment says plainly that a kind of experiment is not known, instead
// of calling each of its keys unknown.
func (d *document) otherExperiment(value map[string]any) {
	if e, ok := value["experiment"].(string); ok && (Experiment(e) == Crossover || Experiment(e) == Arrival) {
		d.wrong("experiment", "%q is an experiment that this version does not run yet: it runs %s", e, Concurrency)
	}
}

// compiled is the schema of plans, as a document and ready to validate.
var compiled = sync.OnceValues(func() (any, *jsonschema.Schema) {
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(schemaJSON))
	if err != nil {
		panic("the embedded schema of plans is no JSON: " + err.Error())
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("plan.schema.json", parsed); err != nil {
		panic("the embedded schema of plans does not load: " + err.Error())
	}
	schema, err := compiler.Compile("plan.schema.json")
	if err != nil {
		panic("the embedded schema of plans does not compile: " + err.Error())
	}
	return parsed, schema
})

// schema validates the whole document and turns each of the schema's findings
// into a mistake with its place.
func (d *document) schema(value any) {
	parsed, schema := compiled()
	var invalid *jsonschema.ValidationError
	if errors.As(schema.Validate(value), &invalid) {
		d.finding(invalid, parsed)
	}
}

func (d *document) finding(e *jsonschema.ValidationError, schema any) {
	path := pathOf(e.InstanceLocation)
	switch k := e.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		known := properties(schema, e.SchemaURL)
		for _, key := range k.Properties {
			below := join(path, key)
			hint := "known are " + strings.Join(known, ", ")
			if near := nearest(key, known); near != "" {
				hint = "did you mean " + near + "?"
			}
			d.add(d.at[below+"#"], below, "unknown key; %s", hint)
		}
	case *kind.Required:
		for _, key := range k.Missing {
			d.add(d.place(path), join(path, key), "missing")
		}
	case *kind.Enum:
		words := make([]string, len(k.Want))
		for i, w := range k.Want {
			words[i] = fmt.Sprint(w)
		}
		if path == "experiment" && (k.Got == string(Crossover) || k.Got == string(Arrival)) {
			return // said already
		}
		hint := ""
		if near := nearest(fmt.Sprint(k.Got), words); near != "" && len(words) > 2 {
			hint = "; did you mean " + near + "?"
		}
		d.wrong(path, "%v is none of %s%s", quoted(k.Got), strings.Join(words, ", "), hint)
	case *kind.Const:
		d.wrong(path, "%v must be %v", quoted(k.Got), k.Want)
	case *kind.Pattern:
		d.wrong(path, "%q is wrong: write %s", k.Got, described(schema, e.SchemaURL, "text of the form "+k.Want))
	case *kind.Type:
		d.wrong(path, "%s where %s is needed%s", k.Got, strings.Join(k.Want, " or "), parenthesised(described(schema, e.SchemaURL, "")))
	case *kind.OneOf:
		d.wrong(path, "write %s", described(schema, e.SchemaURL, `"none" or a mapping`))
	default:
		if len(e.Causes) > 0 {
			for _, cause := range e.Causes {
				d.finding(cause, schema)
			}
			return
		}
		d.wrong(path, "%s", e.ErrorKind.LocalizedString(message.NewPrinter(language.English)))
	}
}

func quoted(v any) any {
	if s, ok := v.(string); ok {
		return strconv.Quote(s)
	}
	return v
}

func parenthesised(s string) string {
	if s == "" {
		return ""
	}
	return ": write " + s
}

func pathOf(location []string) string {
	path := ""
	for _, step := range location {
		if _, err := strconv.Atoi(step); err == nil {
			path += "[" + step + "]"
		} else {
			path = join(path, step)
		}
	}
	return path
}

// subschema follows a schema location's fragment.
func subschema(schema any, location string) map[string]any {
	_, fragment, _ := strings.Cut(location, "#")
	if decoded, err := url.PathUnescape(fragment); err == nil {
		fragment = decoded
	}
	at := schema
	for _, step := range strings.Split(strings.Trim(fragment, "/"), "/") {
		m, ok := at.(map[string]any)
		if step == "" || !ok {
			break
		}
		at = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
	}
	m, _ := at.(map[string]any)
	return m
}

func properties(schema any, location string) []string {
	props, _ := subschema(schema, location)["properties"].(map[string]any)
	return slices.Sorted(maps.Keys(props))
}

func described(schema any, location, otherwise string) string {
	if text, ok := subschema(schema, location)["description"].(string); ok {
		return text
	}
	return otherwise
}

// Parameters are the parameter sets that the emulated engine ships.
var Parameters = []string{"t4-naive", "t4-vllm"}

// Prompts are the sets of prompts that are shipped.
var Prompts = []string{"eight"}

var variable = regexp.MustCompile(`\$\{([^}:]*)(:-([^}]*))?\}`)
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// odd adds a mistake that a check found, unless the schema has found the same
// thing wrong already.
func (d *document) odd(path, format string, args ...any) {
	for _, u := range d.undecoded {
		if within(path, u) {
			return
		}
	}
	for _, m := range d.mistakes.List[:d.found] {
		if within(path, m.Key) {
			return
		}
	}
	d.wrong(path, format, args...)
}

// check finds what a schema can't say: combinations, and references to things
// that are not in the plan.
func (d *document) check(p *Plan) {
	d.arms(p)
	d.sweep(p)
	for _, name := range duplicates(p.Labels) {
		d.odd("labels", "%q stands there twice", name)
	}
	for _, l := range p.Labels {
		if strings.HasPrefix(l, "tier:") {
			d.odd("labels", "%q looks like a tier's label, which the schedule makes: name the plan by what it needs, such as cpu", l)
		}
	}
	var claims []string
	for _, c := range p.Claims {
		claims = append(claims, string(c))
	}
	for _, name := range duplicates(claims) {
		d.odd("claims", "%q stands there twice", name)
	}
	if p.Workload.Prompts != "" && !slices.Contains(Prompts, p.Workload.Prompts) {
		d.odd("workload.prompts", "there is no set %q: there is %s", p.Workload.Prompts, strings.Join(Prompts, ", "))
	}
	for _, t := range []struct {
		name string
		d    Duration
	}{{"image", p.Timeouts.Image}, {"ready", p.Timeouts.Ready}, {"poll", p.Timeouts.Poll}, {"connect", p.Timeouts.Connect}, {"request", p.Timeouts.Request}, {"stop", p.Timeouts.Stop}} {
		if t.d <= 0 {
			d.odd("timeouts."+t.name, "%s leaves no time: write more than 0s", t.d)
		}
	}
	if p.Timeouts.Poll.D().Milliseconds() > 50 {
		d.odd("timeouts.poll", "%s blurs the moment of readiness: poll every 50ms at most", p.Timeouts.Poll)
	}
	emulated := 0
	for _, a := range p.Arms {
		if a.Engine.Emulated != nil {
			emulated++
		}
	}
	if p.TimeScale != 1 && emulated < len(p.Arms) {
		d.odd("time_scale", "%g scales emulated time, and not every arm is emulated: leave it out", p.TimeScale)
	}
	if math.IsInf(p.TimeScale, 0) || p.TimeScale > 1e4 {
		d.odd("time_scale", "%g leaves no measurable time: stay at or below 10000", p.TimeScale)
	}
	d.variables()
}

func (d *document) arms(p *Plan) {
	roles := map[Role]int{}
	names := map[string]int{}
	for i, a := range p.Arms {
		if a.Name == "" {
			continue // not decoded
		}
		at := fmt.Sprintf("arms[%d]", i)
		if first, twice := names[a.Name]; twice {
			d.odd(at+".name", "%q is the name of arms[%d] already", a.Name, first)
		} else {
			names[a.Name] = i
		}
		roles[a.Role]++
		d.engine(at, a)
	}
	if len(p.Arms) == 2 && p.Arms[0].Role == p.Arms[1].Role && p.Arms[0].Role != "" {
		d.odd("arms[1].role", "both arms are the %s: one is the baseline, one the candidate", p.Arms[1].Role)
	}
}

func (d *document) engine(at string, a Arm) {
	e := a.Engine
	n := 0
	for _, set := range []bool{e.Container != nil, e.Process != nil, e.Endpoint != nil, e.Emulated != nil} {
		if set {
			n++
		}
	}
	if n != 1 {
		d.odd(at+".engine", "it has %d of container, process, endpoint and emulated: an arm is exactly one", n)
	}
	if a.OnDisconnect == "" {
		d.odd(at+".on_disconnect", "missing: say what this server does with a request whose client left, finish or cancel (or unknown, for an endpoint)")
	}
	if a.OnDisconnect == Unknown && e.Endpoint == nil && n == 1 {
		d.odd(at+".on_disconnect", "unknown is for an endpoint that somebody else runs: say finish or cancel")
	}
	if c := e.Container; c != nil {
		for j, m := range c.Mounts {
			if (m.Volume == "") == (m.Source == "") {
				d.odd(fmt.Sprintf("%s.engine.container.mounts[%d]", at, j), "it needs either volume or source")
			}
		}
	}
	if m := e.Emulated; m != nil {
		if m.Parameters != "" && !slices.Contains(Parameters, m.Parameters) {
			d.odd(at+".engine.emulated.parameters", "there is no set %q: there are %s", m.Parameters, strings.Join(Parameters, ", "))
		}
		for j, f := range m.Faults {
			d.fault(fmt.Sprintf("%s.engine.emulated.faults[%d]", at, j), f)
		}
	}
}

func (d *document) fault(at string, f Fault) {
	if f.Kind != "" && !slices.Contains(FaultKinds, f.Kind) {
		hint := "there are " + strings.Join(FaultKinds, ", ")
		if near := nearest(f.Kind, FaultKinds); near != "" {
			hint = "did you mean " + near + "?"
		}
		d.odd(at+".kind", "there is no fault %q: %s", f.Kind, hint)
	}
	if f.Status != 0 && f.Kind != FaultHTTPStatus {
		d.odd(at+".status", "%d goes with http_status, not with %s", f.Status, f.Kind)
	}
}

func (d *document) sweep(p *Plan) {
	for i := 1; i < len(p.Sweep.Tiers); i++ {
		if p.Sweep.Tiers[i] <= p.Sweep.Tiers[i-1] {
			d.odd(fmt.Sprintf("schedule.tiers[%d]", i), "%d does not follow %d: write the tiers in rising order, each once", p.Sweep.Tiers[i], p.Sweep.Tiers[i-1])
		}
	}
	if !p.Sweep.Settle.None && p.Sweep.Settle.Idle <= 0 {
		d.odd("schedule.settle.idle", "%s leaves no time: write more than 0s, or settle: none", p.Sweep.Settle.Idle)
	}
	if p.Sweep.Settle.None && p.Gates.CarryOver == "invalid" {
		d.odd("schedule.settle", "none releases waves onto whatever the last one left, and gates.carry_over calls such waves invalid: set carry_over to report, or settle")
	}
}

// variables checks where ${VAR} stands and how it is written.
func (d *document) variables() {
	for _, path := range slices.Sorted(maps.Keys(d.at)) {
		at := d.at[path]
		if strings.HasSuffix(path, "#") || at == nil || !strings.Contains(at.Value, "${") {
			continue
		}
		if !machineValue.MatchString(path) {
			d.odd(path, "%q: ${…} is for values that belong to a machine (images, mounts, commands, URLs, env), and this decides the experiment", at.Value)
			continue
		}
		for _, m := range variable.FindAllStringSubmatch(at.Value, -1) {
			if !variableName.MatchString(m[1]) {
				d.odd(path, "%q: %q is no variable's name: write ${NAME} or ${NAME:-default}", at.Value, m[1])
			}
		}
		if strings.Count(at.Value, "${") != len(variable.FindAllString(at.Value, -1)) {
			d.odd(path, "%q: a ${ without its }", at.Value)
		}
	}
}

// machineValue matches the paths of values that belong to a machine.
var machineValue = regexp.MustCompile(`^arms\[\d+\]\.engine\.(container\.(image|env\..+|args\[\d+\]|mounts\[\d+\]\.(volume|source))|process\.(command\[\d+\]|env\..+|dir)|endpoint\.url)$`)

func duplicates(words []string) []string {
	var out []string
	seen := map[string]int{}
	for _, w := range words {
		if seen[w]++; seen[w] == 2 {
			out = append(out, w)
		}
	}
	return out
}
