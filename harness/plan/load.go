package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Load reads and validates a plan's file. The error is a [*Mistakes] if the
// file is there and the plan in it can't be run.
func Load(path string) (*Plan, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("the plan can't be read: %w", err)
	}
	return Parse(path, data)
}

// Parse validates a plan and fills its defaults in. name stands for the file
// in what it says. The error is always a [*Mistakes], with every mistake.
func Parse(name string, data []byte) (*Plan, error) {
	d := &document{
		mistakes: Mistakes{File: name}, at: map[string]*token.Token{}, shown: map[string]string{},
		bad: map[string]bool{}, meant: map[string]bool{}, again: map[*ast.MappingValueNode]bool{},
	}
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
	root     any                     // the document as JSON would hold it
	at       map[string]*token.Token // position of each value by its path; of a key by path + "#"
	shown    map[string]string       // each value as a message shows it, by its path
	// bad are the paths of what has been found wrong or missing already: it is
	// left out of the plan, and the checks that follow are silent about it.
	bad map[string]bool
	// meant are the paths of known keys that unknown ones are probably meant
	// to be.
	meant map[string]bool
	// again are keys that stand in their mapping for the second time: the
	// first counts.
	again map[*ast.MappingValueNode]bool
}

func (d *document) parse(data []byte) *Plan {
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		d.syntax(err)
		return nil
	}
	if n := documents(file); n != 1 {
		d.add(nil, "", "a plan is one YAML document, and this file has %d", n)
		return nil
	}
	body := file.Docs[slices.IndexFunc(file.Docs, func(doc *ast.DocumentNode) bool { return doc.Body != nil })].Body
	d.root = d.value(body, "")
	keys, ok := d.root.(map[string]any)
	if !ok {
		d.add(body.GetToken(), "", "a plan is a mapping that begins with schema: %s", Schema)
		return nil
	}
	kind, _ := keys["experiment"].(string)
	d.schema(Experiment(kind))
	p := d.sections(body, Experiment(kind))
	d.spans(p)
	p.fill()
	d.check(p)
	return p
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

// sections decodes each part of the plan by itself, without what is wrong in
// it, so that one mistake hides no other. What does not decode all the same is
// left empty.
func (d *document) sections(body ast.Node, kind Experiment) *Plan {
	var p Plan
	into := map[string]any{
		"schema": &p.Schema, "name": &p.Name, "experiment": &p.Experiment, "labels": &p.Labels, "seed": &p.Seed,
		"time_scale": &p.TimeScale, "model": &p.Model, "workload": &p.Workload, "sampling": &p.Sampling,
		"schedule": &p.Sweep, "timeouts": &p.Timeouts, "gates": &p.Gates, "claims": &p.Claims,
	}
	for _, v := range entries(body) {
		if v.Key.GetToken().Value == "telemetry" {
			p.Telemetry = &Telemetry{}
			into["telemetry"] = p.Telemetry
		}
	}
	var pairs crossoverSchedule
	if kind == Crossover {
		c := &Pairing{}
		p.Pairing = c
		maps.Copy(into, map[string]any{
			"caches": &c.Caches, "lanes": &c.Lanes, "schedule": &pairs, "failure": &c.Failure, "crossing": &c.Crossing,
			"inference": &c.Inference,
		})
		// A pointer that is nil says that the plan has no such key.
		for _, v := range entries(body) {
			switch v.Key.GetToken().Value {
			case "cost":
				c.Cost = &Cost{}
				into["cost"] = c.Cost
			case "resume":
				c.Resume = &Resume{}
				into["resume"] = c.Resume
			}
		}
	}
	if kind == Arrival {
		p.Arrivals = &Arrivals{}
		into["arrivals"] = p.Arrivals
		for _, v := range entries(body) {
			if v.Key.GetToken().Value == "search" {
				p.Search = &Search{}
				into["search"] = p.Search
			}
		}
	}
	for _, v := range entries(body) {
		key := v.Key.GetToken().Value
		if d.again[v] || d.bad[key] {
			continue
		}
		if list, ok := v.Value.(*ast.SequenceNode); ok && key == "arms" {
			for i, item := range list.Values {
				p.Arms = append(p.Arms, Arm{})
				d.decode(item, fmt.Sprintf("arms[%d]", i), &p.Arms[i])
			}
		} else if to, ok := into[key]; ok {
			d.decode(v.Value, key, to)
		}
	}
	if c := p.Pairing; c != nil {
		c.Pairs, c.Blocks, p.Timeouts.Poll = pairs.Pairs, pairs.Blocks, pairs.Poll
	}
	return &p
}

