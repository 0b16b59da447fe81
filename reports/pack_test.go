package reports_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	. "github.com/onsi/gomega"

	"assay/harness/record/recordtest"
	"assay/reports"
)

var recent = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestAPackedBundleIsTheBundle(t *testing.T) {
	g := NewWithT(t)
	dir := bundle(t, recordtest.Plan(), recordtest.Options{Fails: failing})
	var once, again bytes.Buffer
	g.Expect(reports.Pack(dir, &once)).To(Succeed())
	g.Expect(os.Chtimes(filepath.Join(dir, reports.PlanFile), recent, recent)).To(Succeed())
	g.Expect(reports.Pack(dir, &again)).To(Succeed())
	g.Expect(again.Bytes()).To(Equal(once.Bytes()), "neither times nor owners are in it")

	folder := t.TempDir()
	out, err := reports.Unpack(bytes.NewReader(once.Bytes()), folder)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(Equal(filepath.Join(folder, filepath.Base(dir))))
	v, err := reports.Verify(out)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(v.Reasons).To(BeEmpty())

	_, err = reports.Unpack(bytes.NewReader(once.Bytes()), folder)
	g.Expect(err).To(MatchError(ContainSubstring("name another folder")), "what is there is not written over")
	g.Expect(reports.Pack(t.TempDir(), &again)).To(MatchError(ContainSubstring("is no bundle")))
}

// A published bundle whose report is derived again costs its repository the
// report, and not the records once more.
func TestAChangedFileChangesNoOtherFilesBytesInAPackedBundle(t *testing.T) {
	g := NewWithT(t)
	dir := bundle(t, recordtest.Plan(), recordtest.Options{Fails: failing})
	var before, after bytes.Buffer
	g.Expect(reports.Pack(dir, &before)).To(Succeed())
	path := filepath.Join(dir, reports.ReportFile)
	report, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	report = append([]byte("Another first line, which moves all that follows.\n"), report...)
	g.Expect(os.WriteFile(path, report, 0o644)).To(Succeed())
	g.Expect(reports.Pack(dir, &after)).To(Succeed())

	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	g.Expect(err).NotTo(HaveOccurred())
	const header = 512
	a, b := before.Bytes(), after.Bytes()
	g.Expect(len(b)-shared(a, b)).To(BeNumerically("<", len(encoder.EncodeAll(report, nil))+header), "what is new is the report's frame")
	g.Expect(len(b)).To(BeNumerically(">", 3*(len(b)-shared(a, b))), "which is the smaller part of this bundle")
}

// shared is how many bytes two texts begin and end with alike.
func shared(a, b []byte) int {
	begin, end := 0, 0
	for begin < min(len(a), len(b)) && a[begin] == b[begin] {
		begin++
	}
	for end < min(len(a), len(b))-begin && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	return begin + end
}

// Those that were published before each file had a frame are one frame.
func TestAPackedBundleOfOneFrameIsRead(t *testing.T) {
	g := NewWithT(t)
	dir := bundle(t, recordtest.Plan(), recordtest.Options{})
	var frames, one bytes.Buffer
	g.Expect(reports.Pack(dir, &frames)).To(Succeed())
	decoder, err := zstd.NewReader(&frames)
	g.Expect(err).NotTo(HaveOccurred())
	defer decoder.Close()
	encoder, err := zstd.NewWriter(&one)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = io.Copy(encoder, decoder)
	g.Expect(errors.Join(err, encoder.Close())).To(Succeed())

	out, err := reports.Unpack(&one, t.TempDir())
	g.Expect(err).NotTo(HaveOccurred())
	v, err := reports.Verify(out)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(v.Reasons).To(BeEmpty())
}

func TestAPackedBundleWritesNowhereElse(t *testing.T) {
	for name, c := range map[string]struct {
		headers []tar.Header
		says    string
	}{
		"above":      {[]tar.Header{{Name: "b/../../x", Typeflag: tar.TypeReg}}, "not below one directory"},
		"absolute":   {[]tar.Header{{Name: "/x/y", Typeflag: tar.TypeReg}}, "not below one directory"},
		"at the top": {[]tar.Header{{Name: "x", Typeflag: tar.TypeReg}}, "not below one directory"},
		"two":        {[]tar.Header{{Name: "a/x", Typeflag: tar.TypeReg}, {Name: "b/x", Typeflag: tar.TypeReg}}, "not below one directory"},
		"a link":     {[]tar.Header{{Name: "a/x", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}}, "no plain file"},
		"nothing":    {nil, "it is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var out bytes.Buffer
			compressed, err := zstd.NewWriter(&out)
			g.Expect(err).NotTo(HaveOccurred())
			archive := tar.NewWriter(compressed)
			for _, h := range c.headers {
				g.Expect(archive.WriteHeader(&h)).To(Succeed())
			}
			g.Expect(archive.Close()).To(Succeed())
			g.Expect(compressed.Close()).To(Succeed())
			_, err = reports.Unpack(&out, t.TempDir())
			g.Expect(err).To(MatchError(ContainSubstring(c.says)))
		})
	}
	_, err := reports.Unpack(bytes.NewReader([]byte("no archive")), t.TempDir())
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("no packed bundle")))
}
