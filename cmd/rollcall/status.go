package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// nodeStatus is the part of a node's status that is shown.
type nodeStatus struct {
	ID        string
	ClusterID string
	Version   string
	Ready     bool
	NotReady  string
	State     string
	Leader    string
	Term      uint64
	Applied   uint64
	LagMs     int64
	Diverged  bool
	Services  int
	Instances int
	Members   []struct {
		ID, Address, PeerAddress, State string
		Leader, Voter                   bool
	}
	Leases struct {
		Leading                              bool
		Total, Unhealthy, Silent, Held, Kept int
		Storm                                bool
		CompensatedMs                        int64
	}
}

// errUnhealthy makes the command exit with 1 after it has shown why.
var errUnhealthy = errors.New("the cluster is not healthy")

func newStatus() *cobra.Command {
	var addr, user, output string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show a node and its cluster; exits 1 when something is not healthy",
		Long: `Show how a node sees itself, its cluster and, if it leads, the leases.

With accounts on (serve --auth) name one with --user and put its password into the
environment variable ROLLCALL_PASSWORD.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("addr") {
				addr = envOr("ROLLCALL_ADDR", addr)
			}
			if output != "table" && output != "json" {
				return &usageError{fmt.Errorf("-o %q: must be table or json", output)}
			}
			raw, err := askStatus(cmd.Context(), addr, user)
			if err != nil {
				return err
			}
			var s nodeStatus
			if err := json.Unmarshal(raw, &s); err != nil {
				return fmt.Errorf("status of %s: %w (is it a rollcall node?)", addr, err)
			}
			if output == "json" {
				fmt.Fprintf(cmd.OutOrStdout(), "%s\n", raw)
			} else if err := s.table(cmd.OutOrStdout()); err != nil {
				return err
			}
			return s.verdict()
		},
	}
	cmd.Flags().StringVar(&addr, "addr", "127.0.0.1:8848", "HTTP `address` of the node (ROLLCALL_ADDR)")
	cmd.Flags().StringVar(&user, "user", envOr("ROLLCALL_USER", ""), "account `name`, its password in ROLLCALL_PASSWORD (ROLLCALL_USER)")
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	return cmd
}

func askStatus(ctx context.Context, addr, user string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	if !strings.Contains(addr, "://") {
		addr = "http://" + addr
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, addr+"/api/v1/status", nil)
	if err != nil {
		return nil, &usageError{fmt.Errorf("--addr %q: %w", addr, err)}
	}
	if user != "" {
		req.SetBasicAuth(user, envOr("ROLLCALL_PASSWORD", ""))
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w (is the node running there?)", addr, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 4<<20))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the answer of %s: %w", addr, err)
	case resp.StatusCode == http.StatusForbidden || resp.StatusCode == http.StatusUnauthorized:
		return nil, fmt.Errorf("%s wants an account: name one with --user and put its password into ROLLCALL_PASSWORD", addr)
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s answered %d: %.200s", addr, resp.StatusCode, body)
	}
	return body, nil
}

// table shows the status for people.
func (s nodeStatus) table(w io.Writer) error {
	ready := "ready"
	if !s.Ready {
		ready = "not ready: " + s.NotReady
	}
	fmt.Fprintf(w, "node %s (%s) of cluster %s: %s, %s\n", s.ID, s.Version, orNone(s.ClusterID), s.State, ready)
	fmt.Fprintf(w, "leader %s, term %d, applied index %d, lag %d ms, %d services, %d instances\n\n",
		orNone(s.Leader), s.Term, s.Applied, s.LagMs, s.Services, s.Instances)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NODE\tSTATE\tROLE\tVOTER\tHTTP\tPEERS")
	for _, m := range s.Members {
		role := "follower"
		if m.Leader {
			role = "leader"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%v\t%s\t%s\n", m.ID, m.State, role, m.Voter, orNone(m.Address), m.PeerAddress)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if l := s.Leases; l.Leading {
		fmt.Fprintf(w, "\nleases: %d, of instances unhealthy %d, beat late %d, taken out for pauses %d ms\n", l.Total, l.Unhealthy, l.Silent, l.CompensatedMs)
		if l.Storm {
			fmt.Fprintf(w, "STORM: many instances went silent at once; %d evictions wait one more delete timeout\n", l.Held)
		}
	} else {
		fmt.Fprintf(w, "\nleases are the leader's; %d beats wait here for one\n", l.Kept)
	}
	return nil
}

func orNone(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// verdict names what is not healthy, joined; nil when all is well.
func (s nodeStatus) verdict() error {
	var bad []error
	add := func(format string, args ...any) { bad = append(bad, fmt.Errorf(format, args...)) }
	if !s.Ready {
		add("%s is not ready: %s", s.ID, s.NotReady)
	}
	if s.Leader == "" {
		add("no leader is known: writes are refused until a majority is up")
	}
	if s.Diverged {
		add("%s differs from the leader: stop it, wipe its data directory and let it rejoin", s.ID)
	}
	for _, m := range s.Members {
		if m.State != "UP" {
			add("%s is %s", m.ID, m.State)
		} else if !m.Voter {
			add("%s has no vote yet: it is catching up", m.ID)
		}
	}
	if len(bad) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", errUnhealthy, errors.Join(bad...))
}
