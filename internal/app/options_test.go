package app

import (
	"strings"
	"testing"
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
