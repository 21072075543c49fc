// Command rollcall is the service registry: `rollcall serve` runs a node, the other
// commands speak to one.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run executes one command line and returns the exit code: 0 for success, 1 for a
// failure, 2 for a command line that cannot be understood, or what the error itself asks
// for.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "rollcall: %v\n", err)
	if usage := (*usageError)(nil); errors.As(err, &usage) {
		return 2
	}
	if coded := (interface{ ExitCode() int })(nil); errors.As(err, &coded) {
		return coded.ExitCode()
	}
	return 1
}

// usageError is a mistake in the command line, the environment or the settings file.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "rollcall",
		Short:         "A service registry for fleets that speak Nacos",
		SilenceUsage:  true,
		SilenceErrors: true,
		// Set here because cobra sets it only for its own message.
		SuggestionsMinimumDistance: 2,
		Args:                       noCommand,
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &usageError{fmt.Errorf("%w: see %s --help", err, cmd.CommandPath())}
	})
	root.AddCommand(newServe(), newBench(), newHealth(), newStatus(), newSecret(), newVersion())
	return root
}

// noCommand refuses a word that is no command and names those that look like it.
func noCommand(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := ""
	if near := root.SuggestionsFor(args[0]); len(near) > 0 {
		hint = fmt.Sprintf(", did you mean %s?", strings.Join(near, " or "))
	}
	return &usageError{fmt.Errorf("unknown command %q%s: see rollcall --help", args[0], hint)}
}

// noArgs refuses words that belong to no flag.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return &usageError{fmt.Errorf("%s takes no argument %q: see rollcall %s --help", cmd.Name(), args[0], cmd.Name())}
	}
	return nil
}
