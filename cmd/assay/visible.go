package main

import (
	"io"

	"github.com/spf13/cobra"

	"assay/harness/record"
)

// visible writes what others said, such as a server in its errors, so that it
// can't speak to the terminal.
type visible struct{ to io.Writer }

// Write writes one text whole.
func (v visible) Write(text []byte) (int, error) {
	if _, err := io.WriteString(v.to, record.Visible(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// shown lets a command that reads bundles or plans say nothing but visible text.
func shown(c *cobra.Command) *cobra.Command {
	c.PreRun = func(cmd *cobra.Command, _ []string) {
		cmd.SetOut(visible{cmd.OutOrStdout()})
		cmd.SetErr(visible{cmd.ErrOrStderr()})
	}
	return c
}
