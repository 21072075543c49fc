package main

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/rollcall-io/rollcall/internal/app"
)

// secretBytes is the randomness of a new cluster secret before encoding, as much as the
// keys made from it hold.
const secretBytes = 32

// newSecret makes cluster secrets, so that an image without a shell can make its own.
func newSecret() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "secret",
		Short: "Make a cluster secret for --cluster-secret-file",
		Long: `Make a cluster secret and print it, or with --file write it to a file that only its
owner may read. A file that is there already is left as it is, so the command can run
before every start.`,
		Example: "  rollcall secret --file /etc/rollcall/secret",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), rand64())
				return err
			}
			made, err := writeSecret(file)
			if err != nil {
				return err
			}
			answer := "made " + file
			if !made {
				answer = file + " is there already"
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), answer)
			return err
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "write to this `file` unless it is there")
	return cmd
}

func rand64() string {
	secret := make([]byte, secretBytes)
	rand.Read(secret) // never fails: the process ends when the system has no randomness
	return base64.StdEncoding.EncodeToString(secret)
}

// writeSecret makes the file with a new secret and tells whether it did. The file appears
// whole or not at all, and of two that start at once one wins.
func writeSecret(file string) (bool, error) {
	if info, err := os.Stat(file); err == nil {
		if !info.Mode().IsRegular() {
			return false, fmt.Errorf("--file %s: is not a regular file", file)
		}
		if info.Size() < app.MinSecret {
			return false, fmt.Errorf("--file %s: is there already and holds %d bytes, at least %d are needed: remove it first", file, info.Size(), app.MinSecret)
		}
		return false, nil
	}
	tmp, err := os.CreateTemp(filepath.Dir(file), ".secret-*") // mode 0600
	if err != nil {
		return false, fmt.Errorf("--file: %w", err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.WriteString(rand64() + "\n")
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return false, fmt.Errorf("write %s: %w", file, err)
	}
	// A link, unlike a rename, fails when another process was faster.
	if err := os.Link(tmp.Name(), file); errors.Is(err, fs.ErrExist) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("--file: %w", err)
	}
	return true, nil
}
