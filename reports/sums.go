package reports

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"assay/harness/record"
)

// Seal writes SHA256SUMS over every file of a bundle but itself and a signature
// of it, in the format of sha256sum. It comes last of all.
func Seal(dir string) error {
	files, err := list(dir)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	for _, name := range files {
		sum, err := sumOf(dir, name)
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "%s  %s\n", sum, name)
	}
	return record.WriteFile(filepath.Join(dir, SumsFile), out.Bytes())
}

// list names a bundle's files but SHA256SUMS and its signature, in order, with forward slashes.
func list(dir string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if !entry.Type().IsRegular() {
			return fmt.Errorf("%s is no plain file: a bundle holds what it names, and no link to it", path)
		}
		name, err := filepath.Rel(dir, path)
		if name = filepath.ToSlash(name); name != SumsFile && name != SignatureFile {
			files = append(files, name)
		}
		return err
	})
	slices.Sort(files)
	return files, err
}

func sumOf(dir, name string) (string, error) {
	file, err := os.Open(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := sha256.New()
	_, err = io.CopyBuffer(struct{ io.Writer }{sum}, struct{ io.Reader }{file}, make([]byte, 1<<18))
	return hex.EncodeToString(sum.Sum(nil)), err
}

// checkSums holds the files against SHA256SUMS and says every difference.
func checkSums(dir string) ([]string, error) {
	data, err := os.ReadFile(filepath.Join(dir, SumsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return []string{SumsFile + " is missing: the run was killed before it was sealed, or somebody removed it"}, nil
	}
	if err != nil {
		return nil, err
	}
	want, faults := ParseSums(data)
	files, err := list(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		sum, err := sumOf(dir, name)
		if err != nil {
			return nil, err
		}
		switch {
		case want[name] == "":
			faults = append(faults, fmt.Sprintf("%s: it is not in %s", name, SumsFile))
		case want[name] != sum:
			faults = append(faults, fmt.Sprintf("%s: its SHA-256 is not the one in %s", name, SumsFile))
		}
		delete(want, name)
	}
	var missing []string
	for name := range want {
		missing = append(missing, name)
	}
	slices.Sort(missing)
	for _, name := range missing {
		faults = append(faults, fmt.Sprintf("%s: it is in %s, and the file is missing", name, SumsFile))
	}
	return faults, nil
}

var sumLine = regexp.MustCompile(`^([0-9a-f]{64})  ([^\x00\r\n]+)$`)

// ParseSums reads SHA256SUMS: each file's SHA-256, in hex. A line that is none,
// or names a file for the second time, is a fault.
func ParseSums(data []byte) (sums map[string]string, faults []string) {
	sums = map[string]string{}
	if len(data) == 0 {
		return sums, []string{SumsFile + " is empty"}
	}
	for _, line := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
		m := sumLine.FindStringSubmatch(line)
		if m == nil || sums[m[2]] != "" {
			faults = append(faults, fmt.Sprintf("%s: %q is no line of it", SumsFile, line))
			continue
		}
		sums[m[2]] = m[1]
	}
	return sums, faults
}
