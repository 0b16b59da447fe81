package signature

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

// Namespace keeps a signature of a bundle from passing for one of anything else.
const Namespace = "assay"

// Sign signs a message with a private key, as it stands in its file, and returns
// the signature as ssh-keygen writes it. What it says of a key that it can't use
// names no more of it than its kind.
func Sign(key, message []byte) ([]byte, error) {
	signer, err := ssh.ParsePrivateKey(key)
	var locked *ssh.PassphraseMissingError
	switch {
	case errors.As(err, &locked):
		return nil, ErrEncrypted
	case err != nil && isPublic(key):
		return nil, errors.New("it is a public key: name the private one, which has no .pub at its end")
	case err != nil:
		return nil, errors.New("it is no private key that OpenSSH writes: make one with ssh-keygen -t ed25519")
	}
	signed, err := sshsig.Sign(bytes.NewReader(message), signer, sshsig.HashSHA512, Namespace)
	if err != nil {
		return nil, fmt.Errorf("a key of kind %s can't sign: %w", signer.PublicKey().Type(), err)
	}
	return sshsig.Armor(signed), nil
}

// ErrEncrypted is that a private key has a passphrase.
var ErrEncrypted = errors.New("it is encrypted, and no passphrase is asked for here")

func isPublic(key []byte) bool {
	_, _, _, _, err := ssh.ParseAuthorizedKey(key)
	return err == nil
}

// Signature is one, of something.
type Signature struct{ sig *sshsig.Signature }

// Parse reads a signature as ssh-keygen writes it.
func Parse(armored []byte) (Signature, error) {
	block, _ := pem.Decode(armored)
	if block == nil || block.Type != sshsig.PEMType {
		return Signature{}, errors.New("it is no SSH signature")
	}
	sig, err := sshsig.ParseSignature(block.Bytes)
	if err != nil {
		return Signature{}, fmt.Errorf("it is no SSH signature that can be read: %w", err)
	}
	return Signature{sig}, nil
}

// Key names the key that signed: its kind and the SHA-256 of it, as ssh-keygen -l
// does.
func (s Signature) Key() string {
	return s.sig.PublicKey.Type() + " " + ssh.FingerprintSHA256(s.sig.PublicKey)
}

// Of says what is wrong with it as a signature of a message, whoever made it: each
// a fault of its own, none if nothing is.
func (s Signature) Of(message []byte) []string {
	var faults []string
	if s.sig.Namespace != Namespace {
		faults = append(faults, fmt.Sprintf("it is of the namespace %q, and a bundle's is %q: it was made for something else", s.sig.Namespace, Namespace))
	}
	// In its own namespace: that it is another one is said.
	if sshsig.Verify(bytes.NewReader(message), s.sig, s.sig.PublicKey, s.sig.HashAlgorithm, s.sig.Namespace) != nil {
		faults = append(faults, "it is of other bytes, or was altered itself")
	}
	return faults
}

// Who is who is asked for.
type Who struct {
	Signers   Signers
	Principal string    // empty: any of them
	At        time.Time // when a key has to be valid
}

// By is by whom it is, by the patterns of names that a file of signers has for
// the key; or each fault for which it is by none of those that are asked for.
func (s Signature) By(who Who) (principals string, faults []string) {
	file := who.Signers.file
	for _, e := range who.Signers.entries {
		if e.authority || !bytes.Equal(e.key.Marshal(), s.sig.PublicKey.Marshal()) {
			continue
		}
		against := e.against(who)
		if len(against) == 0 {
			return e.principals, nil
		}
		for _, a := range against {
			faults = append(faults, fmt.Sprintf("%s has its key for %s, %s", file, e.principals, a))
		}
	}
	if len(faults) > 0 {
		return "", faults
	}
	if strings.Contains(s.sig.PublicKey.Type(), "-cert-") {
		return "", []string{"it is by a certificate, which is not looked into: sign with the key itself"}
	}
	faults = append(faults, fmt.Sprintf("its key, %s, is none of %s", s.Key(), file))
	if who.Principal != "" && !who.Signers.know(who.Principal) {
		faults = append(faults, fmt.Sprintf("%s has no %s", file, who.Principal))
	}
	return "", faults
}

func (s Signers) know(principal string) bool {
	for _, e := range s.entries {
		if matches(e.principals, principal) {
			return true
		}
	}
	return false
}

// against says why an entry that has the key does not let it sign.
func (e entry) against(who Who) []string {
	var out []string
	if who.Principal != "" && !matches(e.principals, who.Principal) {
		out = append(out, "and not for "+who.Principal)
	}
	if e.namespaces != "" && !matches(e.namespaces, Namespace) {
		out = append(out, fmt.Sprintf("in the namespaces %s, and not in %s", e.namespaces, Namespace))
	}
	const layout = "2006-01-02 15:04:05 MST"
	if !e.after.IsZero() && who.At.Before(e.after) {
		out = append(out, "not before "+e.after.Format(layout))
	}
	if !e.before.IsZero() && who.At.After(e.before) {
		out = append(out, "which expired at "+e.before.Format(layout))
	}
	return out
}
