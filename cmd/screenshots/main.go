package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"assay/reports"
	"assay/reports/html/browser"
)

// A screenshot is a published bundle's page, down to the end of a figure.
var screenshots = []struct{ bundle, name, until string }{
	{"h200-naive-vs-vllm", "page-concurrency.png", "timeline-64"},
	{"crossover-cpu", "page-crossover.png", "crossing"},
	{"arrival-cpu", "page-arrival.png", "timeline-3"},
}

// largest is the most bytes that a picture may have.
const largest = 150_000

func main() {
	results := flag.String("results", "docs/results", "the folder of the published bundles")
	out := flag.String("out", "docs/pictures", "the folder for the pictures")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if err := all(ctx, *results, *out); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func all(ctx context.Context, results, out string) error {
	chromium, err := browser.Find()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	var errs []error
	for _, s := range screenshots {
		data, err := shot(ctx, chromium, filepath.Join(results, s.bundle+reports.PackedExtension), s.until)
		if err == nil && len(data) > largest {
			err = fmt.Errorf("it has %d bytes, and a picture in the documentation may have %d", len(data), largest)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(out, s.name), data, 0o644)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.name, err))
			continue
		}
		fmt.Printf("%s: %d bytes\n", filepath.Join(out, s.name), len(data))
	}
	return errors.Join(errs...)
}

// shot is the picture of a packed bundle's page.
func shot(ctx context.Context, chromium, packed, until string) ([]byte, error) {
	folder, err := os.MkdirTemp("", "assay-page-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	file, err := os.Open(packed)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	dir, err := reports.Unpack(file, folder)
	if err != nil {
		return nil, err
	}
	b, err := reports.Read(dir)
	if err != nil {
		return nil, err
	}
	page, err := reports.HTML(b)
	if err != nil {
		return nil, err
	}
	name := filepath.Join(folder, reports.PageFile)
	if err := os.WriteFile(name, page, 0o644); err != nil {
		return nil, err
	}
	const width = 1120
	tab, err := browser.Open(ctx, chromium, name, browser.View{Width: width, Height: 900})
	if err != nil {
		return nil, err
	}
	defer tab.Close()
	height, err := browser.Evaluate[float64](tab, fmt.Sprintf("document.querySelector('#%s .panels').getBoundingClientRect().bottom + scrollY + 24", until))
	if err != nil {
		return nil, fmt.Errorf("the page has no figure %s: %w", until, err)
	}
	data, err := tab.Picture(width, height)
	if err != nil {
		return nil, err
	}
	var small bytes.Buffer
	if err := reduce(&small, data); err != nil {
		return nil, err
	}
	return small.Bytes(), nil
}
