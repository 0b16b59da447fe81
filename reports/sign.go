package reports

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"assay/harness/record"
	"assay/reports/signature"
)

// SignatureFile has an SSH signature of SHA256SUMS. It is not in the sums, which
// it is of.
const SignatureFile = SumsFile + ".sig"

// ErrNotHeld is that a bundle does not hold, and so is not signed.
var ErrNotHeld = errors.New("the bundle does not hold, so it is not signed")

// Sign signs a bundle's sums with a private SSH key, as its file has it, over the
// signature that there may be. A bundle that does not hold is not signed: whoever
// trusts the signature should not have to look further.
func Sign(dir string, key []byte) error {
	v, err := Verify(dir)
	if err != nil {
		return err
	}
	// What is wrong with an older signature is mended by a new one.
	var against []error
	for _, r := range v.Reasons {
		if !strings.HasPrefix(r, SignatureFile+": ") {
			against = append(against, errors.New(r))
		}
	}
	if len(against) > 0 {
		return fmt.Errorf("%w\n%w", ErrNotHeld, errors.Join(against...))
	}
	sums, err := os.ReadFile(filepath.Join(dir, SumsFile))
	if err != nil {
		return err
	}
	signed, err := signature.Sign(key, sums)
	if err != nil {
		return err
	}
	return record.WriteFile(filepath.Join(dir, SignatureFile), signed)
}

// Option is what verification is asked besides.
type Option func(*verification)

// SignedBy asks that somebody who is trusted has signed the bundle.
func SignedBy(who signature.Who) Option {
	return func(v *verification) { v.who = &who }
}

// signed holds the signature against the sums, and against who is asked for.
func (v *verification) signed() {
	found := func(text string) { v.found("%s: %s", SignatureFile, text) }
	armored, err := os.ReadFile(filepath.Join(v.dir, SignatureFile))
	if errors.Is(err, fs.ErrNotExist) {
		if v.who != nil {
			v.found("%s is missing: nobody has signed the bundle", SignatureFile)
		}
		return
	}
	var sig signature.Signature
	if err == nil {
		sig, err = signature.Parse(armored)
	}
	if err != nil {
		found(err.Error())
		return
	}
	v.signature.Key = sig.Key()
	sums, err := os.ReadFile(filepath.Join(v.dir, SumsFile))
	if err != nil {
		return // said of the sums
	}
	for _, f := range sig.Of(sums) {
		found(f)
	}
	if v.who == nil {
		return
	}
	by, faults := sig.By(*v.who)
	for _, f := range faults {
		found(f)
	}
	v.signature.By = by
}

// Signature is who has signed a bundle.
type Signature struct {
	Key string // its kind and its SHA-256; empty: nobody has
	By  string // the names that it is trusted under; empty: nobody was asked for
}
