package auth

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/rollcall-io/rollcall/registry"
)

// world is an Authority over accounts that a test changes, with a clock of its own.
type world struct {
	*Authority
	accounts *registry.Accounts
	clock    time.Time
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{accounts: &registry.Accounts{Key: NewKey()}, clock: time.Unix(1_800_000_000, 0)}
	w.Authority = New(Options{Accounts: func() *registry.Accounts { return w.accounts }, Cost: bcrypt.MinCost,
		Now: func() time.Time { return w.clock }})
	w.set(t, "alice", "secret")
	return w
}

func (w *world) set(t *testing.T, name, password string) registry.User {
	t.Helper()
	hash, err := w.Hash(context.Background(), password)
	if err != nil {
		t.Fatal(err)
	}
	u := registry.User{Name: name, Hash: hash}
	next, err := w.accounts.SetUser(u)
	if errors.Is(err, registry.ErrUserNotFound) {
		next, err = w.accounts.AddUser(u)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.accounts = next
	return u
}

func (w *world) login(user, password, address string) error {
	_, err := w.Password(context.Background(), user, password, address)
	return err
}

func TestPassword(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 2 { // the second time from memory
		if err := w.login("alice", "secret", "a"); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range [][2]string{{"alice", "Secret"}, {"alice", ""}, {"bob", "secret"}, {"", ""}} {
		if err := w.login(tc[0], tc[1], "b"); !errors.Is(err, ErrUnknownUser) {
			t.Errorf("%q %q: %v", tc[0], tc[1], err)
		}
	}
	w.set(t, "alice", "changed")
	if err := w.login("alice", "secret", "c"); !errors.Is(err, ErrUnknownUser) {
		t.Errorf("the old password: %v", err)
	}
	if err := w.login("alice", "changed", "c"); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", strings.Repeat("x", MaxPassword+1)} {
		if _, err := w.Hash(context.Background(), bad); !errors.Is(err, registry.ErrInvalid) || strings.Contains(err.Error(), "xxx") {
			t.Errorf("a password of %d bytes: %v", len(bad), err)
		}
	}
}

// Passwords could be guessed without a limit (alibaba/nacos #1918).
func TestPassword_LockOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var locked *LockedError
	for i := range freeTries {
		if err := w.login("alice", "guess", "a"); !errors.Is(err, ErrUnknownUser) {
			t.Fatalf("try %d: %v", i, err)
		}
	}
	if err := w.login("alice", "secret", "a"); !errors.As(err, &locked) || locked.Wait != firstWait {
		t.Fatalf("after %d wrong passwords the right one: %v", freeTries, err)
	}
	if err := w.login("alice", "secret", "b"); err != nil {
		t.Errorf("from another address: %v", err)
	}
	w.set(t, "bob", "b")
	if err := w.login("bob", "b", "a"); err != nil {
		t.Errorf("another user from the same address: %v", err)
	}
	for wait := firstWait; wait < longestWait; wait *= 2 {
		w.clock = w.clock.Add(wait)
		if err := w.login("alice", "guess", "a"); !errors.Is(err, ErrUnknownUser) {
			t.Fatalf("after a wait of %s: %v", wait, err)
		}
		if err := w.login("alice", "secret", "a"); !errors.As(err, &locked) || locked.Wait != min(2*wait, longestWait) {
			t.Fatalf("the wait after %s: %v", wait, err)
		}
	}
	w.clock = w.clock.Add(longestWait)
	if err := w.login("alice", "secret", "a"); err != nil {
		t.Errorf("after the longest wait: %v", err)
	}
	if err := w.login("alice", "guess", "a"); !errors.Is(err, ErrUnknownUser) {
		t.Errorf("after a success: %v", err)
	}
}

// Guessing over many users is slowed by address, and what is remembered is bounded.
func TestPassword_LockOutOfAnAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range freePerAddress {
		if err := w.login(fmt.Sprint("user", i), "guess", "a"); !errors.Is(err, ErrUnknownUser) {
			t.Fatalf("try %d: %v", i, err)
		}
	}
	var locked *LockedError
	if err := w.login("somebody", "guess", "a"); !errors.As(err, &locked) {
		t.Errorf("after %d users: %v", freePerAddress, err)
	}
	for i := range maxTracked + 10 {
		w.failed.add("u", fmt.Sprint(i), w.clock)
	}
	if n := len(w.failed.now); n > maxTracked {
		t.Errorf("%d callers remembered", n)
	}
	w.clock = w.clock.Add(2 * forgetAfter)
	w.failed.add("u", "a", w.clock)
	if n := len(w.failed.now); n > 2 {
		t.Errorf("%d callers remembered long after", n)
	}
}

// A burst of tries at once gets no more guesses than one after another.
func TestPassword_Burst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var mu sync.Mutex
	guessed := 0
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			if err := w.login("alice", "guess", "a"); errors.Is(err, ErrUnknownUser) {
				mu.Lock()
				guessed++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if guessed > freeTries+hashesAtOnce {
		t.Errorf("%d guesses at once", guessed)
	}
}

