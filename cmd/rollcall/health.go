package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

const healthTimeout = 3 * time.Second

// newHealth is the binary's own probe, for images that have no shell: it succeeds when
// the node's /readyz answers 200.
func newHealth() *cobra.Command {
	var addr string
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Ask a node whether it is ready; exits 1 when it is not",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("addr") {
				addr = envOr("ROLLCALL_ADDR", addr)
			}
			answer, err := askReady(cmd.Context(), addr)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), answer)
			return err
		},
	}
	cmd.Flags().StringVar(&addr, "addr", "127.0.0.1:8848", "HTTP address of the node (ROLLCALL_ADDR)")
	return cmd
}

func askReady(ctx context.Context, addr string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	if !strings.Contains(addr, "://") {
		addr = "http://" + addr
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, addr+"/readyz", nil)
	if err != nil {
		return "", &usageError{fmt.Errorf("--addr %q: %w", addr, err)}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", fmt.Errorf("ask %s: %w (is the node running there?)", addr, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return "", fmt.Errorf("read the answer of %s: %w", addr, err)
	}
	text := strings.TrimSpace(string(body))
	switch resp.StatusCode {
	case http.StatusOK:
		return text, nil
	case http.StatusServiceUnavailable:
		return "", fmt.Errorf("%s is not ready (%d): %s", addr, resp.StatusCode, text)
	default:
		return "", fmt.Errorf("%s answered %d to /readyz: is it a rollcall node?", addr, resp.StatusCode)
	}
}
