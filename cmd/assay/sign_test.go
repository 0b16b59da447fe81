package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/crypto/ssh"

	"assay/harness/record/recordtest"
	"assay/reports"
)

// keys writes a private key, the same with a passphrase, and a file of signers.
func keys(t *testing.T) (private, locked, signers string) {
	t.Helper()
	g := NewWithT(t)
	dir := t.TempDir()
	file := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		g.Expect(os.WriteFile(path, data, 0o600)).To(Succeed())
		return path
	}
	public, key, err := ed25519.GenerateKey(rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	plain, err := ssh.MarshalPrivateKey(key, "")
	g.Expect(err).NotTo(HaveOccurred())
	closed, err := ssh.MarshalPrivateKeyWithPassphrase(key, "", []byte("a passphrase"))
	g.Expect(err).NotTo(HaveOccurred())
	line, err := ssh.NewPublicKey(public)
	g.Expect(err).NotTo(HaveOccurred())
	return file("key", pem.EncodeToMemory(plain)), file("locked", pem.EncodeToMemory(closed)),
		file("allowed", append([]byte("alice@example.com "), ssh.MarshalAuthorizedKey(line)...))
}

func TestABundleIsSignedAndItsSignerAskedFor(t *testing.T) {
	g := NewWithT(t)
	private, locked, signers := keys(t)
	dir := bundle(t, recordtest.Options{})
	code, out, errs := call(t, "verify", "--signer", signers, dir)
	g.Expect(code).To(Equal(1), errs)
	g.Expect(out).To(HavePrefix("SHA256SUMS.sig is missing: nobody has signed the bundle\n"))
	code, out, errs = call(t, "bundle", "sign", "--key", private, dir)
	g.Expect(code).To(Equal(0), errs)
	g.Expect(out).To(HaveSuffix("bundle is signed: " + filepath.Join(dir, "SHA256SUMS.sig") + "\n"))
	code, out, errs = call(t, "verify", "--signer", signers, "--principal", "alice@example.com", dir)
	g.Expect(code).To(Equal(0), out+errs)
	g.Expect(out).To(MatchRegexp(`; signed by alice@example.com \(ssh-ed25519 SHA256:\S+\)\n$`))
	code, out, _ = call(t, "verify", dir)
	g.Expect(code).To(Equal(0))
	g.Expect(out).To(MatchRegexp(`; signed with ssh-ed25519 SHA256:\S+: whose that is, --signer asks\n$`))
	code, out, _ = call(t, "verify", "--signer", signers, "--principal", "bob@example.com", dir)
	g.Expect(code).To(Equal(1))
	g.Expect(out).To(ContainSubstring("has its key for alice@example.com, and not for bob@example.com\n"))

	for what, test := range map[string]struct {
		args []string
		code int
		says string
	}{
		"a passphrase":  {[]string{"bundle", "sign", "--key", locked, dir}, 2, "it is encrypted, and no passphrase is asked for here: ssh-keygen -Y sign -n assay -f " + locked},
		"no key":        {[]string{"bundle", "sign", "--key", filepath.Join(dir, "plan.yaml"), dir}, 2, "plan.yaml: it is no private key"},
		"a public key":  {[]string{"bundle", "sign", "--key", signers, dir}, 2, "can't be signed with " + signers + ": it is a public key"},
		"no such key":   {[]string{"bundle", "sign", "--key", dir + "none", dir}, 2, "the key can't be read"},
		"no bundle":     {[]string{"bundle", "sign", "--key", private, dir + "none"}, 2, "there is no bundle"},
		"a file":        {[]string{"bundle", "sign", "--key", private, filepath.Join(dir, "plan.yaml")}, 2, "sign the bundle's directory, and pack it then"},
		"no signers":    {[]string{"verify", "--signer", private, dir}, 2, "it has no"},
		"no such file":  {[]string{"verify", "--signer", dir + "none", dir}, 2, "the signers can't be read"},
		"only the name": {[]string{"verify", "--principal", "alice@example.com", dir}, 2, "name that too, with --signer"},
	} {
		code, out, errs := call(t, test.args...)
		g.Expect(code).To(Equal(test.code), what+": "+out+errs)
		g.Expect(errs).To(ContainSubstring(test.says), what)
	}
	g.Expect(os.Remove(filepath.Join(dir, reports.ReportFile))).To(Succeed())
	code, out, _ = call(t, "bundle", "sign", "--key", private, dir)
	g.Expect(code).To(Equal(1))
	g.Expect(out).To(ContainSubstring("report.md: it is in SHA256SUMS, and the file is missing\n"))
}
