package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"assay/reports"
)

func bundleCommand() *cobra.Command {
	c := &cobra.Command{Use: "bundle", Short: "make one file of a bundle, and a bundle of it again; sign one"}
	c.AddCommand(
		shown(signCommand()),
		&cobra.Command{
			Use:   "pack DIR [FILE]",
			Short: "write a bundle as one compressed file: the same bundle, the same bytes",
			Args:  cobra.RangeArgs(1, 2),
			RunE: func(cmd *cobra.Command, args []string) error {
				name := strings.TrimRight(args[0], "/") + reports.PackedExtension
				if len(args) == 2 {
					name = args[1]
				}
				return pack(args[0], name)
			},
		},
		&cobra.Command{
			Use:   "unpack FILE [FOLDER]",
			Short: "put a packed bundle's directory into a folder, this one by default",
			Args:  cobra.RangeArgs(1, 2),
			RunE: func(cmd *cobra.Command, args []string) error {
				folder := "."
				if len(args) == 2 {
					folder = args[1]
				}
				dir, err := unpack(args[0], folder)
				if err == nil {
					fmt.Fprintln(cmd.OutOrStdout(), dir)
				}
				return err
			},
		},
	)
	return c
}

func pack(dir, name string) error {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("%s can't be written: %w; name another file", name, err)
	}
	err = errors.Join(reports.Pack(dir, file), file.Close())
	if err != nil {
		_ = os.Remove(name) // half a bundle would pass for one
	}
	return err
}

func unpack(name, folder string) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", fmt.Errorf("%s can't be read: %w", name, err)
	}
	defer file.Close()
	dir, err := reports.Unpack(file, folder)
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return dir, err
}

// opened is a bundle's directory: the one that is named, or that of a packed
// bundle, unpacked where done takes it away again; done is
// never nil.
func opened(name string) (dir string, done func(), err error) {
	if !strings.HasSuffix(name, reports.PackedExtension) {
		return name, func() {}, nil
	}
	folder, err := os.MkdirTemp("", "assay-bundle-")
	if err != nil {
		return "", func() {}, err
	}
	done = func() { _ = os.RemoveAll(folder) }
	if dir, err = unpack(name, folder); err != nil {
		done()
		return "", func() {}, err
	}
	return filepath.Clean(dir), done, nil
}
