package comparison

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"assay/harness/plan"
	"assay/harness/record"
)

// difference is one place at which two plans differ.
type difference struct{ path, old, later string }

func (d difference) String() string { return fmt.Sprintf("%s: %s → %s", d.path, d.old, d.later) }

// deciding are the parts of a plan that say what is asked, how many come at
// once, and how long is waited. With others a number is of something else. What
// serves (model, engine, image) is what a comparison is there to compare.
var deciding = []string{"experiment", "workload", "sampling", "schedule.tiers", "schedule.repeats", "schedule.warmup", "schedule.settle", "timeouts.request", "timeouts.connect", "arms"}

func (d difference) decides() bool {
	if strings.HasPrefix(d.path, "arms.") {
		// An arm is known by its name, and by its role; a missing one is told so.
		parts := strings.Split(d.path, ".")
		return len(parts) == 2 || parts[2] == "role" || parts[2] == "on_disconnect"
	}
	return slices.ContainsFunc(deciding, func(p string) bool { return d.path == p || strings.HasPrefix(d.path, p+".") })
}

// planDifferences are all places at which two plans differ, in the order of their
// paths.
func planDifferences(old, later *plan.Plan) []difference {
	a, b := leaves(old), leaves(later)
	var out []difference
	all := maps.Clone(a)
	maps.Copy(all, b)
	for _, path := range slices.Sorted(maps.Keys(all)) {
		before, hadBefore := a[path]
		after, hasAfter := b[path]
		if before == after && hadBefore == hasAfter {
			continue
		}
		if !hadBefore {
			before = "none"
		}
		if !hasAfter {
			after = "none"
		}
		out = append(out, difference{path, before, after})
	}
	return out
}

// leaves are a plan's values by their paths; arms go by their names.
func leaves(p *plan.Plan) map[string]string {
	out := map[string]string{}
	data, err := json.Marshal(p)
	var tree map[string]any
	if err == nil {
		err = json.Unmarshal(data, &tree)
	}
	if err != nil {
		panic("a plan that is no JSON: " + err.Error()) // each of its types is
	}
	arms := map[string]any{}
	for i, a := range p.Arms {
		of := tree["arms"].([]any)[i].(map[string]any)
		delete(of, "name")
		arms[a.Name] = of
		out["arms."+a.Name] = "there"
	}
	tree["arms"] = arms
	walk(tree, "", out)
	return out
}

func walk(node any, path string, out map[string]string) {
	if m, ok := node.(map[string]any); ok {
		for key, v := range m {
			at := key
			if path != "" {
				at = path + "." + key
			}
			walk(v, at, out)
		}
		return
	}
	data, err := json.Marshal(node)
	if err != nil {
		panic("a plan's value is no JSON: " + err.Error())
	}
	if text := string(data); text != "null" {
		out[path] = record.Line(text)
	}
}

// differences are what differs between two runs beside their numbers: plan,
// what served, and what it ran on.
func differences(old, later Run) []string {
	out := []string{}
	if a, b := old.Summary.PlanSHA256, later.Summary.PlanSHA256; a != b {
		out = append(out, fmt.Sprintf("the plan's SHA-256: %s → %s", short(a), short(b)))
	}
	for _, d := range planDifferences(old.Plan, later.Plan) {
		if !d.decides() {
			out = append(out, "plan, "+d.String())
		}
	}
	for _, arm := range old.Plan.Arms {
		a, b := identity(old.Records, arm.Name), identity(later.Records, arm.Name)
		for _, name := range []string{"image", "image_id", "image_digest", "engine_version", "parameters", "model_digest", "gpu", "gpu_driver", "gpu_cuda"} {
			if a[name] != b[name] {
				out = append(out, fmt.Sprintf("%s, %s: %s → %s", arm.Name, name, known(a[name]), known(b[name])))
			}
		}
	}
	a, b := old.Records.Environment.Facts, later.Records.Environment.Facts
	for _, name := range []string{"cpu_model", "cpu_count", "memory_bytes", "os", "architecture", "kernel", "clock_source", "go_version", "revision"} {
		if x, y := factText(a[name]), factText(b[name]); x != y {
			out = append(out, fmt.Sprintf("%s: %s → %s", name, known(x), known(y)))
		}
	}
	return out
}

// identity is what an arm's lifecycles said of themselves: one value, or each
// that occurred.
func identity(run record.Run, arm string) map[string]string {
	seen := map[string][]string{}
	for _, l := range run.Lifecycles {
		if l.Arm != arm {
			continue
		}
		for name, f := range l.Identity {
			text := factText(f)
			if gpu, ok := f.Value.(map[string]any); ok && strings.HasPrefix(name, "gpu_") {
				name, text = "gpu", record.Line(fmt.Sprint(gpu["name"]))
			}
			if text != "" && !slices.Contains(seen[name], text) {
				seen[name] = append(seen[name], text)
			}
		}
	}
	out := map[string]string{}
	for name, texts := range seen {
		slices.Sort(texts)
		out[name] = strings.Join(texts, " and ")
	}
	return out
}

// factText is a fact's value as JSON, so that one that was kept reads as one
// that was read back; empty: it is not known.
func factText(f record.Fact) string {
	if f.Value == nil {
		return ""
	}
	if text, ok := f.Value.(string); ok {
		return record.Line(text)
	}
	data, err := json.Marshal(f.Value)
	if err != nil {
		return ""
	}
	return record.Line(string(data))
}

func known(text string) string {
	if text == "" {
		return "not known"
	}
	return text
}
