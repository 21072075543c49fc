package app

import (
	"strings"
	"testing"
	"time"
)

func TestOptions_ClientAddressNamesAHost(t *testing.T) {
	for _, c := range []struct{ http, peer, advertise, want string }{
		{"127.0.0.1:8848", ":7848", "n1:7848", "127.0.0.1:8848"},
		{":8848", ":7848", "n1:7848", "n1:8848"},
		{"0.0.0.0:8848", "10.0.0.1:7848", "", "10.0.0.1:8848"},
		{"[::]:8848", ":7848", "[fd00::1]:7848", "[fd00::1]:8848"},
		{":8848", ":7848", "", ":8848"},
	} {
		o := Options{HTTPAddr: c.http, PeerAddr: c.peer, Advertise: c.advertise}
		if got := o.clientAddress(); got != c.want {
			t.Errorf("http %s, peer %s, advertise %s: %s, want %s", c.http, c.peer, c.advertise, got, c.want)
		}
	}
}

func TestOptions_ValidateNamesEveryFault(t *testing.T) {
	o := DefaultOptions()
	o.DataDir, o.HTTPAddr, o.MaxConnections, o.LogFormat, o.TLSKeyFile = "", "8848", 0, "xml", "k.pem"
	err := o.Validate()
	for _, want := range []string{"--data-dir", `--http-addr "8848"`, "--max-connections 0", `"xml"`, "--tls-cert-file", "--tls-ca-file"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
	if err := DefaultOptions().Validate(); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
}

// What only the parts would refuse is told under the name of the flag, before anything starts.
func TestOptions_ValidateKnowsTheRulesOfTheParts(t *testing.T) {
	for want, change := range map[string]func(o *Options){
		`--node-id "a b"`:               func(o *Options) { o.NodeID = "a b" },
		"--election-timeout 1ms":        func(o *Options) { o.ElectionTimeout = time.Millisecond },
		"--snapshot-entries 0":          func(o *Options) { o.SnapshotEntries = 0 },
		"--snapshot-interval 1ms":       func(o *Options) { o.SnapshotInterval = time.Millisecond },
		`--log-level "loud"`:            func(o *Options) { o.LogLevel = "loud" },
		`--http-addr "127.0.0.1:99999"`: func(o *Options) { o.HTTPAddr = "127.0.0.1:99999" },
		`--debug-addr "6060"`:           func(o *Options) { o.DebugAddr = "6060" },
		`--join "n2"`:                   func(o *Options) { o.Join = []string{"n1:7848", "n2"} },
		`--advertise ":7848"`:           func(o *Options) { o.Advertise = ":7848" },
		`--peer-addr ":7848"`:           func(o *Options) { o.Join = []string{"n1:7848"} },
		`--advertise "0.0.0.0:7848"`:    func(o *Options) { o.Join, o.Advertise = []string{"n1:7848"}, "0.0.0.0:7848" },
	} {
		o := DefaultOptions()
		o.ClusterSecretFile = "secret"
		change(&o)
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
}