func (d *document) decode(node ast.Node, path string, to any) {
	if !d.prune(node, path) {
		return
	}
	if err := yaml.NodeToValue(node, to); err != nil {
		if !d.covered(path) {
			d.wrong(path, "%s", strings.ReplaceAll(err.Error(), "\n", " "))
		}
		d.bad[path] = true
	}
}

// prune takes what is wrong out of a node, and says whether any of it is left.
// An item that is wrong takes its list along, since the items after it would
// move.
func (d *document) prune(node ast.Node, path string) bool {
	if d.bad[path] {
		return false
	}
	switch n := node.(type) {
	case *ast.MappingNode:
		n.Values = slices.DeleteFunc(n.Values, func(v *ast.MappingValueNode) bool { return !d.keeps(v, path) })
	case *ast.MappingValueNode:
		return d.keeps(n, path)
	case *ast.SequenceNode:
		for i, item := range n.Values {
			if !d.prune(item, fmt.Sprintf("%s[%d]", path, i)) {
				return false
			}
		}
	}
	return true
}

func (d *document) keeps(v *ast.MappingValueNode, path string) bool {
	return !d.again[v] && d.prune(v.Value, join(path, v.Key.GetToken().Value))
}

func entries(node ast.Node) []*ast.MappingValueNode {
	switch n := node.(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	default:
		return nil
	}
}

// covered is whether a path, or something above it, was found wrong already.
func (d *document) covered(path string) bool {
	for {
		if d.bad[path] {
			return true
		}
		above, ok := parent(path)
		if !ok {
			return false
		}
		path = above
	}
}

// parent is the path above a path.
func parent(path string) (string, bool) {
	cut := strings.LastIndexAny(path, ".[")
	if cut < 0 {
		return "", false
	}
	return path[:cut], true
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func (d *document) add(at *token.Token, key, format string, args ...any) {
	m := Mistake{Line: 1, Column: 1, Key: key, Text: fmt.Sprintf(format, args...)}
	if at != nil && at.Position != nil {
		m.Line, m.Column = max(1, at.Position.Line), max(1, at.Position.Column)
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
		above, ok := parent(path)
		if !ok {
			return d.at[""]
		}
		path = above
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

// value turns a node into what JSON would hold, and notes where everything is
// and how it looks.
func (d *document) value(node ast.Node, path string) any {
	d.at[path] = node.GetToken()
	switch n := node.(type) {
	case *ast.MappingNode:
		return d.mapping(n.Values, path)
	case *ast.MappingValueNode:
		return d.mapping([]*ast.MappingValueNode{n}, path)
	case *ast.SequenceNode:
		d.shown[path] = "a list"
		out := make([]any, 0, len(n.Values))
		for i, item := range n.Values {
			out = append(out, d.value(item, fmt.Sprintf("%s[%d]", path, i)))
		}
		return out
	case *ast.NullNode:
		d.shown[path] = "nothing"
		return nil
	case *ast.BoolNode:
		d.shown[path] = strconv.FormatBool(n.Value)
		return n.Value
	case *ast.IntegerNode:
		d.shown[path] = fmt.Sprint(n.Value)
		return json.Number(fmt.Sprint(n.Value))
	case *ast.FloatNode:
		d.shown[path] = strconv.FormatFloat(n.Value, 'g', -1, 64)
		return json.Number(d.shown[path])
	case *ast.StringNode:
		d.shown[path] = strconv.Quote(n.Value)
		return n.Value
	case *ast.LiteralNode:
		d.shown[path] = strconv.Quote(n.Value.Value)
		return n.Value.Value
	default:
		d.add(node.GetToken(), path, "%s is not used in plans: write the value itself", strings.ToLower(node.Type().String()))
		d.bad[path] = true
		return nil
	}
}

func (d *document) mapping(values []*ast.MappingValueNode, path string) any {
	d.shown[path] = "a mapping"
	if len(values) > 0 {
		d.at[path] = values[0].Key.GetToken()
	}
	out := map[string]any{}
	for _, v := range values {
		key := v.Key.GetToken().Value
		below := join(path, key)
		if _, twice := out[key]; twice {
			first := d.at[below+"#"]
			d.add(v.Key.GetToken(), below, "the key stands here for the second time: the first is on line %d, and one of them has to go", first.Position.Line)
			d.again[v] = true
			continue
		}
		d.at[below+"#"] = v.Key.GetToken()
		out[key] = d.value(v.Value, below)
	}
	return out
}