// With the signing key of the sample configuration anybody made tokens of an administrator
// (alibaba/nacos #10060, #7127, #13697); there is none here, each cluster makes its own.
func TestToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	alice, _ := w.accounts.User("alice")
	token := w.Token(alice)
	if got, err := w.Verify(token); err != nil || got != alice {
		t.Fatal(got, err)
	}
	parts := strings.Split(token, ".")
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`))
	other := base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"admin","exp":9999999999,"ver":"` + version(alice) + `"}`))
	for name, bad := range map[string]string{
		"empty": "", "dots": "...", "no signature": parts[0] + "." + parts[1] + ".", "alg none": none + "." + parts[1] + ".",
		"none with a signature": none + "." + parts[1] + "." + encode(sign(w.accounts.Key, none+"."+parts[1])),
		"other user":            parts[0] + "." + other + "." + parts[2],
		"sample key":            parts[0] + "." + parts[1] + "." + encode(sign("SecretKey012345678901234567890123456789012345678901234567890123456789", parts[0]+"."+parts[1])),
		"empty key":             parts[0] + "." + parts[1] + "." + encode(sign("", parts[0]+"."+parts[1])),
		"long":                  strings.Repeat("x", maxToken) + token,
	} {
		if _, err := w.Verify(bad); !errors.Is(err, ErrTokenInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.clock = w.clock.Add(DefaultTokenTTL)
	if _, err := w.Verify(token); !errors.Is(err, ErrTokenExpired) {
		t.Errorf("expired: %v", err)
	}
	token = w.Token(alice)
	w.set(t, "alice", "changed")
	if _, err := w.Verify(token); !errors.Is(err, ErrTokenInvalid) {
		t.Errorf("after a change of the password: %v", err)
	}
	w.accounts = &registry.Accounts{Users: w.accounts.Users}
	if _, err := w.Verify(token); !errors.Is(err, ErrTokenInvalid) || w.Token(alice) != "" {
		t.Errorf("without a key: %v", err)
	}
}

func TestCovers(t *testing.T) {
	t.Parallel()
	svc := func(namespace, grouped string) Resource {
		return Service(registry.ServiceKey{Namespace: namespace, Grouped: grouped})
	}
	for _, tc := range []struct {
		pattern string
		r       Resource
		want    bool
	}{
		{"*", svc("dev", "G@@a"), true}, {"*:*:*", svc("dev", "G@@a"), true}, {"*:*:*", Namespace(Any), true},
		{"dev:*:*", svc("dev", "G@@a"), true}, {"dev:*:*", svc("prod", "G@@a"), false}, {"dev:*:*", Namespace("dev"), true},
		{"dev:*:*", Namespace(Any), false}, {"dev:G:*", svc("dev", "G@@a"), true}, {"dev:G:*", svc("dev", "H@@a"), false},
		{"dev:G:*", Namespace("dev"), false}, {"dev:G:naming/a", svc("dev", "G@@a"), true}, {"dev:G:naming/a", svc("dev", "G@@ab"), false},
		{"dev:G:naming/a*", svc("dev", "G@@ab"), true}, {"dev:*:naming/a*", Namespace("dev"), false}, {"dev:*:naming/*", Namespace("dev"), true},
		{"dev:G:a", svc("dev", "G@@a"), false}, {"dev:G:config/*", svc("dev", "G@@a"), false},
		{":*:*", svc("public", "G@@a"), true}, {"public:*:*", svc("public", "G@@a"), true}, {":*:*", svc("dev", "G@@a"), false},
		{"", svc("public", "G@@a"), false}, {"dev", svc("dev", "G@@a"), false}, {"dev:G", svc("dev", "G@@a"), false},
		// names with colons
		{"dev:*:*", svc("dev:x", "G@@a"), false}, {"dev:G:H:*", svc("dev", "G:H@@a"), true}, {"dev:G:naming/a:b", svc("dev", "G@@a:b"), true},
		{"d*v:*:*", svc("dev", "G@@a"), true}, {"*d:*:*", svc("dev", "G@@a"), false},
	} {
		if got := Covers(tc.pattern, tc.r); got != tc.want {
			t.Errorf("%q covers %+v: %t", tc.pattern, tc.r, got)
		}
	}
}

func TestAllowed(t *testing.T) {
	t.Parallel()
	a := &registry.Accounts{
		Bindings:    []registry.RoleBinding{{Role: registry.RoleAdmin, User: "root"}, {Role: "dev", User: "alice"}, {Role: "watch", User: "bob"}},
		Permissions: []registry.Permission{{Role: "dev", Resource: "dev:*:*", Action: "rw"}, {Role: "watch", Resource: "dev:*:*", Action: "r"}},
	}
	dev := Namespace("dev")
	for _, tc := range []struct {
		user   string
		r      Resource
		action Action
		want   bool
	}{
		{"root", Namespace(Any), Write, true}, {"alice", dev, Write, true}, {"alice", Namespace("prod"), Read, false},
		{"bob", dev, Read, true}, {"bob", dev, Write, false}, {"nobody", dev, Read, false}, {"", dev, Read, false},
	} {
		if got := Allowed(a, tc.user, tc.r, tc.action); got != tc.want {
			t.Errorf("%s %c %+v: %t", tc.user, tc.action, tc.r, got)
		}
	}
}
