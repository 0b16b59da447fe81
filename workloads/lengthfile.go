package workloads

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// LoadLengths reads the lengths of a file, for [LengthSpec.Values]: one a line,
// or, where a column is named, that column of a CSV file with a header. License
// is as for [Source]. The error says everything that is wrong: each faulty line
// by its number, the first 20 of them.
func LoadLengths(path, column, license string) ([]int, Dataset, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, Dataset{}, fmt.Errorf("the lengths can't be read: %w", err)
	}
	defer file.Close()
	values, d, err := ReadLengths(file, column, license)
	if err != nil {
		return nil, Dataset{}, fmt.Errorf("%s: %w", path, err)
	}
	d.File = filepath.Base(path)
	return values, d, nil
}

// ReadLengths is [LoadLengths] of what has no path; its Dataset names no file.
func ReadLengths(r io.Reader, column, license string) ([]int, Dataset, error) {
	if strings.TrimSpace(license) == "" {
		return nil, Dataset{}, errors.New("the file's licence is not declared: write it, or unknown")
	}
	var values []int
	f := faults{place: "line"}
	take := func(line int, text string) {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 1 || n > mostTokens {
			f.add(line, fmt.Sprintf("the length is %q: write a whole number from 1 to %d", text, mostTokens))
			return
		}
		values = append(values, n)
	}
	sum, err := hashed(r, func(r io.Reader) error {
		if column == "" {
			return eachLine(r, func(line int, text []byte) { take(line, string(text)) })
		}
		at := -1
		return eachRecord(r, &f, func(line int, record []string) bool {
			switch {
			case at < 0:
				if at = slices.Index(record, column); at < 0 {
					f.add(line, fmt.Sprintf("there is no column %q: there are %q", column, record))
				}
				return at >= 0
			case at >= len(record):
				f.add(line, fmt.Sprintf("it has %d fields, and the column %q is number %d", len(record), column, at+1))
			default:
				take(line, record[at])
			}
			return true
		})
	})
	if err := errors.Join(err, f.err()); err != nil {
		return nil, Dataset{}, err
	}
	if len(values) == 0 {
		return nil, Dataset{}, errors.New("there is no length in it")
	}
	return values, Dataset{
		Kind: "lengths", SHA256: sum, License: license, Column: column, Entries: len(values), Taken: len(values), LeftOut: map[string]int{},
	}, nil
}
