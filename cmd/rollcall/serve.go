package main

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rollcall-io/rollcall/internal/app"
)

// stopTimeout bounds the whole of a graceful stop.
const stopTimeout = 10 * time.Second

func newServe() *cobra.Command {
	opts := app.DefaultOptions()
	var configFile string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a node of the registry",
		Long: `Run a node of the registry. Without flags it is one node alone, with its data in
./rollcall-data, HTTP on port 8848 and peers on port 7848.

Every flag can also come from the environment (--data-dir is ROLLCALL_DATA_DIR) and from
the YAML file named by --config (data-dir: ...). A flag wins over the environment, the
environment over the file.`,
		Example: `  rollcall serve
  rollcall serve --node-id n1 --data-dir /var/lib/rollcall --advertise n1:7848 \
    --bootstrap-expect 3 --join n1:7848,n2:7848,n3:7848 --cluster-secret-file secret`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := fillIn(cmd.Flags(), configFile); err != nil {
				return &usageError{err}
			}
			if err := opts.Validate(); err != nil {
				return &usageError{err}
			}
			for _, name := range strayEnv(cmd.Flags(), os.Environ()) {
				cmd.PrintErrf("rollcall: environment variable %s is no setting and does nothing (rollcall serve --help lists the flags)\n", name)
			}
			return serve(cmd.Context(), opts)
		},
	}
	addServeFlags(cmd.Flags(), &opts)
	cmd.Flags().StringVar(&configFile, "config", "", "YAML `file` with settings, keys named like the flags")
	return cmd
}

func addServeFlags(f *pflag.FlagSet, o *app.Options) {
	f.StringVar(&o.NodeID, "node-id", o.NodeID, "`name` of this node in the cluster (default: kept in the data directory, made at first start)")
	f.StringVar(&o.DataDir, "data-dir", o.DataDir, "`directory` of log and snapshots")
	f.StringVar(&o.HTTPAddr, "http-addr", o.HTTPAddr, "`host:port` for clients")
	f.IntVar(&o.MaxConnections, "max-connections", o.MaxConnections, "client `connections` at a time; more are refused with 503")
	f.StringVar(&o.PeerAddr, "peer-addr", o.PeerAddr, "`host:port` for the other nodes")
	f.StringVar(&o.PushAddr, "push-addr", o.PushAddr, "UDP `host:port` that pushes to clients leave from; port 0 is any")
	f.StringVar(&o.Advertise, "advertise", o.Advertise, "`host:port` under which the other nodes reach --peer-addr; names are looked up at each dial")
	f.IntVar(&o.BootstrapExpect, "bootstrap-expect", o.BootstrapExpect, "`number` of nodes that make a new cluster together; ignored once there is one")
	f.StringSliceVar(&o.Join, "join", o.Join, "peer `addresses` of the cluster's nodes, comma separated; the own one may be among them")
	f.StringVar(&o.ClusterSecretFile, "cluster-secret-file", o.ClusterSecretFile, "`file` with the secret that all nodes share, at least 16 bytes")
	f.StringVar(&o.TLSCertFile, "tls-cert-file", o.TLSCertFile, "PEM `file` with this node's certificate for the peer port")
	f.StringVar(&o.TLSKeyFile, "tls-key-file", o.TLSKeyFile, "PEM `file` with its key")
	f.StringVar(&o.TLSCAFile, "tls-ca-file", o.TLSCAFile, "PEM `file` with the CA that signed all nodes' certificates")
	f.DurationVar(&o.ElectionTimeout, "election-timeout", o.ElectionTimeout, "Raft heartbeat, election and leader lease timeout")
	f.DurationVar(&o.SnapshotInterval, "snapshot-interval", o.SnapshotInterval, "how often to check whether a snapshot is due")
	f.Uint64Var(&o.SnapshotEntries, "snapshot-entries", o.SnapshotEntries, "log `entries` after which a snapshot is due")
	f.Uint64Var(&o.TrailingLogs, "trailing-logs", o.TrailingLogs, "log `entries` kept behind a snapshot for slow followers")
	f.DurationVar(&o.HealthScanInterval, "health-scan-interval", o.HealthScanInterval, "how often the leader looks for instances that stopped beating")
	f.DurationVar(&o.EmptyServiceTTL, "empty-service-ttl", o.EmptyServiceTTL, "how long a service made by a registration stays without instances; 0 keeps it")
	f.BoolVar(&o.Auth, "auth", o.Auth, "ask every client for an account; the first start prints the password of the account admin")
	f.DurationVar(&o.AuthTokenTTL, "auth-token-ttl", o.AuthTokenTTL, "how long a login is good")
	f.StringVar(&o.DebugAddr, "debug-addr", o.DebugAddr, "`host:port` for the Go profiler; off when empty")
	f.StringVar(&o.LogLevel, "log-level", o.LogLevel, "trace, debug, info, warn or error")
	f.StringVar(&o.LogFormat, "log-format", o.LogFormat, "text or json")
}

// serve runs a node until the context ends, then stops it in order.
func serve(ctx context.Context, opts app.Options) error {
	pacing, endPace := context.WithCancel(context.WithoutCancel(ctx))
	paced := make(chan struct{})
	go func() { defer close(paced); paceCollector(pacing) }()
	defer func() { endPace(); <-paced }()
	opts.Version = buildVersion()
	node, err := app.New(opts)
	if err != nil {
		return err
	}
	err = node.Start(ctx)
	if err == nil {
		err = node.Wait(ctx)
	}
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if stopErr := node.Stop(stopCtx); err == nil {
		err = stopErr
	}
	return err
}
