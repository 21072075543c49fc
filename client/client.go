package client

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Client is what a process shares with a registry: registrations and their beats, followed
// services, connections. Make one with New for the whole process, end it with Close. It is
// safe for concurrent use; its zero value is not usable.
type Client struct {
	opts    Options
	http    *http.Client
	servers *servers
	login   *login
	metrics *metrics
	table   *table

	followers *followers
	streams   *streams
	push      *push
	disk      *disk // nil without Options.CacheDir
	failover  *failover

	closing atomic.Bool

	ctx    context.Context // of everything in the background
	cancel context.CancelFunc
	wg     sync.WaitGroup
	close  sync.Once
}

// New makes a client and starts its scheduler. It sends nothing, so it succeeds while no
// server answers. It blocks on reading CacheDir and FailoverDir alone. Errors:
// *InvalidError; that of the Registerer, when it has metrics of that name already; that of
// making CacheDir, an *fs.PathError.
func New(o Options) (*Client, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	servers, err := newServers(o.Servers)
	if err != nil {
		return nil, err
	}
	if o.Transport == nil {
		o.Transport = newTransport(o)
	}
	table := newTable(o.MaxInstances)
	c := &Client{
		opts: o, servers: servers, metrics: newMetrics(table), table: table,
		http: &http.Client{Transport: o.Transport, CheckRedirect: noRedirect},
	}
	c.login, c.followers, c.streams, c.push = newLogin(c), newFollowers(), newStreams(o.MaxStreams), newPush(c)
	c.ctx, c.cancel = context.WithCancel(context.Background())
	if err := c.open(); err != nil {
		c.cancel()
		return nil, err
	}
	c.startBeats(c.ctx)
	return c, nil
}

// open reads what is on disk, registers the metrics and starts the watch over the
// fail-over directory.
func (c *Client) open() (err error) {
	if c.opts.CacheDir != "" {
		if c.disk, err = openDisk(c.opts.CacheDir, c.opts.Namespace); err != nil {
			return err
		}
	}
	if err := c.metrics.register(c.opts.Registerer); err != nil {
		return err
	}
	if c.opts.FailoverDir != "" {
		c.failover = newFailover(c)
		c.failover.look()
		c.spawn(c.failover.run)
	}
	return nil
}

// noRedirect: a registry answers by itself, and a token goes nowhere else.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

const (
	// closeRounds bounds the deregistrations of Close in units of Options.Timeout.
	closeRounds = 3
	// closeGrace is how long subscribers' functions may take to return.
	closeGrace = 5 * time.Second
)

// Close deregisters the ephemeral instances of this client, saves lists to CacheDir, stops
// what runs in the background and waits for it. Persistent instances stay registered.
// Calls under way end with ErrClosed, and so do later ones.
//
// It blocks on the deregistrations: no longer than ctx, nor than Options.Timeout when no
// server answers, nor than three times that in any case. Then, whatever ctx says, on
// functions of subscribers, 5 s at most; so it must not be called from one. A second
// call waits for the first and returns nil.
//
// The error joins those of the deregistrations, as Deregister gives them, and says
// when a subscriber's function has not returned. What matches ErrPending was not taken
// out and is not tried again: it leaves lists by expiring.
func (c *Client) Close(ctx context.Context) error {
	var err error
	c.close.Do(func() {
		c.closing.Store(true)
		c.table.end()
		ctx, cancel := context.WithTimeout(ctx, closeRounds*c.opts.Timeout)
		defer cancel()
		err = c.leaveAll(ctx)
		c.followers.end()
		c.cancel()
		c.push.close()
		err = errors.Join(err, c.wait())
		c.http.CloseIdleConnections()
		c.metrics.unregister(c.opts.Registerer)
	})
	return err
}

func (c *Client) wait() error {
	done := make(chan struct{})
	go func() {
		c.wg.Wait()
		close(done)
	}()
	timer := time.NewTimer(closeGrace)
	defer timer.Stop()
	select {
	case <-done:
		return nil
	case <-timer.C:
		return errors.New("close: a subscriber's function has not returned")
	}
}

func (c *Client) leaveAll(ctx context.Context) error {
	var keys []Key
	for _, s := range c.Registrations() {
		if !s.Registration.Persistent && s.Registration.Service != "" {
			keys = append(keys, s.Registration.Key())
		}
	}
	err := c.DeregisterAll(ctx, keys)
	if errors.Is(err, ErrUnknown) && !errors.Is(err, ErrPending) {
		return nil // another call was faster
	}
	return err
}

// spawn runs f until it ends by the client's context; Close waits for it.
func (c *Client) spawn(f func()) { c.wg.Go(f) }
