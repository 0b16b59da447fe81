package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"assay/reports"
	"assay/reports/signature"
)

func signCommand() *cobra.Command {
	key := ""
	c := &cobra.Command{
		Use:   "sign --key FILE DIR",
		Short: "sign a bundle's SHA256SUMS with an SSH key",
		Long: "Writes SHA256SUMS.sig, what ssh-keygen -Y sign -n assay writes, of a bundle that holds. Who is to trust it is told\n" +
			"the public key: see assay verify --signer.\n\n" +
			"Exit codes: 0 signed, 1 the bundle does not hold (each reason on a line), 2 the bundle or the key could not be read.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := args[0]
			if info, err := os.Stat(dir); err == nil && !info.IsDir() {
				return fmt.Errorf("%s is a file: sign the bundle's directory, and pack it then", dir)
			}
			data, err := os.ReadFile(key)
			if err != nil {
				return fmt.Errorf("the key can't be read: %w", err)
			}
			err = reports.Sign(dir, data)
			sums := filepath.Join(dir, reports.SumsFile)
			switch {
			case errors.Is(err, reports.ErrNotHeld):
				fmt.Fprintln(cmd.OutOrStdout(), err)
				return doesNotHold
			case errors.Is(err, signature.ErrEncrypted):
				return fmt.Errorf("%s: %w: ssh-keygen -Y sign -n %s -f %s %s asks for it and writes the same", key, err, signature.Namespace, key, sums)
			case err != nil:
				return fmt.Errorf("%s can't be signed with %s: %w", dir, key, err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s is signed: %s.sig\n", dir, sums)
			return nil
		},
	}
	c.Flags().StringVar(&key, "key", "", "the private key's `file`, such as ~/.ssh/id_ed25519")
	_ = c.MarkFlagRequired("key")
	return c
}

// signedBy asks for a signature by somebody in an allowed signers file.
func signedBy(signers, principal string) (reports.Option, error) {
	data, err := os.ReadFile(signers)
	if err != nil {
		return nil, fmt.Errorf("the signers can't be read: %w", err)
	}
	parsed, err := signature.ParseSigners(signers, data)
	if err != nil {
		return nil, err
	}
	return reports.SignedBy(signature.Who{Signers: parsed, Principal: principal, At: time.Now()}), nil
}
