package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// page has the tables, each between two markers that name it.
const page = "docs/statistics.md"

func main() {
	if err := errors.Join(crossings(), comparisons()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// put writes a table in its place on the page; it runs at the module's root.
func put(name, table string) error {
	data, err := os.ReadFile(page)
	if err != nil {
		return fmt.Errorf("run it at the project's root: %w", err)
	}
	begin, end := fmt.Sprintf("<!-- %s: begin -->\n", name), fmt.Sprintf("<!-- %s: end -->\n", name)
	head, rest, ok := strings.Cut(string(data), begin)
	_, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return fmt.Errorf("%s has no place for the table: write %q and %q there", page, begin, end)
	}
	return os.WriteFile(page, []byte(head+begin+table+end+tail), 0o644)
}
