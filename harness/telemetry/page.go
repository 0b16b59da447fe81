package telemetry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"

	"assay/harness/record"
)

// A Scraper reads one engine's metrics page again and again, on one connection
// of its own.
type Scraper struct {
	url     string
	prepare []func(*http.Request)
	client  *http.Client
}

// NewScraper makes one for the page at url. Each prepare may add a header, such
// as a key.
func NewScraper(url string, prepare ...func(*http.Request)) *Scraper {
	c := direct()
	c.Transport.(*http.Transport).DisableKeepAlives = false
	return &Scraper{url: url, prepare: prepare, client: c}
}

// Close ends the scraper's connection.
func (s *Scraper) Close() { s.client.CloseIdleConnections() }

// Page reads the page once. The error says what was wrong with it: no answer in
// time, no page, one that is larger than any engine's, or text that is none.
func (s *Scraper) Page(ctx context.Context) (record.Page, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	text, err := fetch(ctx, s.client, s.url, s.prepare)
	if errors.Is(err, context.DeadlineExceeded) {
		return record.Page{}, fmt.Errorf("%s did not answer in time", s.url)
	}
	if err != nil {
		return record.Page{}, err
	}
	page, err := ParsePage(text)
	if err != nil {
		return page, fmt.Errorf("%s is no Prometheus page: %w", s.url, err)
	}
	return page, nil
}

// fetch gets a page's text.
func fetch(ctx context.Context, c *http.Client, url string, prepare []func(*http.Request)) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	for _, p := range prepare {
		p(request)
	}
	response, err := c.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answered %s: no engine metrics there", url, response.Status)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxPage+1))
	if err == nil && len(text) > maxPage {
		err = fmt.Errorf("%s is larger than %d MiB: that is no engine's metrics page", url, maxPage>>20)
	}
	return text, err
}

// ParsePage reads what is kept of a page's text, by vLLM's names, whichever
// engine of those that are known it is of. Lines of other families are
// skipped unread: an engine has a hundred, and reading them all ten times a
// second would cost more than the load client itself.
func ParsePage(text []byte) (record.Page, error) {
	page := record.Page{Values: map[string]float64{}, Histograms: map[string]record.Histogram{}}
	families, err := parse(ours(text))
	if err != nil {
		return page, err
	}
	named(families)
	for name, f := range families {
		if f.GetType() == dto.MetricType_HISTOGRAM {
			if h, ok := histogram(f); ok {
				page.Histograms[name] = h
			}
			continue
		}
		if v := total(f); finite(v) {
			page.Values[name] = v
		}
	}
	return page, nil
}

// ours are the lines of a page that belong to the kept families.
func ours(text []byte) []byte {
	var out bytes.Buffer
	for line := range bytes.Lines(text) {
		if keptFamilies[family(line)] {
			out.Write(bytes.TrimSuffix(line, []byte("\n")))
			out.WriteByte('\n')
		}
	}
	return out.Bytes()
}

// family is the family that a line of a page belongs to; empty for one that
// belongs to none.
func family(line []byte) string {
	if rest, ok := bytes.CutPrefix(line, []byte("# ")); ok {
		words := bytes.Fields(rest)
		if len(words) < 2 {
			return ""
		}
		return string(words[1])
	}
	end := bytes.IndexAny(line, "{ \t\n")
	if end < 0 {
		end = len(line)
	}
	name := string(line[:end])
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if base, ok := strings.CutSuffix(name, suffix); ok && keptFamilies[base] {
			return base
		}
	}
	return name
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// histogram adds a family over its labels; false if its buckets are not the
// same everywhere, or it has a number that is none.
func histogram(f *dto.MetricFamily) (record.Histogram, bool) {
	var out record.Histogram
	for i, m := range f.GetMetric() {
		h := m.GetHistogram()
		out.Count += float64(h.GetSampleCount())
		out.Sum += h.GetSampleSum()
		for j, b := range h.GetBucket() {
			upper := strconv.FormatFloat(b.GetUpperBound(), 'g', -1, 64)
			if i == 0 {
				out.Buckets = append(out.Buckets, record.Bucket{Upper: upper})
			}
			if j >= len(out.Buckets) || out.Buckets[j].Upper != upper {
				return out, false
			}
			out.Buckets[j].Count += float64(b.GetCumulativeCount())
		}
	}
	return out, finite(out.Sum) && finite(out.Count)
}
