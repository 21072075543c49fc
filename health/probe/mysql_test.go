package probe

import (
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

func TestMySQL_Outcomes(t *testing.T) {
	const showReadOnly = "show global variables where variable_name='read_only'"
	readOnly := "OFF"
	server := &fakeMySQL{user: "probe", password: "secret", answer: func(command string) [][]byte {
		switch command {
		case "select 1":
			return table("1", "1")
		case "do 1":
			return [][]byte{done}
		case showReadOnly:
			return table("Variable_name,Value", "read_only", readOnly)
		case "hang":
			return nil
		}
		return [][]byte{failed(1146, "no such table")}
	}}
	address := startFakeMySQL(t, server)
	login := func(command string) registry.Checker {
		return registry.Checker{Type: registry.CheckMySQL, User: "probe", Password: "secret", Command: command}
	}
	expect := func(name string, s registry.Checker, want Outcome) {
		t.Helper()
		got := check(t, MySQL{}, address, mysqlTimeout, s)
		// A busy machine that stands still for the fixed 500 ms of the login is a timeout too.
		for end := time.Now().Add(patience); got == Down && want != Down && time.Now().Before(end); {
			got = check(t, MySQL{}, address, mysqlTimeout, s)
		}
		if got != want {
			t.Errorf("%s: outcome %d, want %d", name, got, want)
		}
	}
	expect("a row", login("select 1"), Up)
	expect("no row", login("do 1"), Up)
	expect("no command", login(""), Up)
	expect("a master", login(showReadOnly), Up)
	readOnly = "ON"
	expect("no master", login(showReadOnly), Down)
	expect("an error of the server", login("select * from nothing"), Refused)
	expect("no answer", login("hang"), Down)
	expect("wrong password", registry.Checker{User: "probe", Password: "guess", Command: "select 1"}, Refused)
	expect("wrong user", registry.Checker{User: "other", Password: "secret"}, Refused)
	server.listener.Close()
	expect("closed", login("select 1"), Refused)
}

func TestMySQL_SilentHostCostsNoMoreThanTheTimeout(t *testing.T) {
	address := startFakeMySQL(t, &fakeMySQL{mute: true})
	start := time.Now()
	got := check(t, MySQL{}, address, 300*time.Millisecond, registry.Checker{User: "u"})
	if took := time.Since(start); got != Down || took > patience {
		t.Errorf("outcome %d after %s, want down after 300 ms", got, took)
	}
}

func TestDefaultSettings_ProbeEveryTypeThatClustersMayName(t *testing.T) {
	s := DefaultSettings()
	for _, kind := range []string{registry.CheckTCP, registry.CheckHTTP, registry.CheckMySQL} {
		if s.Checkers[kind] == nil {
			t.Errorf("no checker for %s", kind)
		}
	}
	if s.timeout(registry.CheckMySQL) != 1500*time.Millisecond || s.timeout(registry.CheckHTTP) != 500*time.Millisecond {
		t.Errorf("timeouts %s and %s", s.timeout(registry.CheckMySQL), s.timeout(registry.CheckHTTP))
	}
}
