package signature_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hiddeco/sshsig"
	. "github.com/onsi/gomega"
	"golang.org/x/crypto/ssh"

	"assay/reports/signature"
)

var message = []byte("0a0b  plan.yaml\n0c0d  requests.jsonl\n")

// pair is a private key as its file has it, and the public one as a line.
type pair struct{ private, public []byte }

func made(tb testing.TB, key crypto.Signer, passphrase string) pair {
	tb.Helper()
	g := NewWithT(tb)
	var block *pem.Block
	var err error
	if passphrase == "" {
		block, err = ssh.MarshalPrivateKey(key, "a comment")
	} else {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(key, "a comment", []byte(passphrase))
	}
	g.Expect(err).NotTo(HaveOccurred())
	public, err := ssh.NewPublicKey(key.Public())
	g.Expect(err).NotTo(HaveOccurred())
	return pair{pem.EncodeToMemory(block), bytes.TrimSpace(ssh.MarshalAuthorizedKey(public))}
}

func ed(tb testing.TB) pair {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	NewWithT(tb).Expect(err).NotTo(HaveOccurred())
	return made(tb, key, "")
}

// kinds are keys of each kind that OpenSSH makes without hardware.
func kinds(t *testing.T) map[string]pair {
	t.Helper()
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	r, err := rsa.GenerateKey(rand.Reader, 2048)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return map[string]pair{"ed25519": ed(t), "ecdsa": made(t, ec, ""), "rsa": made(t, r, "")}
}

func signers(tb testing.TB, lines ...string) signature.Signers {
	tb.Helper()
	s, err := signature.ParseSigners("allowed", []byte(strings.Join(lines, "\n")+"\n"))
	NewWithT(tb).Expect(err).NotTo(HaveOccurred())
	return s
}

func signed(t *testing.T, key pair) signature.Signature {
	t.Helper()
	armored, err := signature.Sign(key.private, message)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	s, err := signature.Parse(armored)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return s
}

func TestEitherProgramsSignatureIsTheOthers(t *testing.T) {
	keygen, err := exec.LookPath("ssh-keygen")
	if err != nil {
		t.Skip("ssh-keygen is not installed: Debian has it in openssh-client")
	}
	for kind, key := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			g := NewWithT(t)
			dir := t.TempDir()
			file := func(name string, data []byte) string {
				path := filepath.Join(dir, name)
				g.Expect(os.WriteFile(path, data, 0o600)).To(Succeed())
				return path
			}
			sums, private := file("SHA256SUMS", message), file("key", key.private)
			line := "alice@example.com,bob@example.com namespaces=\"assay,other\",valid-after=\"20200101Z\" " + string(key.public)
			allowed := file("allowed", []byte(line+"\n"))

			// Ours, by theirs.
			ours, err := signature.Sign(key.private, message)
			g.Expect(err).NotTo(HaveOccurred())
			verify := func(namespace, data string, sig []byte) (string, error) {
				c := exec.Command(keygen, "-Y", "verify", "-f", allowed, "-I", "bob@example.com", "-n", namespace, "-s", file("ours.sig", sig))
				c.Stdin = strings.NewReader(data)
				out, err := c.CombinedOutput()
				return string(out), err
			}
			out, err := verify("assay", string(message), ours)
			g.Expect(err).NotTo(HaveOccurred(), out)
			g.Expect(out).To(ContainSubstring(`Good "assay" signature for bob@example.com`))
			_, err = verify("file", string(message), ours)
			g.Expect(err).To(HaveOccurred())
			_, err = verify("assay", string(message)+"more", ours)
			g.Expect(err).To(HaveOccurred())

			// Theirs, by ours.
			for namespace, faults := range map[string]int{"assay": 0, "file": 1} {
				c := exec.Command(keygen, "-Y", "sign", "-n", namespace, "-f", private, sums)
				said, err := c.CombinedOutput()
				g.Expect(err).NotTo(HaveOccurred(), string(said))
				armored, err := os.ReadFile(sums + ".sig")
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(os.Remove(sums + ".sig")).To(Succeed())
				theirs, err := signature.Parse(armored)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(theirs.Of(message)).To(HaveLen(faults))
				by, against := theirs.By(signature.Who{Signers: signers(t, line), Principal: "bob@example.com", At: time.Now()})
				g.Expect(against).To(BeEmpty())
				g.Expect(by).To(Equal("alice@example.com,bob@example.com"))
				listed, err := exec.Command(keygen, "-l", "-f", file("key.pub", key.public)).Output()
				g.Expect(err).NotTo(HaveOccurred())
				_, sum, _ := strings.Cut(theirs.Key(), " ")
				g.Expect(string(listed)).To(ContainSubstring(sum))
			}
		})
	}
}

