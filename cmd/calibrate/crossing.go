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
	experiments = 4000
	seed        = 20261201
)

func crossings() error {
	var lines []crossing.CalibrationLine
	for _, k := range crossing.CalibratedPairs {
		for _, d := range crossing.Distributions {
			lines = append(lines, crossing.Calibrate(k, d, experiments, seed))
			fmt.Fprintf(os.Stderr, "%+v\n", lines[len(lines)-1])
		}
	}
	data, err := json.MarshalIndent(lines, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(table, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("run it at the project's root: %w", err)
	}
	return put("calibration", crossingTable(lines))
}

func crossingTable(lines []crossing.CalibrationLine) string {
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
