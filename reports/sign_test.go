package reports_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/crypto/ssh"

	"assay/harness/record"
	"assay/harness/record/recordtest"
	"assay/reports"
	"assay/reports/signature"
)

// key is a new private key, and whom its file of signers trusts with it.
func key(t *testing.T, principal string) ([]byte, signature.Who) {
	t.Helper()
	g := NewWithT(t)
	public, private, err := ed25519.GenerateKey(rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	block, err := ssh.MarshalPrivateKey(private, "")
	g.Expect(err).NotTo(HaveOccurred())
	line, err := ssh.NewPublicKey(public)
	g.Expect(err).NotTo(HaveOccurred())
	signers, err := signature.ParseSigners("allowed", []byte(principal+" "+string(ssh.MarshalAuthorizedKey(line))))
	g.Expect(err).NotTo(HaveOccurred())
	return pem.EncodeToMemory(block), signature.Who{Signers: signers, At: time.Now()}
}

func TestASignedBundleHoldsForWhoTrustsItsSigner(t *testing.T) {
	g := NewWithT(t)
	private, alice := key(t, "alice@example.com")
	_, bob := key(t, "bob@example.com")
	dir := bundle(t, recordtest.Plan(), recordtest.Options{})
	v, err := reports.Verify(dir, reports.SignedBy(alice))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(v.Reasons).To(Equal([]string{"SHA256SUMS.sig is missing: nobody has signed the bundle"}))

	g.Expect(reports.Sign(dir, private)).To(Succeed())
	v, err = reports.Verify(dir, reports.SignedBy(alice))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(v.Reasons).To(BeEmpty())
	g.Expect(v.Signature.By).To(Equal("alice@example.com"))
	v, err = reports.Verify(dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(v.Reasons).To(BeEmpty(), "its signature is no stranger")
	g.Expect(v.Signature.Key).To(HavePrefix("ssh-ed25519 SHA256:"))
	g.Expect(v.Signature.By).To(BeEmpty())
	v, err = reports.Verify(dir, reports.SignedBy(bob))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(v.Reasons).To(HaveExactElements(MatchRegexp(`^SHA256SUMS.sig: its key, ssh-ed25519 SHA256:\S+, is none of allowed$`)))

	var packed bytes.Buffer
	g.Expect(reports.Pack(dir, &packed)).To(Succeed())
	again, err := reports.Unpack(&packed, t.TempDir())
	g.Expect(err).NotTo(HaveOccurred())
	v, err = reports.Verify(again, reports.SignedBy(alice))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(v.Reasons).To(BeEmpty())

	// Somebody who makes all of it anew, sums too, can't make the signature.
	replace(t, dir, record.EnvironmentFile, `"fixture-20260101T000000Z"`, `"fixture-20260102T000000Z"`)
	read, err := reports.Read(dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(read.Write(dir)).To(Succeed())
	junit(t, dir, read)
	g.Expect(reports.Seal(dir)).To(Succeed())
	for _, options := range [][]reports.Option{nil, {reports.SignedBy(alice)}} {
		v, err = reports.Verify(dir, options...)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(v.Reasons).To(Equal([]string{"SHA256SUMS.sig: it is of other bytes, or was altered itself"}))
	}
	g.Expect(reports.Sign(dir, private)).To(Succeed(), "a new signature mends that")
	v, err = reports.Verify(dir, reports.SignedBy(alice))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(v.Reasons).To(BeEmpty())
}

func TestABundleThatDoesNotHoldIsNotSigned(t *testing.T) {
	g := NewWithT(t)
	private, _ := key(t, "alice@example.com")
	dir := bundle(t, recordtest.Plan(), recordtest.Options{})
	replace(t, dir, record.RequestsFile, `"outcome":"ok"`, `"outcome":"truncated"`)
	replace(t, dir, reports.ReportFile, "Valid", "Vaild")
	err := reports.Sign(dir, private)
	g.Expect(err).To(MatchError(reports.ErrNotHeld))
	g.Expect(strings.Split(err.Error(), "\n")).To(ContainElements("requests.jsonl: its SHA-256 is not the one in SHA256SUMS", "report.md: its SHA-256 is not the one in SHA256SUMS"))
	g.Expect(filepath.Join(dir, reports.SignatureFile)).NotTo(BeAnExistingFile())
	g.Expect(os.WriteFile(filepath.Join(dir, reports.SignatureFile), []byte("words"), 0o644)).To(Succeed())
	v, err := reports.Verify(dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(v.Reasons).To(ContainElement("SHA256SUMS.sig: it is no SSH signature"))
}
