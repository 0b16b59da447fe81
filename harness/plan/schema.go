package plan

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

//go:embed schema/plan.schema.json
var schemaJSON []byte

// crossoverJSON is what a crossover plan's schema has otherwise: a JSON merge
// patch (RFC 7396) to the concurrency plan's.
//
//go:embed schema/crossover.patch.json
var crossoverJSON []byte

// arrivalJSON is likewise an arrival plan's.
//
//go:embed schema/arrival.patch.json
var arrivalJSON []byte

// formats are the texts with a unit, each read by the type that decodes it, so
// that the schema lets nothing through that does not decode.
var formats = []*jsonschema.Format{
	format("assay-duration", func(b []byte) error { return new(Duration).UnmarshalText(b) }),
	format("assay-size", func(b []byte) error { return new(Bytes).UnmarshalText(b) }),
	format("assay-rate", func(b []byte) error { return new(Rate).UnmarshalText(b) }),
	format("assay-percent", func(b []byte) error { return new(Percent).UnmarshalText(b) }),
}

func format(name string, read func([]byte) error) *jsonschema.Format {
	return &jsonschema.Format{Name: name, Validate: func(v any) error {
		if s, ok := v.(string); ok {
			return read([]byte(s))
		}
		return nil // its type is said to be wrong elsewhere
	}}
}

// compiled is a schema of plans, as a document and ready to validate.
type compiled struct {
	document any
	schema   *jsonschema.Schema
}

// compile makes the schemas once. Any experiment that there is not gets the
// concurrency plan's, whose list of experiments names what there is.
var compile = sync.OnceValue(func() map[Experiment]compiled {
	of := func(name string, layers ...[]byte) compiled {
		var whole any
		for _, layer := range layers {
			parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(layer))
			if err != nil {
				panic("the embedded schema " + name + " is no JSON: " + err.Error())
			}
			whole = merge(whole, parsed)
		}
		compiler := jsonschema.NewCompiler()
		for _, f := range formats {
			compiler.RegisterFormat(f)
		}
		compiler.AssertFormat()
		if err := compiler.AddResource(name, whole); err != nil {
			panic("the embedded schema " + name + " does not load: " + err.Error())
		}
		schema, err := compiler.Compile(name)
		if err != nil {
			panic("the embedded schema " + name + " does not compile: " + err.Error())
		}
		return compiled{document: whole, schema: schema}
	}
	return map[Experiment]compiled{
		Concurrency: of("plan.schema.json", schemaJSON), Crossover: of("crossover.schema.json", schemaJSON, crossoverJSON),
		Arrival: of("arrival.schema.json", schemaJSON, arrivalJSON),
	}
})

// merge applies a JSON merge patch, as RFC 7396 has it: null takes a member
// away, an object goes into the object that is there, anything else replaces.
func merge(target, patch any) any {
	members, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	into, ok := target.(map[string]any)
	if !ok {
		into = map[string]any{}
	}
	for key, value := range members {
		if value == nil {
			delete(into, key)
		} else {
			into[key] = merge(into[key], value)
		}
	}
	return into
}

// schema validates the whole document and turns each of the schema's findings
// into a mistake with its place.
func (d *document) schema(kind Experiment) {
	of, ok := compile()[kind]
	if !ok {
		of = compile()[Concurrency]
	}
	var invalid *jsonschema.ValidationError
	if errors.As(of.schema.Validate(d.root), &invalid) {
		d.finding(invalid, of.document)
	}
	// A key that is missing because it is misspelt is one mistake.
	d.mistakes.List = slices.DeleteFunc(d.mistakes.List, func(m Mistake) bool {
		return d.meant[m.Key] && strings.HasPrefix(m.Text, missing)
	})
}

const missing = "missing: "

func (d *document) finding(e *jsonschema.ValidationError, schema any) {
	path := d.path(e.InstanceLocation)
	switch k := e.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		known := properties(schema, e.SchemaURL)
		for _, key := range k.Properties {
			below := join(path, key)
			hint := "known are " + strings.Join(known, ", ")
			absent := slices.DeleteFunc(slices.Clone(known), func(k string) bool { return d.at[join(path, k)+"#"] != nil })
			if near := nearest(key, absent); near != "" {
				hint = "did you mean " + near + "?"
				d.meant[join(path, near)] = true
			}
			d.add(d.at[below+"#"], below, "unknown key; %s", hint)
			d.bad[below] = true
		}
		return
	case *kind.Required:
		for _, key := range k.Missing {
			below := join(path, key)
			d.add(d.place(path), below, missing+"write %s", property(schema, e.SchemaURL, key))
			d.bad[below] = true
		}
		return
	}
	if text := d.text(e, path, described(schema, e.SchemaURL)); text != "" {
		// What is no plain value, or stands there twice, has been told.
		if !d.bad[path] {
			d.wrong(path, "%s", text)
			d.bad[path] = true
		}
		return
	}
	for _, cause := range e.Causes {
		d.finding(cause, schema)
	}
}

