//go:build linux

package telemetry_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"assay/harness/clock"
	"assay/harness/telemetry"
)

// cpu is what this process has used of its processors.
func cpu(b *testing.B) time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		b.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// BenchmarkPage is one look at a page of vLLM's over the loopback interface.
// The server that hands it out is in this process, so that its cost is counted
// too.
func BenchmarkPage(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(busy) }))
	defer server.Close()
	scraper := telemetry.NewScraper(server.URL)
	defer scraper.Close()
	before := cpu(b)
	for b.Loop() {
		if _, err := scraper.Page(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	used := cpu(b) - before
	b.ReportMetric(float64(used)/float64(b.N)*10/float64(time.Second)*100, "%core-at-10Hz")
}

// BenchmarkWatch is a second of a whole watch at 10 Hz, the GPU a recorded one
// where there is no real one.
func BenchmarkWatch(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(busy) }))
	defer server.Close()
	config := telemetry.Config{Clock: clock.Start(), Salt: "bench", GPUs: 100 * time.Millisecond, Engine: 100 * time.Millisecond}
	if gpus, err := (telemetry.NVML{}).Devices(); err == nil {
		config.Prober, config.Devices = telemetry.NVML{}, gpus.Devices
	} else {
		r := &recorded{devices: []telemetry.Device{h200}, looks: []func() (telemetry.Look, error){saying(1)}}
		config.Prober, config.Devices = r, r.devices
	}
	w := telemetry.Begin(config)
	w.Follow(telemetry.NewScraper(server.URL))
	defer w.Close()
	before, from := cpu(b), time.Now()
	for b.Loop() {
		time.Sleep(time.Second) // what is measured is what happens meanwhile
	}
	b.ReportMetric(float64(cpu(b)-before)/float64(time.Since(from))*100, "%core")
	w.Cut()
}
