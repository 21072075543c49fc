package auth

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/rollcall-io/rollcall/registry"
)

// refusal is an error by its text, which clients see as it is.
type refusal string

// Error is the text.
func (r refusal) Error() string { return string(r) }

// Refusals, with the texts of Nacos 1.4.7.
var (
	// ErrUnknownUser says that no account proved itself: no credentials, no such user or
	// a wrong password, which are not told apart.
	ErrUnknownUser error = refusal("unknown user!")
	// ErrTokenInvalid says that a token was not made with the cluster's key, or for an
	// account or password that is no more.
	ErrTokenInvalid error = refusal("token invalid!")
	// ErrTokenExpired says that a token is too old.
	ErrTokenExpired error = refusal("token expired!")
	// ErrDenied says that the account may not do that.
	ErrDenied error = refusal("authorization failed!")
)

// LockedError refuses a login without looking at the password, after too many wrong ones.
type LockedError struct{ Wait time.Duration }

// Error says how long to wait, in whole seconds.
func (e *LockedError) Error() string {
	return fmt.Sprintf("too many failed logins, try again in %d s", (e.Wait+time.Second-1)/time.Second)
}

// Options of an Authority. Accounts is required.
type Options struct {
	// Accounts are the present accounts. It is called for every check and must be cheap.
	Accounts func() *registry.Accounts
	// TokenTTL is how long a token is good; 0 means DefaultTokenTTL.
	TokenTTL time.Duration
	// Cost is bcrypt's; 0 means its default.
	Cost int
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// DefaultTokenTTL is that of Nacos.
const DefaultTokenTTL = 18_000 * time.Second

const (
	// hashesAtOnce bounds how many passwords are hashed at a time: each takes a core for
	// tens of milliseconds. maxWaiting bounds those that wait for their turn.
	hashesAtOnce = 2
	maxWaiting   = 64
)

// Authority proves callers. Its methods are safe for concurrent use.
type Authority struct {
	accounts func() *registry.Accounts
	ttl      time.Duration
	cost     int
	now      func() time.Time

	waiting chan struct{}
	hashing chan struct{}
	dummy   func() []byte // a hash of no password, for users that are not there

	failed lockouts
	proven proven
}

// New makes an Authority.
func New(o Options) *Authority {
	if o.TokenTTL <= 0 {
		o.TokenTTL = DefaultTokenTTL
	}
	if o.Cost == 0 {
		o.Cost = bcrypt.DefaultCost
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	a := &Authority{accounts: o.Accounts, ttl: o.TokenTTL, cost: o.Cost, now: o.Now,
		waiting: make(chan struct{}, maxWaiting), hashing: make(chan struct{}, hashesAtOnce)}
	a.dummy = sync.OnceValue(func() []byte {
		hash, _ := bcrypt.GenerateFromPassword([]byte(rand.Text()), a.cost) // fails for long texts alone
		return hash
	})
	a.failed.init()
	a.proven.init()
	return a
}

// TokenTTL is how long a token is good.
func (a *Authority) TokenTTL() time.Duration { return a.ttl }

// MaxPassword is the longest password that bcrypt takes, in bytes.
const MaxPassword = 72

// Hash is the hash under which a password is kept. A password that is empty or too long is
// an ErrInvalid. It waits for its turn as Password does.
func (a *Authority) Hash(ctx context.Context, password string) (string, error) {
	if password == "" || len(password) > MaxPassword {
		return "", registry.Invalid("password", "", fmt.Sprintf("must have 1 to %d bytes", MaxPassword))
	}
	var hash []byte
	err := a.inTurn(ctx, func() (err error) {
		hash, err = bcrypt.GenerateFromPassword([]byte(password), a.cost)
		return err
	})
	if err != nil {
		return "", err
	}
	return string(hash), nil
}

// Password proves a user by a password that came from an address. The error is
// ErrUnknownUser, a *LockedError, or registry.ErrOverloaded when too many wait to be
// proven; it waits for its turn until ctx ends at most.
func (a *Authority) Password(ctx context.Context, user, password, address string) (registry.User, error) {
	address = place(address)
	if err := a.locked(user, address); err != nil {
		return registry.User{}, err
	}
	account, found := a.accounts().User(user)
	if found && a.proven.has(account, password) {
		return account, nil
	}
	hash := a.dummy()
	if found {
		hash = []byte(account.Hash)
	}
	right := false
	if err := a.inTurn(ctx, func() error {
		// Others with the same wrong password may have waited before this one.
		if err := a.locked(user, address); err != nil {
			return err
		}
		right = bcrypt.CompareHashAndPassword(hash, []byte(password)) == nil && found
		if !right {
			a.failed.add(user, address, a.now())
		}
		return nil
	}); err != nil {
		return registry.User{}, err
	}
	if !right {
		return registry.User{}, ErrUnknownUser
	}
	a.failed.forget(user, address)
	a.proven.add(account, password)
	return account, nil
}

// locked is a *LockedError while the user must wait at that address.
func (a *Authority) locked(user, address string) error {
	if wait := a.failed.wait(user, address, a.now()); wait > 0 {
		return &LockedError{wait}
	}
	return nil
}

// inTurn runs f when few others are at it.
func (a *Authority) inTurn(ctx context.Context, f func() error) error {
	select {
	case a.waiting <- struct{}{}:
	default:
		return registry.ErrOverloaded
	}
	defer func() { <-a.waiting }()
	select {
	case a.hashing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-a.hashing }()
	return f()
}