// text says what is wrong with the value at a path, the value, and what would
// be right; empty if the finding only holds others.
func (d *document) text(e *jsonschema.ValidationError, path, right string) string {
	shown := d.shown[path]
	switch k := e.ErrorKind.(type) {
	case *kind.Enum:
		return enum(k, shown, right)
	case *kind.Const:
		return fmt.Sprintf("%s is wrong: write %s", shown, or(right, fmt.Sprint(k.Want)))
	case *kind.Pattern:
		return fmt.Sprintf("%s is wrong: write %s", shown, or(right, "text of the form "+k.Want))
	case *kind.Format:
		if near := bareNumber(shown); near != "" {
			return fmt.Sprintf("%s has no unit: write %s", near, right)
		}
		return fmt.Sprintf("%s is wrong: write %s", shown, right)
	case *kind.Type:
		if k.Got == "number" && withoutUnit(right) {
			return fmt.Sprintf("%s has no unit: write %s", shown, right)
		}
		return fmt.Sprintf("%s is wrong: write %s", shown, or(right, words(k.Want)))
	case *kind.Minimum:
		return fmt.Sprintf("%s is too small: write %s or more%s", shown, number(k.Want), which(right))
	case *kind.ExclusiveMinimum:
		return fmt.Sprintf("%s is too small: write more than %s%s", shown, number(k.Want), which(right))
	case *kind.Maximum:
		return fmt.Sprintf("%s is too large: write %s or less%s", shown, number(k.Want), which(right))
	case *kind.MinItems:
		return fmt.Sprintf("%d of them are too few: write %s", k.Got, right)
	case *kind.MaxItems:
		return fmt.Sprintf("%d of them are too many: write %s", k.Got, right)
	case *kind.MinLength:
		return fmt.Sprintf("%s is empty: write %s", shown, right)
	}
	if len(e.Causes) > 0 {
		return ""
	}
	return e.ErrorKind.LocalizedString(message.NewPrinter(language.English))
}

// enum says which words there are.
func enum(k *kind.Enum, shown, right string) string {
	known := make([]string, len(k.Want))
	for i, w := range k.Want {
		known[i] = fmt.Sprint(w)
	}
	if near := nearest(fmt.Sprint(k.Got), known); near != "" {
		return fmt.Sprintf("%s is not known; did you mean %s?", shown, near)
	}
	return fmt.Sprintf("%s is not known: write %s", shown, or(right, strings.Join(known, ", ")))
}

// withoutUnit is whether a number is a value that only lacks its unit.
func withoutUnit(right string) bool {
	return strings.Contains(right, "with its unit") || strings.HasPrefix(right, "a share from")
}

// bareNumber is a quoted text's number if it is one that only lacks its unit.
func bareNumber(shown string) string {
	text, err := strconv.Unquote(shown)
	if err != nil {
		return ""
	}
	if _, err := strconv.ParseFloat(text, 64); err != nil {
		return ""
	}
	return shown
}

func number(r *big.Rat) string {
	f, _ := r.Float64()
	if r.IsInt() {
		return r.Num().String()
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

func which(right string) string {
	if right == "" {
		return ""
	}
	return " (" + right + ")"
}

func or(text, otherwise string) string {
	if text != "" {
		return text
	}
	return otherwise
}

// words are a schema's types as a person says them.
func words(types []string) string {
	said := map[string]string{
		"integer": "a whole number", "number": "a number", "string": "text", "boolean": "true or false", "array": "a list", "object": "a mapping",
	}
	out := make([]string, len(types))
	for i, t := range types {
		out[i] = or(said[t], t)
	}
	return strings.Join(out, " or ")
}

// path writes a location as keys and indices. A key may look like an index, so
// that the document is asked which it is.
func (d *document) path(location []string) string {
	path, at := "", d.root
	for _, step := range location {
		switch v := at.(type) {
		case []any:
			path += "[" + step + "]"
			if i, err := strconv.Atoi(step); err == nil && i < len(v) {
				at = v[i]
			}
		case map[string]any:
			path, at = join(path, step), v[step]
		}
	}
	return path
}

// subschema follows a schema location's fragment, and the reference that may
// stand there.
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

func described(schema any, location string) string {
	text, _ := subschema(schema, location)["description"].(string)
	return text
}

// property is what is to be written for a property of the schema at a
// location.
func property(schema any, location, key string) string {
	props, _ := subschema(schema, location)["properties"].(map[string]any)
	of, _ := props[key].(map[string]any)
	if to, ok := of["$ref"].(string); ok && of["description"] == nil {
		return described(schema, to)
	}
	text, _ := of["description"].(string)
	return text
}
