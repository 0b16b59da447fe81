package reports_test

import (
	"archive/tar"
	"bytes"
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