func TestWhatIsWrongWithASignatureIsSaidAtOnce(t *testing.T) {
	g := NewWithT(t)
	alice, bob := ed(t), ed(t)
	key, err := ssh.ParsePrivateKey(alice.private)
	g.Expect(err).NotTo(HaveOccurred())
	other, err := sshsig.Sign(bytes.NewReader(message), key, sshsig.HashSHA256, "file")
	g.Expect(err).NotTo(HaveOccurred())
	elsewhere, err := signature.Parse(sshsig.Armor(other))
	g.Expect(err).NotTo(HaveOccurred())
	ours := signed(t, alice)
	name := ours.Key()
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	for what, test := range map[string]struct {
		sig       signature.Signature
		message   string
		signers   string
		principal string
		by        string
		faults    []string
	}{
		"nothing":                 {ours, string(message), "alice@example.com " + string(alice.public), "", "alice@example.com", nil},
		"by a pattern":            {ours, string(message), "*@example.com,!bob@example.com " + string(alice.public), "alice@example.com", "*@example.com,!bob@example.com", nil},
		"another key of the same": {ours, string(message), "alice " + string(bob.public) + "\nalice valid-before=\"20200101Z\" " + string(alice.public) + "\nalice " + string(alice.public), "alice", "alice", nil},
		"an unknown key":          {ours, string(message), "bob@example.com " + string(bob.public), "", "", []string{"its key, " + name + ", is none of allowed"}},
		"an unknown key and name": {ours, string(message), "bob@example.com " + string(bob.public), "alice@example.com", "",
			[]string{"its key, " + name + ", is none of allowed", "allowed has no alice@example.com"}},
		"another's key": {ours, string(message), "alice@example.com " + string(alice.public) + "\nbob@example.com " + string(bob.public), "bob@example.com", "",
			[]string{"allowed has its key for alice@example.com, and not for bob@example.com"}},
		"all at once": {elsewhere, string(message) + "more", `alice@example.com namespaces="git,file",valid-after="20270101Z",valid-before="202601010830Z" ` + string(alice.public), "carol", "",
			[]string{
				`it is of the namespace "file", and a bundle's is "assay": it was made for something else`, "it is of other bytes, or was altered itself",
				"allowed has its key for alice@example.com, and not for carol",
				"allowed has its key for alice@example.com, in the namespaces git,file, and not in assay",
				"allowed has its key for alice@example.com, not before 2027-01-01 00:00:00 UTC",
				"allowed has its key for alice@example.com, which expired at 2026-01-01 08:30:00 UTC",
			}},
		"an authority's": {ours, string(message), "alice cert-authority " + string(alice.public), "", "", []string{"its key, " + name + ", is none of allowed"}},
		"altered sums":   {ours, "0a0b  plan.yaml\n", "alice " + string(alice.public), "", "alice", []string{"it is of other bytes, or was altered itself"}},
	} {
		t.Run(what, func(t *testing.T) {
			g := NewWithT(t)
			by, against := test.sig.By(signature.Who{Signers: signers(t, test.signers), Principal: test.principal, At: now})
			g.Expect(by).To(Equal(test.by))
			g.Expect(append(test.sig.Of([]byte(test.message)), against...)).To(Equal(test.faults))
		})
	}
}

