package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/rollcall-io/rollcall/internal/bench"
)

func newBench() *cobra.Command {
	o := bench.Options{Conns: 64, Duration: 10 * time.Second, Instances: 10_000, Interval: 5 * time.Second}
	var output string
	cmd := &cobra.Command{
		Use:   "bench LOAD",
		Short: "Put load on a cluster: " + strings.Join(bench.Ops, ", "),
		Long: `Put load on a running cluster and report rates and latencies.

register     registers new instances, at most --instances of them
reregister   registers the same instances again
beat, list   beats or lists them
live         lets --instances beat every --interval for --duration, as a fleet at rest
             does, and reports by how much the Raft index moved (0 is right; the comparison of
             digests that the registrations before it are owed may add 1) and how many were
             shown unhealthy (0 is right)

What a run registers is removed at its end, also when it is interrupted. With accounts on
(serve --auth) name one with --user and put its password into the environment variable
ROLLCALL_PASSWORD.`,
		Example: "  rollcall bench register --addr n1:8848,n2:8848,n3:8848\n  rollcall bench live --instances 10000 --duration 5m",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return &usageError{fmt.Errorf("bench needs one load: %s", strings.Join(bench.Ops, ", "))}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Op, o.Prefix = args[0], "bench-"+strconv.Itoa(os.Getpid())
			o.Password = envOr("ROLLCALL_PASSWORD", "")
			if err := o.Validate(); err != nil {
				return &usageError{err}
			}
			if output != "table" && output != "json" {
				return &usageError{fmt.Errorf("--output %q: must be table or json", output)}
			}
			report, err := bench.Run(cmd.Context(), o, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return show(cmd.OutOrStdout(), output, report)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.Addrs, "addr", []string{"127.0.0.1:8848"}, "HTTP `addresses` of the nodes, comma separated")
	f.IntVar(&o.Conns, "conns", o.Conns, "connections, spread over the nodes")
	f.DurationVar(&o.Duration, "duration", o.Duration, "how long to measure")
	f.IntVar(&o.Instances, "instances", o.Instances, "instances, ten in a service")
	f.DurationVar(&o.Interval, "interval", o.Interval, "beat interval of a live run")
	f.StringVar(&o.User, "user", envOr("ROLLCALL_USER", ""), "account `name`, its password in ROLLCALL_PASSWORD (ROLLCALL_USER)")
	f.StringVarP(&output, "output", "o", "table", "table or json")
	return cmd
}

func show(w io.Writer, output string, r bench.Report) error {
	if output == "json" {
		return json.NewEncoder(w).Encode(r)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "LOAD\tNODES\tCONNS\tSECONDS\tDONE\tFAILED\tPER SECOND\tP50 MS\tP99 MS\tMAX MS\tINDEX +\tUNHEALTHY")
	times := fmt.Sprintf("%.2f\t%.2f\t%.2f", r.P50Ms, r.P99Ms, r.MaxMs)
	if r.Op == "live" {
		times = "-\t-\t-" // its requests wait for their turn
	}
	fmt.Fprintf(t, "%s\t%d\t%d\t%.1f\t%d\t%d\t%.0f\t%s\t%d\t%d\n", r.Op, r.Nodes, r.Conns, r.Seconds,
		r.Done, r.Failed, r.PerSecond, times, r.IndexGrowth, r.Unhealthy)
	if r.FirstFailure != "" {
		fmt.Fprintf(t, "first failure: %s\n", r.FirstFailure)
	}
	return t.Flush()
}
