//go:build unix

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"

	"assay/harness/plan"
	"assay/harness/record"
	"assay/harness/record/recordtest"
)

// as makes the test's own program another one: the command, so that a benchmark
// can look at what a process of it takes, or one that writes the large bundle into
// a folder, since a process that held it passes for as large with its children.
const as = "ASSAY_TEST_AS"

func TestMain(m *testing.M) {
	switch os.Getenv(as) {
	case "command":
		main()
	case "bundle":
		if err := writeLarge(os.Args[1], largeAttempts); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// The bundle that verification is held against, by its two sizes.
const (
	largeAttempts = 100_000
	largeTokens   = 128
)

// largePlan has so many thousands of attempts, in a pair of lifecycles for each
// twenty of them and in waves of 64 and of 436.
func largePlan(attempts int) *plan.Plan {
	pairs := max(1, attempts/20_000)
	return recordtest.Plan("tiers: [1, 4], repeats: 2, lifecycles: 1", fmt.Sprintf("tiers: [64, 436], repeats: %d, lifecycles: %d", attempts/(1000*pairs), pairs),
		"max_tokens: 4", fmt.Sprintf("max_tokens: %d", largeTokens))
}

// writeLarge writes a bundle of so many attempts, each with an event a token, as
// long in bytes as one that was measured.
func writeLarge(dir string, attempts int) error {
	p := largePlan(attempts)
	r := recordtest.Run(p, recordtest.Options{Fails: func(r record.Request) bool { return r.Arm == "naive" && r.Ordinal%50 == 0 }})
	random := rand.New(rand.NewPCG(1, 2))
	for i := range r.Requests {
		alter(&r.Requests[i], random)
	}
	return seal(dir, p, r)
}

// alter gives an attempt's events times and lags that differ, and its answer
// tokens and a length as those of a real server have: it mostly says the same.
func alter(r *record.Request, random *rand.Rand) {
	var text strings.Builder
	said := rand.New(rand.NewPCG(uint64(r.Ordinal%16), uint64(len(r.Arm))))
	if random.IntN(10) == 0 {
		said = random
	}
	for i := range r.Events {
		if i > 0 && i < len(r.Events)-1 {
			r.Events[i].Arrival += random.Int64N(900_000)
			r.Events[i].Earliest = r.Events[i].Arrival
		}
		r.ClientLag[i] = 3_000 + int64(random.ExpFloat64()*20_000)
		r.OutputTokenIDs[i] = said.IntN(50_000)
		fmt.Fprintf(&text, "%.*s ", 2+said.IntN(5), "abcdefgh")
	}
	r.OutputText = text.String()
}

// BenchmarkVerifyLarge is what it takes a process to verify 100,000 attempts of
// 128 events each: the time, and the most memory that it held at any moment.
func BenchmarkVerifyLarge(b *testing.B) {
	benchmark(b, "verify")
}

// BenchmarkReportLarge is what it takes to print the tables of the same.
func BenchmarkReportLarge(b *testing.B) {
	benchmark(b, "report")
}

func benchmark(b *testing.B, command string) {
	dir := filepath.Join(b.TempDir(), "large")
	child(b, "bundle", dir)
	peak := 0.0
	for b.Loop() {
		peak = max(peak, mebibytes(child(b, "command", command, dir).Maxrss))
	}
	b.ReportMetric(peak, "peak-MiB")
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/op")
}

// child is what a process of this program took.
func child(b *testing.B, what string, args ...string) *syscall.Rusage {
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), as+"="+what)
	if out, err := c.CombinedOutput(); err != nil {
		b.Fatalf("%s\n%s", err, out)
	}
	return c.ProcessState.SysUsage().(*syscall.Rusage)
}

// mebibytes of getrusage's unit, which is KiB but on Darwin.
func mebibytes(maxrss int64) float64 {
	if runtime.GOOS == "darwin" {
		return float64(maxrss) / (1 << 20)
	}
	return float64(maxrss) / (1 << 10)
}

func TestALargeBundleHoldsAsASmallOneDoes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "large")
	NewWithT(t).Expect(writeLarge(dir, 2000)).To(Succeed())
	code, out, errs := call(t, "verify", dir)
	NewWithT(t).Expect(code).To(Equal(0), out+errs)
	NewWithT(t).Expect(out).To(ContainSubstring("large holds: complete; the protocol was kept"))
}
