package record_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"assay/harness/record"
)

func wave(n int) (record.Wave, []record.Request) {
	requests := []record.Request{{Lifecycle: 1, Wave: n, Ordinal: 1, Outcome: record.OK}, {Lifecycle: 1, Wave: n, Ordinal: 2, Outcome: record.Timeout}}
	return record.Wave{Lifecycle: 1, Number: n, Status: "ran", Attempts: 2}, requests
}

func store(t *testing.T) (*record.Store, string) {
	dir := filepath.Join(t.TempDir(), "bundle")
	s, err := record.Create(dir, strings.Repeat("a", 64), strings.Repeat("b", 64))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	_, err = s.WriteEnvironment(record.Environment{Run: "r"})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return s, dir
}

func TestAStoreReadsBackWhatWasAppended(t *testing.T) {
	g := NewWithT(t)
	s, dir := store(t)
	for n := 1; n <= 3; n++ {
		w, requests := wave(n)
		w, requests, err := s.AppendWave(w, requests)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.PlanSHA256).To(Equal(strings.Repeat("a", 64)))
		g.Expect(requests[0].ScheduleSHA256).To(Equal(strings.Repeat("b", 64)))
	}
	requestsHead, wavesHead, _ := s.Heads()
	l, err := s.AppendLifecycle(record.Lifecycle{Number: 1})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(l.RequestsHead).To(Equal(requestsHead))
	g.Expect(l.WavesHead).To(Equal(wavesHead))
	g.Expect(s.Close()).To(Succeed())
	run, err := record.Read(dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(run.Requests).To(HaveLen(6))
	g.Expect(run.Waves).To(HaveLen(3))
	g.Expect(run.Lifecycles).To(HaveLen(1))
	g.Expect(run.Requests[0].PreviousSHA256).To(Equal(record.Genesis))
}

func TestAStoreNeverWritesOverEvidence(t *testing.T) {
	g := NewWithT(t)
	_, dir := store(t)
	_, err := record.Create(dir, "", "")
	g.Expect(err).To(MatchError(ContainSubstring("-out")))
}

func TestAWaveIsOnDiskBeforeTheNext(t *testing.T) {
	g := NewWithT(t)
	s, dir := store(t)
	_, _, err := s.AppendWave(wave(1))
	g.Expect(err).NotTo(HaveOccurred())
	data, err := os.ReadFile(filepath.Join(dir, record.RequestsFile))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(strings.Count(string(data), "\n")).To(Equal(2))
}

func TestEveryChangeBreaksTheChain(t *testing.T) {
	for name, change := range map[string]func([]string) []string{
		"changed": func(l []string) []string {
			l[1] = strings.Replace(l[1], `"outcome":"timeout"`, `"outcome":"ok"`, 1)
			return l
		},
		"removed":    func(l []string) []string { return append(l[:1], l[2:]...) },
		"doubled":    func(l []string) []string { return append(l[:2], l[1:]...) },
		"swapped":    func(l []string) []string { l[1], l[2] = l[2], l[1]; return l },
		"cut off":    func(l []string) []string { l[3] = l[3][:20]; return l },
		"unknown":    func(l []string) []string { l[0] = strings.Replace(l[0], `{`, `{"extra":1,`, 1); return l },
		"two a line": func(l []string) []string { l[3] += l[3]; return l },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s, dir := store(t)
			_, _, err := s.AppendWave(wave(1))
			g.Expect(err).NotTo(HaveOccurred())
			_, _, err = s.AppendWave(wave(2))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(s.Close()).To(Succeed())
			path := filepath.Join(dir, record.RequestsFile)
			data, err := os.ReadFile(path)
			g.Expect(err).NotTo(HaveOccurred())
			lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
			g.Expect(lines).To(HaveLen(4))
			g.Expect(os.WriteFile(path, []byte(strings.Join(change(lines), "\n")+"\n"), 0o644)).To(Succeed())
			_, err = record.Read(dir)
			g.Expect(err).To(MatchError(ContainSubstring(record.RequestsFile + ":")))
		})
	}
}

func TestAFileIsNeverHalfWritten(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "summary.json")
	g.Expect(record.WriteFile(path, []byte("one"))).To(Succeed())
	g.Expect(record.WriteFile(path, []byte("two"))).To(Succeed())
	g.Expect(os.ReadFile(path)).To(Equal([]byte("two")))
	g.Expect(record.WriteFile(filepath.Join(dir, "no", "such"), nil)).To(MatchError(os.ErrNotExist))
	entries, err := os.ReadDir(dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(entries).To(HaveLen(1))
}

func TestEventsAreTriples(t *testing.T) {
	g := NewWithT(t)
	two := 2
	data, err := json.Marshal([]record.Event{{Earliest: 1, Arrival: 5, Tokens: &two}, {Earliest: 6, Arrival: 6}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(data)).To(Equal("[[1,5,2],[6,6,null]]"))
	var back []record.Event
	g.Expect(json.Unmarshal(data, &back)).To(Succeed())
	g.Expect(*back[0].Tokens).To(Equal(2))
	for _, bad := range []string{`[[1,2]]`, `[[1,null,3]]`, `[[null,2,3]]`, `[{}]`, `[[1,2,3,4]]`} {
		g.Expect(json.Unmarshal([]byte(bad), &back)).NotTo(Succeed(), bad)
	}
}

// FuzzReadLines holds that no bytes are taken without a word that are no record,
// and that each record is what encoding/json makes of it.
func FuzzReadLines(f *testing.F) {
	f.Add([]byte(`{"schema":"assay.request/v3","previous_sha256":"` + record.Genesis + `"}` + "\n"))
	f.Add([]byte("\n\n{}"))
	f.Add([]byte(`{"events":[[1,2,null]]}`))
	f.Add([]byte(chained(3)))
	f.Add([]byte(`{"events":[[1,-2,0],[ 3 , 4 ,null]],"client_lag_ns":[00,1e3],"output_token_ids":[],"nulls":{"a":"\u001b\""}}` + "\n"))
	f.Add([]byte(`{"output_token_ids":[1],"client_lag_ns":[],"events":[],"EVENTS":[[1,2,3]],"events":[]}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		out, head, err := record.ReadLines(strings.NewReader(string(data)), "f", previousOf)
		if err == nil && len(data) > 0 && (len(out) == 0 || head == record.Genesis) {
			t.Fatal("bytes that are no record were taken without a word")
		}
		if want := strictly(string(data)); len(out)+len(want) > 0 && !reflect.DeepEqual(out, want) {
			t.Fatalf("%q\nis read as  %+v\nand is %+v", data, out, want)
		}
	})
}

func TestNothingGoesOnWhereARunGoesOn(t *testing.T) {
	g := NewWithT(t)
	dir := filepath.Join(t.TempDir(), "bundle")
	first, err := record.Create(dir, "plan", "schedule")
	g.Expect(err).NotTo(HaveOccurred())
	_, err = first.WriteEnvironment(record.Environment{})
	g.Expect(err).NotTo(HaveOccurred())
	_, _, err = record.Reopen(dir, "plan", "schedule")
	g.Expect(err).To(MatchError(ContainSubstring("a run is going on in " + dir)))
	g.Expect(first.Close()).To(Succeed())
	again, _, err := record.Reopen(dir, "plan", "schedule")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again.Close()).To(Succeed())
}
