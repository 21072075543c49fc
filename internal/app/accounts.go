package app

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"time"

	"github.com/rollcall-io/rollcall/auth"
	"github.com/rollcall-io/rollcall/registry"
)

// firstAccount is the administrator that the first start with accounts makes.
const firstAccount = "admin"

// setUpEvery is how often a node looks whether the accounts are set up.
const setUpEvery = 200 * time.Millisecond

// authOptions are those of the node's Authority.
func (n *Node) authOptions() auth.Options {
	return auth.Options{Accounts: n.state.Accounts, TokenTTL: n.opts.AuthTokenTTL}
}

// setUpAccounts makes the key that signs tokens and the first account, unless the cluster
// has them. Every node tries once it is ready; one of them wins, and prints the password
// to standard output, once. It is never logged.
func (n *Node) setUpAccounts(ctx context.Context) error {
	password := rand.Text()
	hash, err := n.authority.Hash(ctx, password)
	if err != nil {
		return nil // ctx ended
	}
	first := registry.AuthInit{Key: auth.NewKey(), Admin: registry.User{Name: firstAccount, Hash: hash}}
	ticker := time.NewTicker(setUpEvery)
	defer ticker.Stop()
	for {
		// Asked only when this node has caught up: before, the accounts may just not be here.
		if n.raft.Ready() == nil {
			if n.state.Accounts().Key == "" {
				// Whatever comes of it shows in the state, now or at a later round: a refusal is
				// another node's success, and what is uncertain is tried again as the same.
				if _, err := n.raft.Propose(ctx, first); err != nil {
					n.log.Debug("accounts are not set up yet", "err", err)
				}
			}
			if accounts := n.state.Accounts(); accounts.Key != "" {
				if accounts.Key == first.Key {
					n.announce(password)
				}
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// announce prints the first password where its operator looks, and not into the log.
func (n *Node) announce(password string) {
	to := n.opts.Stdout
	if to == nil {
		to = os.Stdout
	}
	text := fmt.Sprintf("rollcall made the account %s. Its password, shown only this once: %s\n", firstAccount, password)
	if _, err := to.Write([]byte(text)); err != nil {
		n.log.Error("the first password could not be printed; start once without --auth and set another", "err", err)
		return
	}
	n.log.Info("account made; its password is on standard output", "user", firstAccount)
}
