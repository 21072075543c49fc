package client

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// switchFile turns the lists of the fail-over directory on (1) and off (anything else).
const switchFile = "switch"

// failover watches over the fail-over directory.
type failover struct {
	c *Client

	mu    sync.Mutex
	on    bool
	lists map[followKey]wireList
}

func newFailover(c *Client) *failover { return &failover{c: c} }

func (o *failover) run() {
	ticker := time.NewTicker(o.c.opts.FailoverInterval)
	defer ticker.Stop()
	for {
		select {
		case <-o.c.ctx.Done():
			return
		case <-ticker.C:
			o.look()
		}
	}
}

// look reads the switch, and the lists while it is on.
func (o *failover) look() {
	b, err := os.ReadFile(filepath.Join(o.c.opts.FailoverDir, switchFile))
	on := err == nil && strings.TrimSpace(string(b)) == "1"
	var lists map[followKey]wireList
	if on {
		lists = readLists(namespaceDir(o.c.opts.FailoverDir, o.c.opts.Namespace))
	}
	o.mu.Lock()
	if on != o.on {
		o.c.opts.Logger.Warn("fail-over lists switched", "on", on, "lists", len(lists))
	}
	changed := on || o.on
	o.on, o.lists = on, lists
	o.mu.Unlock()
	if !changed {
		return
	}
	for _, f := range o.c.followers.named(ServiceName{}) {
		f.pin(o.pinned(f))
	}
}

// pinned is the list that counts for a follower, nil when there is none.
func (o *failover) pinned(f *follower) *Snapshot {
	o.mu.Lock()
	defer o.mu.Unlock()
	l, known := o.lists[f.key]
	if !known {
		return nil
	}
	return snapshotOf(l, f, FromFailover)
}
