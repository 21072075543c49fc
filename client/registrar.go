package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// RegistrarOptions say how a process takes part in the registry. Only Registrations is
// needed. Functions are called one at a time; they must not call Start or Stop of the same
// Registrar, which would wait for themselves.
type RegistrarOptions struct {
	// Registrations are what the process offers.
	Registrations []Registration
	// FailFast makes Start fail, and take back everything, when a registration is not
	// acknowledged. Otherwise the process goes on and is registered in the background;
	// what a server refuses for good is an error of Start in any case.
	FailFast bool
	// Drain is how long Stop waits after the deregistration, for callers that have an old
	// list; not at all when 0. Callers that hear of changes by a watch or a push need a
	// second, those that poll up to ten.
	Drain time.Duration
	// Health, if not nil, is asked before the registration and every HealthInterval (5 s
	// when 0): while it returns an error, the process is registered as Disabled, so that
	// it gets no traffic. Its context ends after the interval; no answer until then is an
	// error too, and it is not asked again before that call has returned.
	Health         func(context.Context) error
	HealthInterval time.Duration
	// Registered is called by Start when it succeeds, with nil, or an error that matches
	// ErrPending when the registrations go on in the background. Deregistered is called by
	// Stop before the drain time, with the error of DeregisterAll. Both may be nil.
	Registered, Deregistered func(error)
}

// Registrar ties registrations to the life of a process: in when it serves, out before it
// ends. Client.ListenAndServe does all of it for an HTTP server; this is for the others.
// It is safe for concurrent use: Start and Stop wait for one another.
type Registrar struct {
	c    *Client
	opts RegistrarOptions

	turn   chan struct{} // held by Start and Stop
	probe  chan error    // the answer of a Health that is under way, nil when none is
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu      sync.Mutex
	running bool
	sick    bool
}

// NewRegistrar makes a Registrar over a client, which it does not close, and checks the
// options. It sends nothing and does not block. Errors: *InvalidError.
func NewRegistrar(c *Client, o RegistrarOptions) (*Registrar, error) {
	if len(o.Registrations) == 0 {
		return nil, invalid("Registrations", "", "must not be empty")
	}
	def(&o.HealthInterval, 5*time.Second)
	if o.Drain != 0 && o.Drain < leastDuration {
		return nil, invalid("Drain", o.Drain.String(), tooShort)
	}
	if o.HealthInterval < leastDuration {
		return nil, invalid("HealthInterval", o.HealthInterval.String(), tooShort)
	}
	rs := make([]Registration, 0, len(o.Registrations))
	for _, r := range o.Registrations {
		r, err := r.normal()
		if err != nil {
			return nil, err
		}
		rs = append(rs, r)
	}
	o.Registrations = rs
	return &Registrar{c: c, opts: o, turn: make(chan struct{}, 1)}, nil
}

// Running tells whether Start succeeded and no Stop has taken the registrations back since.
// It does not block.
func (r *Registrar) Running() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running
}

// Start registers; call it once the listener is open. It waits for Health, one
// HealthInterval at most, and for the servers as RegisterAll does. When it fails it takes
// back what was registered, for which it waits another second. Starting twice does
// nothing; after Stop it may be started again.
//
// Errors are those of RegisterAll that do not match ErrPending, with FailFast those too;
// and the context's when it ended while another Start or Stop was under way.
func (r *Registrar) Start(ctx context.Context) error {
	if err := r.take(ctx); err != nil {
		return err
	}
	defer r.release()
	if r.Running() {
		return nil
	}
	r.sick = r.healthError(ctx) != nil
	errs := r.c.registerEach(ctx, r.registrations())
	err := errors.Join(errs...)
	if err != nil && (r.opts.FailFast || !onlyPending(errs)) {
		r.withdraw()
		return fmt.Errorf("start: %w", err)
	}
	background, cancel := context.WithCancel(r.c.ctx)
	r.cancel = cancel
	if r.opts.Health != nil {
		r.done.Go(func() { r.watchHealth(background) })
	}
	r.mu.Lock()
	r.running = true
	r.mu.Unlock()
	if r.opts.Registered != nil {
		r.opts.Registered(err)
	}
	return nil
}

// withdraw takes back a start that failed, as far as servers can be reached soon; the
// rest goes on in the background.
func (r *Registrar) withdraw() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.c.ctx), time.Second)
	defer cancel()
	_ = r.c.DeregisterAll(ctx, r.keys()) // what failed is repeated by the table
}

// Stop deregisters, then waits for the drain time while callers turn elsewhere: requests
// should still be served until it returns. It blocks as DeregisterAll does, and then for
// Drain; ctx ends both. Stopping twice does nothing.
//
// The error joins those of DeregisterAll, and the context's when it cut the drain time
// short. In any case the Registrar is stopped afterwards, except when ctx ended while
// another Start or Stop was under way.
func (r *Registrar) Stop(ctx context.Context) error {
	if err := r.take(ctx); err != nil {
		return err
	}
	defer r.release()
	if !r.Running() {
		return nil
	}
	r.cancel()
	r.done.Wait()
	err := r.c.DeregisterAll(ctx, r.keys())
	r.mu.Lock()
	r.running = false
	r.mu.Unlock()
	if r.opts.Deregistered != nil {
		r.opts.Deregistered(err)
	}
	timer := time.NewTimer(r.opts.Drain)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		err = errors.Join(err, ctx.Err())
	}
	return err
}

func (r *Registrar) take(ctx context.Context) error {
	select {
	case r.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *Registrar) release() { <-r.turn }

func (r *Registrar) registrations() []Registration {
	rs := make([]Registration, 0, len(r.opts.Registrations))
	for _, reg := range r.opts.Registrations {
		reg.Disabled = reg.Disabled || r.sick
		rs = append(rs, reg)
	}
	return rs
}

func (r *Registrar) keys() []Key {
	keys := make([]Key, 0, len(r.opts.Registrations))
	for _, reg := range r.opts.Registrations {
		keys = append(keys, reg.Key())
	}
	return keys
}

// healthError asks Health and waits for one interval at most, also for one that does not
// look at its context. That counts as sick, and is not asked again before it has answered.
func (r *Registrar) healthError(ctx context.Context) error {
	if r.opts.Health == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.opts.HealthInterval)
	defer cancel()
	if r.probe == nil {
		answer := make(chan error, 1)
		go func() { answer <- r.opts.Health(ctx) }() // ends with Health
		r.probe = answer
	}
	select {
	case err := <-r.probe:
		r.probe = nil
		return err
	case <-ctx.Done():
		return fmt.Errorf("health: no answer: %w", ctx.Err())
	}
}

// watchHealth registers the process anew whenever its health changes.
func (r *Registrar) watchHealth(ctx context.Context) {
	ticker := time.NewTicker(r.opts.HealthInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		err := r.healthError(ctx)
		if ctx.Err() != nil || (err != nil) == r.sick {
			continue
		}
		r.sick = err != nil
		r.c.opts.Logger.Warn("health changed", "sick", r.sick, "error", err)
		if errs := r.c.registerEach(ctx, r.registrations()); !onlyPending(errs) {
			r.c.opts.Logger.Error("registration with other health", "error", errors.Join(errs...))
			r.sick = !r.sick // once more at the next look
		}
	}
}

// onlyPending tells whether everything that failed goes on in the background.
func onlyPending(errs []error) bool {
	return !slices.ContainsFunc(errs, func(err error) bool { return err != nil && !errors.Is(err, ErrPending) })
}