func TestAKeyThatCantSignIsSaidWhy(t *testing.T) {
	g := NewWithT(t)
	_, key, err := ed25519.GenerateKey(rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	locked := made(t, key, "a passphrase")
	_, err = signature.Sign(locked.private, message)
	g.Expect(err).To(MatchError(signature.ErrEncrypted))
	_, err = signature.Sign(locked.public, message)
	g.Expect(err).To(MatchError(ContainSubstring("it is a public key: name the private one")))
	for _, none := range []string{"", "secret words", "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n"} {
		_, err = signature.Sign([]byte(none), message)
		g.Expect(err).To(MatchError(ContainSubstring("it is no private key that OpenSSH writes")))
		g.Expect(err.Error()).NotTo(ContainSubstring("secret"))
	}
}

func TestAFileOfSignersIsReadWithEveryFault(t *testing.T) {
	g := NewWithT(t)
	key := string(ed(t).public)
	_, err := signature.ParseSigners("allowed", []byte(fmt.Sprintf(`# whom we trust
alice@example.com %[1]s a comment

"carol@example.com,dave" namespaces="assay" %[1]s
alone
bob@example.com ssh-ed25519 AAAA
bob@example.com valid-before="tomorrow",no-touch %[1]s
"" %[1]s
bob@example.com valid-after="20261301Z" %[1]s
`, key)))
	g.Expect(strings.Split(err.Error(), "\n")).To(Equal([]string{
		"allowed:5: it has no key behind the name",
		"allowed:6: it has no public key behind the name and the options",
		`allowed:7: "tomorrow" is no time: write YYYYMMDD, YYYYMMDDHHMM or YYYYMMDDHHMMSS, with a Z behind it for UTC`,
		`allowed:7: "no-touch" is no option: there are cert-authority, namespaces, valid-after and valid-before`,
		"allowed:8: it has no name before the key",
		`allowed:9: "20261301Z" is no time: write YYYYMMDD, YYYYMMDDHHMM or YYYYMMDDHHMMSS, with a Z behind it for UTC`,
	}))
	_, err = signature.ParseSigners("allowed", []byte("# nobody\n"))
	g.Expect(err).To(MatchError(ContainSubstring("allowed: it has no signer")))
}

func TestWhatIsNoSignatureIsSaidToBeNone(t *testing.T) {
	g := NewWithT(t)
	ours, err := signature.Sign(ed(t).private, message)
	g.Expect(err).NotTo(HaveOccurred())
	block, _ := pem.Decode(ours)
	for _, none := range [][]byte{
		nil, []byte("words"), pem.EncodeToMemory(&pem.Block{Type: "PGP SIGNATURE", Bytes: block.Bytes}),
		pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes[:50]}), pem.EncodeToMemory(&pem.Block{Type: block.Type}),
	} {
		_, err := signature.Parse(none)
		g.Expect(err).To(MatchError(ContainSubstring("it is no SSH signature")))
	}
}

// FuzzParseSigners holds that no file of signers, however odd, lets a key sign
// that is not in it.
func FuzzParseSigners(f *testing.F) {
	alice := ed(f)
	armored, err := signature.Sign(ed(f).private, message)
	NewWithT(f).Expect(err).NotTo(HaveOccurred())
	stranger, err := signature.Parse(armored)
	NewWithT(f).Expect(err).NotTo(HaveOccurred())
	f.Add([]byte("alice@example.com namespaces=\"a,!b*\",valid-after=\"20200101\" " + string(alice.public) + " comment\n# x\n"))
	f.Add([]byte(`"a b" cert-authority ` + string(alice.public)))
	f.Add([]byte("*?***?a!,b\t\tssh-rsa AAAA"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, _ := signature.ParseSigners("f", data)
		for _, principal := range []string{"", "alice@example.com", string(data)} {
			if by, faults := stranger.By(signature.Who{Signers: s, Principal: principal}); by != "" || len(faults) == 0 {
				t.Fatalf("%q lets a stranger sign", data)
			}
		}
	})
}

// FuzzParse holds that no bytes but a signature are taken for one of the message.
func FuzzParse(f *testing.F) {
	ours, err := signature.Sign(ed(f).private, message)
	NewWithT(f).Expect(err).NotTo(HaveOccurred())
	block, _ := pem.Decode(ours)
	f.Add(block.Bytes[:20])
	f.Add([]byte("SSHSIG\x00\x00\x00\x01\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := signature.Parse(pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: data}))
		if err == nil && len(s.Of(message)) == 0 {
			t.Fatalf("%q signs a message", data)
		}
	})
}
