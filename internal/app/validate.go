package app

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
)

// minElectionTimeout and nodeID are raftnode's rules, told here under the flags' names.
const minElectionTimeout = 20 * time.Millisecond

var nodeID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// complain notes one fault of the options.
type complain func(format string, args ...any)

// Validate reports every setting that cannot work, joined, always in the same order. It
// opens no file.
func (o Options) Validate() error {
	var bad []error
	add := func(format string, args ...any) { bad = append(bad, fmt.Errorf(format, args...)) }
	if o.DataDir == "" {
		add("--data-dir: must not be empty")
	}
	if o.NodeID != "" && !nodeID.MatchString(o.NodeID) {
		add("--node-id %q: must be 1 to 64 letters, digits and . _ -", o.NodeID)
	}
	o.validateAddresses(add)
	o.validateCluster(add)
	o.validateNumbers(add)
	if o.LogFormat != "text" && o.LogFormat != "json" {
		add("--log-format %q: must be text or json", o.LogFormat)
	}
	if o.Logger == nil && hclog.LevelFromString(o.LogLevel) == hclog.NoLevel {
		add("--log-level %q: must be trace, debug, info, warn, error or off", o.LogLevel)
	}
	return errors.Join(bad...)
}

func (o Options) validateAddresses(add complain) {
	check := func(flag, address string, want string) {
		host, port, err := net.SplitHostPort(address)
		if err == nil {
			_, err = net.LookupPort("tcp", port)
		}
		if err != nil || host == "" && want == "host:port" {
			add("--%s %q: must be %s", flag, address, want)
		}
	}
	check("http-addr", o.HTTPAddr, "host:port or :port")
	check("peer-addr", o.PeerAddr, "host:port or :port")
	check("push-addr", o.pushAddr(), "host:port or :port")
	if o.DebugAddr != "" {
		check("debug-addr", o.DebugAddr, "host:port or :port")
	}
	if o.Advertise != "" {
		check("advertise", o.Advertise, "host:port")
	}
	for _, address := range o.Join {
		check("join", address, "host:port")
	}
}

func (o Options) validateCluster(add complain) {
	if o.BootstrapExpect < 0 {
		add("--bootstrap-expect %d: must not be negative", o.BootstrapExpect)
	}
	if o.BootstrapExpect > 1 && len(o.Join) == 0 {
		add("--bootstrap-expect %d: needs --join with the peer addresses of the nodes", o.BootstrapExpect)
	}
	if o.clustered() && !o.secured() {
		add("a cluster of more than one node needs --cluster-secret-file (the same file on every node) or the --tls-*-file flags")
	}
	if o.clustered() {
		advertised, flag := o.Advertise, "advertise"
		if advertised == "" {
			advertised, flag = o.PeerAddr, "peer-addr"
		}
		host, _, err := net.SplitHostPort(advertised)
		if ip := net.ParseIP(host); err == nil && (host == "" && flag == "peer-addr" || ip != nil && ip.IsUnspecified()) {
			add("--%s %q: must name a host under which the other nodes reach this one (--advertise does)", flag, advertised)
		}
	}
	if tls := []string{o.TLSCertFile, o.TLSKeyFile, o.TLSCAFile}; strings.Join(tls, "") != "" {
		for i, name := range []string{"cert", "key", "ca"} {
			if tls[i] == "" {
				add("--tls-%s-file: all three TLS files are needed together", name)
			}
		}
	}
}

func (o Options) validateNumbers(add complain) {
	if o.MaxConnections < 1 {
		add("--max-connections %d: must be at least 1", o.MaxConnections)
	}
	if o.ElectionTimeout < minElectionTimeout {
		add("--election-timeout %s: must be at least %s", o.ElectionTimeout, minElectionTimeout)
	}
	if least := 5 * time.Millisecond; o.SnapshotInterval < least {
		add("--snapshot-interval %s: must be at least %s", o.SnapshotInterval, least)
	}
	if o.SnapshotEntries < 1 {
		add("--snapshot-entries %d: must be at least 1", o.SnapshotEntries)
	}
	if o.HealthScanInterval <= 0 {
		add("--health-scan-interval %s: must be above 0", o.HealthScanInterval)
	}
	if o.EmptyServiceTTL < 0 {
		add("--empty-service-ttl %s: must not be negative", o.EmptyServiceTTL)
	}
	if o.AuthTokenTTL < time.Minute {
		add("--auth-token-ttl %s: must be at least a minute", o.AuthTokenTTL)
	}
}
