package auth

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"github.com/rollcall-io/rollcall/registry"
)

// A star is any text, everything else is itself: regular expressions say the same.
func FuzzGlob(f *testing.F) {
	for _, seed := range [][2]string{{"*", ""}, {"a*b*c", "a1b2c"}, {"a*a", "a"}, {"**", "x"}, {"ab*", "a"}, {"*ab", "aab"}, {"a*ab", "aab"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 100 || len(text) > 100 {
			return
		}
		parts := strings.Split(pattern, "*")
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		want, err := regexp.Compile(`(?s)\A` + strings.Join(parts, ".*") + `\z`)
		if err != nil {
			return // not UTF-8
		}
		if got := glob(pattern, text); got != want.MatchString(text) {
			t.Errorf("glob(%q, %q) is %t", pattern, text, got)
		}
	})
}

// No text but one of ours is a token.
func FuzzVerify(f *testing.F) {
	accounts := &registry.Accounts{Key: strings.Repeat("k", 32)}
	a := New(Options{Accounts: func() *registry.Accounts { return accounts }, Cost: bcrypt.MinCost})
	hash, err := a.Hash(context.Background(), "secret")
	if err != nil {
		f.Fatal(err)
	}
	alice := registry.User{Name: "alice", Hash: hash}
	accounts.Users = []registry.User{alice}
	token := a.Token(alice)
	f.Add(token)
	f.Add(token[:len(token)-1])
	f.Add("a.b.c")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := a.Verify(text); err == nil && text != token {
			t.Errorf("%q is taken for a token", text)
		}
	})
}
