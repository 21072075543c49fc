package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/rollcall-io/rollcall/raftnode"
)

func newLogger(o Options) (hclog.Logger, error) {
	if o.Logger != nil {
		return o.Logger, nil
	}
	level := hclog.LevelFromString(o.LogLevel)
	if level == hclog.NoLevel {
		return nil, fmt.Errorf("--log-level %q: must be trace, debug, info, warn, error or off", o.LogLevel)
	}
	return hclog.New(&hclog.LoggerOptions{
		Name: "rollcall", Level: level, JSONFormat: o.LogFormat == "json", Exclude: raftnode.LogFilter(),
	}), nil
}

// newMetrics is a node's own registry, with the process's figures and the version.
func newMetrics(o Options) *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "rollcall_build_info", Help: "Always 1; the label tells the version.",
		ConstLabels: prometheus.Labels{"version": o.Version},
	})
	build.Set(1)
	reg.MustRegister(build)
	return reg
}

// effective are the settings in force, for the line that is logged at start. The secret
// itself is never among them, only the name of its file.
func (o Options) effective() []any {
	return []any{
		"version", o.Version, "node_id", o.NodeID, "data_dir", o.DataDir,
		"http_addr", o.HTTPAddr, "max_connections", o.MaxConnections, "peer_addr", o.PeerAddr, "push_addr", o.PushAddr, "advertise", o.Advertise,
		"bootstrap_expect", o.BootstrapExpect, "join", strings.Join(o.Join, ","),
		"cluster_secret_file", o.ClusterSecretFile, "tls_cert_file", o.TLSCertFile, "tls_ca_file", o.TLSCAFile,
		"election_timeout", o.ElectionTimeout, "snapshot_interval", o.SnapshotInterval,
		"snapshot_entries", o.SnapshotEntries, "trailing_logs", o.TrailingLogs,
		"health_scan_interval", o.HealthScanInterval, "empty_service_ttl", o.EmptyServiceTTL,
		"auth", o.Auth, "auth_token_ttl", o.AuthTokenTTL,
		"debug_addr", o.DebugAddr, "log_level", o.LogLevel, "log_format", o.LogFormat,
	}
}

// joinStop joins what went wrong while stopping, less what only says that a thing had
// ended already.
func joinStop(errs []error) error {
	var real []error
	for _, err := range errs {
		if err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, http.ErrServerClosed) {
			real = append(real, err)
		}
	}
	err := errors.Join(real...)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("stop took too long and was cut short: %w", err)
	}
	return err
}
