package auth

import (
	"errors"
	"fmt"
	"testing"
)

// A host has all addresses of its IPv6 network: taking another for each guess must not help.
func TestPassword_LockOutOfAnIPv6Network(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range freeTries {
		if err := w.login("alice", "guess", fmt.Sprintf("2001:db8:1:2::%x", i)); !errors.Is(err, ErrUnknownUser) {
			t.Fatalf("try %d: %v", i, err)
		}
	}
	var locked *LockedError
	if err := w.login("alice", "secret", "2001:db8:1:2:ffff::1"); !errors.As(err, &locked) {
		t.Errorf("from a neighbour: %v", err)
	}
	if err := w.login("alice", "secret", "2001:db8:1:3::1"); err != nil {
		t.Errorf("from another network: %v", err)
	}
}

func TestPlace(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "::ffff:192.0.2.1": "::ffff:192.0.2.1", "2001:db8::1": "2001:db8::/64",
		"fe80::1%eth0": "fe80::/64", "pipe": "pipe", "": "",
	} {
		if got := place(address); got != want {
			t.Errorf("%q: %q, want %q", address, got, want)
		}
	}
}
