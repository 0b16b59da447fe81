package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"assay/harness/crossing"
)

const (
	table       = "harness/crossing/calibration.json"
	page        = "docs/statistics.md"
	begin, end  = "<!-- calibration: begin -->\n", "<!-- calibration: end -->"
	experiments = 4000
	seed        = 20261201
)

func main() {
	var lines []crossing.CalibrationLine
	for _, k := range crossing.CalibratedPairs {
		for _, d := range crossing.Distributions {
			lines = append(lines, crossing.Calibrate(k, d, experiments, seed))
			fmt.Fprintf(os.Stderr, "%+v\n", lines[len(lines)-1])
		}
	}
	if err := write(lines); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(lines []crossing.CalibrationLine) error {
	data, err := json.MarshalIndent(lines, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(table, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("run it at the project's root: %w", err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	head, rest, ok := strings.Cut(string(text), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return fmt.Errorf("%s has no place for the table: put the two markers back", page)
	}
	return os.WriteFile(page, []byte(head+begin+markdown(lines)+end+tail), 0o644)
}

func markdown(lines []crossing.CalibrationLine) string {
	var out strings.Builder
	out.WriteString("| pairs | differences | sign-flip interval covers | bootstrap covers | A/A: a difference claimed | A/A: a repaid debt claimed | found in 4 of 5, in standard deviations |\n|---:|---|---:|---:|---:|---:|---:|\n")
	for _, l := range lines {
		found := "–"
		if l.Detectable > 0 {
			found = fmt.Sprintf("%.2f", l.Detectable)
		}
		fmt.Fprintf(&out, "| %d | %s | %.1f %% | %.1f %% | %.1f %% | %.1f %% | %s |\n",
			l.K, l.Distribution, 100*l.Inverted, 100*l.Bootstrap, 100*l.FalseClaims, 100*l.FalseCrossings, found)
	}
	return out.String()
}
