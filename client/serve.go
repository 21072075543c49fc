package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/signal"
	"syscall"
	"time"
)

const (
	// shutdownTimeout bounds how long requests that are under way may take at the end.
	shutdownTimeout = 10 * time.Second
	// leaveSlack is beyond the time of a deregistration that nobody answers, so that the
	// drain time is whole after that.
	leaveSlack = time.Second
)

// ListenAndServe runs an HTTP server as a part of the registry: it listens at server.Addr
// (a free port of all addresses when empty), serves, registers, and waits for ctx to end or for
// SIGTERM or SIGINT. Then it deregisters, goes on serving for the drain time, and shuts the
// server down: requests that are under way have 10 s, then they are cut off. The client
// stays open.
//
// It blocks until then: after the end of ctx or the signal, for Options.Timeout, Drain and
// 11 s at most. The two signals do nothing else meanwhile, a second one neither.
//
// In o, a registration without a Port gets the listener's, and one without an IP the
// address that the listener is bound to, or when that is all of them the one from which
// this host reaches the registry.
//
// The error is nil after an orderly end. Otherwise it joins those of listening,
// NewRegistrar, Registrar.Start, serving, Registrar.Stop and http.Server.Shutdown. A
// deregistration that did not get through matches ErrPending; Close tries it once more.
func (c *Client) ListenAndServe(ctx context.Context, server *http.Server, o RegistrarOptions) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	ln, err := net.Listen("tcp", server.Addr)
	if err != nil {
		return err
	}
	if err := c.locate(&o, ln.Addr()); err != nil {
		return errors.Join(err, ln.Close())
	}
	registrar, err := NewRegistrar(c, o)
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }() // awaited below, on every way out
	err = registrar.Start(ctx)
	ended := false
	if err == nil {
		select {
		case <-ctx.Done():
		case err = <-served:
			ended = true
		}
	}
	err = errors.Join(err, c.wayDown(context.WithoutCancel(ctx), server, registrar))
	if !ended {
		if e := <-served; !errors.Is(e, http.ErrServerClosed) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// wayDown deregisters, drains and shuts down, each with time of its own: a registry that
// does not answer takes none from the requests that are under way.
func (c *Client) wayDown(ctx context.Context, server *http.Server, r *Registrar) error {
	leave, cancel := context.WithTimeout(ctx, c.opts.Timeout+leaveSlack+r.opts.Drain)
	defer cancel()
	err := r.Stop(leave)
	end, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	if late := server.Shutdown(end); late != nil {
		err = errors.Join(err, late, server.Close())
	}
	return err
}

// locate fills the address of registrations that have none.
func (c *Client) locate(o *RegistrarOptions, at net.Addr) error {
	tcp, is := at.(*net.TCPAddr)
	if !is {
		return fmt.Errorf("listening at %s, which is no TCP address", at)
	}
	rs := append([]Registration(nil), o.Registrations...)
	for n := range rs {
		def(&rs[n].Port, tcp.Port)
		if rs[n].IP == "" && !tcp.IP.IsUnspecified() {
			rs[n].IP = tcp.IP.String()
		}
		if rs[n].IP == "" {
			rs[n].IP = c.localIP()
		}
	}
	o.Registrations = rs
	return nil
}
