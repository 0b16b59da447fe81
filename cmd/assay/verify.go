package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"assay/harness/record"
	"assay/reports"
)

func verifyCommand() *cobra.Command {
	signers, principal := "", ""
	c := &cobra.Command{
		Use:   "verify DIR|FILE.tar.zst",
		Short: "check a bundle without the hardware: sums, chains, schedule, invariants, every number",
		Long: "Checks a bundle's sums, the chains of its records, that every scheduled attempt is accounted for, what no honest\n" +
			"run can break, and that summary, claims and report are those that its plan and records give. It shows that a\n" +
			"bundle is whole and consistent, not who made it, unless it is signed: with --signer it has to be, by a key of an\n" +
			"allowed signers file (ssh-keygen(1)), and with --principal by one that the file has for that name. See\n" +
			"docs/verify.md.\n\n" +
			"Exit codes: 0 it holds, 1 it does not (each reason on a line), 2 it could not be read.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var options []reports.Option
			if signers != "" {
				option, err := signedBy(signers, principal)
				if err != nil {
					return err
				}
				options = append(options, option)
			} else if principal != "" {
				return errors.New("--principal is a name in a file of signers: name that too, with --signer")
			}
			dir, done, err := opened(args[0])
			if err != nil {
				return err
			}
			defer done()
			v, err := reports.Verify(dir, options...)
			if err != nil {
				return err
			}
			for _, reason := range v.Reasons {
				fmt.Fprintln(cmd.OutOrStdout(), record.Line(reason))
			}
			if !v.Holds() {
				fmt.Fprintf(cmd.OutOrStdout(), "%s does not hold, for %d reason(s)\n", args[0], len(v.Reasons))
				return doesNotHold
			}
			validity := "the protocol was kept"
			if !v.Validity.Valid {
				validity = fmt.Sprintf("the run says of itself that it is invalid, for %d reason(s), the first: %s", len(v.Validity.Reasons), record.Line(v.Validity.Reasons[0]))
			}
			if n := len(v.FailedSpecs); n > 0 {
				validity += fmt.Sprintf("; %d spec(s) of its JUnit report did not pass, the first: %s", n, record.Line(v.FailedSpecs[0]))
			}
			switch s := v.Signature; {
			case s.By != "":
				validity += fmt.Sprintf("; signed by %s (%s)", s.By, s.Key)
			case s.Key != "":
				validity += fmt.Sprintf("; signed with %s: whose that is, --signer asks", s.Key)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s holds: %s; %s\n", args[0], v.Status, validity)
			return nil
		},
	}
	c.Flags().StringVar(&signers, "signer", "", "ask for a signature by one of the allowed signers in this `file`")
	c.Flags().StringVar(&principal, "principal", "", "and by this one, such as you@example.com")
	return c
}
