package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/rollcall-io/rollcall/internal/app"
)

// parse runs a command line through the flags of serve, as the command does.
func parse(t *testing.T, config string, args ...string) (app.Options, error) {
	t.Helper()
	opts := app.DefaultOptions()
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	addServeFlags(flags, &opts)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	if config != "" {
		path := filepath.Join(t.TempDir(), "rollcall.yaml")
		if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		config = path
	}
	err := fillIn(flags, config)
	return opts, err
}

func TestSettings_FlagWinsOverEnvironmentOverFile(t *testing.T) {
	t.Setenv("ROLLCALL_NODE_ID", "from-env")
	t.Setenv("ROLLCALL_HTTP_ADDR", "127.0.0.1:2")
	got, err := parse(t, "node-id: from-file\nhttp-addr: 127.0.0.1:3\npeer-addr: 127.0.0.1:4\n", "--node-id", "from-flag")
	if err != nil {
		t.Fatal(err)
	}
	if got.NodeID != "from-flag" || got.HTTPAddr != "127.0.0.1:2" || got.PeerAddr != "127.0.0.1:4" {
		t.Fatalf("node-id %q, http-addr %q, peer-addr %q", got.NodeID, got.HTTPAddr, got.PeerAddr)
	}
}

func TestSettings_ListsNumbersAndDurationsFromFile(t *testing.T) {
	got, err := parse(t, "join: [n1:7848, n2:7848]\nbootstrap-expect: 3\nelection-timeout: 1s\nsnapshot-entries: 5\n")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Join(got.Join, "|") != "n1:7848|n2:7848" || got.BootstrapExpect != 3 || got.ElectionTimeout != time.Second || got.SnapshotEntries != 5 {
		t.Fatalf("got %+v", got)
	}
}

func TestSettings_BadOnesNameKeyAndValue(t *testing.T) {
	t.Setenv("ROLLCALL_ELECTION_TIMEOUT", "soon")
	_, err := parse(t, "colour: red\nbootstrap-expect: three\nnode-id: {a: b}\n")
	if err == nil || !strings.Contains(err.Error(), "node-id") {
		t.Fatalf("mapping as value: %v", err)
	}
	_, err = parse(t, "colour: red\nbootstrap-expect: three\n")
	for _, want := range []string{`unknown key "colour"`, "bootstrap-expect", "three", "ROLLCALL_ELECTION_TIMEOUT", "soon"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not name %s", err, want)
		}
	}
}

// A key that would do nothing is refused, not passed over.
func TestSettings_ConfigAndHelpAreNoKeys(t *testing.T) {
	for _, key := range []string{"config", "help"} {
		if _, err := parse(t, key+": true\n"); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s in the file: %v", key, err)
		}
	}
}

func TestSettings_FlagDefaultsAreTheAppsDefaults(t *testing.T) {
	got, err := parse(t, "")
	if err != nil {
		t.Fatal(err)
	}
	want := app.DefaultOptions()
	got.Join, want.Join = nil, nil // pflag makes an empty list of none
	if strings.Join(strings.Fields(dump(got)), " ") != strings.Join(strings.Fields(dump(want)), " ") {
		t.Fatalf("got  %s\nwant %s", dump(got), dump(want))
	}
}

func TestRun_ExitCodes(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"version", []string{"version"}, 0, "rollcall "},
		{"unknown flag", []string{"serve", "--colour", "red"}, 2, "--colour"},
		{"unknown command", []string{"sevre"}, 2, "did you mean serve"},
		{"unknown command like no other", []string{"colour"}, 2, "rollcall --help"},
		{"election timeout too short", []string{"serve", "--election-timeout", "1ms"}, 2, "--election-timeout 1ms"},
		{"unknown output of bench", []string{"bench", "list", "--addr", "127.0.0.1:1", "-o", "xml"}, 2, `"xml"`},
		{"bench without node", []string{"bench", "list", "--addr", "127.0.0.1:1"}, 1, "is a node running there?"},
		{"stray word", []string{"serve", "now"}, 2, `"now"`},
		{"cluster without secret", []string{"serve", "--bootstrap-expect", "3", "--join", "a:1,b:1"}, 2, "--cluster-secret-file"},
		{"expect without join", []string{"serve", "--bootstrap-expect", "3"}, 2, "--join"},
		{"bad address", []string{"serve", "--http-addr", "8848"}, 2, `"8848"`},
		{"missing config", []string{"serve", "--config", "/nonexistent.yaml"}, 2, "/nonexistent.yaml"},
		{"missing secret file", []string{"serve", "--data-dir", t.TempDir(), "--cluster-secret-file", "/nonexistent"}, 1, "/nonexistent"},
		{"health without node", []string{"health", "--addr", "127.0.0.1:1"}, 1, "127.0.0.1:1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			if code := run(ctx, c.args, &out, &out); code != c.code || !strings.Contains(out.String(), c.says) {
				t.Fatalf("exit %d, want %d; output %q, want %q in it", code, c.code, out.String(), c.says)
			}
		})
	}
}

// Something else on the port is not a node that will be ready later.
func TestHealth_OtherServerIsNamedAsSuch(t *testing.T) {
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	var out bytes.Buffer
	if code := run(t.Context(), []string{"health", "--addr", other.URL}, &out, &out); code != 1 || !strings.Contains(out.String(), "is it a rollcall node?") {
		t.Fatalf("exit %d: %s", code, out.String())
	}
}

func dump(o app.Options) string {
	return strings.Join([]string{o.NodeID, o.DataDir, o.HTTPAddr, o.PeerAddr, o.Advertise, o.ClusterSecretFile, o.LogLevel, o.LogFormat,
		o.ElectionTimeout.String(), o.SnapshotInterval.String(), o.HealthScanInterval.String(), o.EmptyServiceTTL.String()}, " ")
}

// TestMisspeltEnvironment_IsNamed: ROLLCALL_DATADIR was ignored without a word.
func TestMisspeltEnvironment_IsNamed(t *testing.T) {
	got := strayEnv(newServe().Flags(), []string{
		"ROLLCALL_DATADIR=/x", "ROLLCALL_data_dir=/x", "ROLLCALL_COLOUR", "ROLLCALL_DATA_DIR=/x", "ROLLCALL_CONFIG=f", "ROLLCALL_USER=u", "PATH=/bin",
		"ROLLCALL_SERVICE_HOST=10.0.0.1", "ROLLCALL_SERVICE_PORT_HTTP=8848", "ROLLCALL_PORT_8848_TCP_ADDR=10.0.0.1", "ROLLCALL_PORT=tcp://10.0.0.1:8848", "ROLLCALL_CLUSTER_HTTP_PORT=8848",
	})
	if want := "ROLLCALL_COLOUR ROLLCALL_DATADIR ROLLCALL_data_dir"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
