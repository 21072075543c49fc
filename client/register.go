package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

const (
	pathInstance = "/v1/ns/instance"
	pathBeat     = pathInstance + "/beat"
	// codeUnknown is a beat's answer for an instance that is not there.
	codeUnknown = 20404
)

// Register makes an instance known and keeps it so: beats go out from now on, until
// Deregister or Close. Registering a key again replaces its values as a whole.
//
// It waits for a server's "ok", at rollcall: committed on a majority and visible at the
// node that answered. That takes Options.Timeout at most, and as much again while another
// call or a beat for the same key is under way.
//
// Errors. Those that match ErrPending mean that the instance is wanted, and registered in
// the background as soon as a server takes it, however long that takes. All others leave
// everything as it was, the values that were registered before included: *InvalidError, a
// *ServerError that is Refused (a wrong password is), ErrClosed, and the context's alone
// when it ended while another call for the key was under way.
func (c *Client) Register(ctx context.Context, r Registration) error {
	r, err := r.normal()
	if err != nil {
		return err
	}
	e, old, err := c.table.want(ctx, r)
	if err != nil {
		return fmt.Errorf("register %s: %w", r.Key(), err)
	}
	defer e.release()
	if err = c.sendRegister(ctx, r, false); refused(err) {
		c.table.refuse(e, old)
		return err
	}
	c.settleRegister(e, err)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrPending, err)
	}
	return nil
}

// Update replaces the values of an instance that this client has registered: weight,
// metadata, Disabled. What is left out gets its default, it is not kept. It blocks and
// fails like Register, and with ErrUnknown for a key that is not registered here.
func (c *Client) Update(ctx context.Context, r Registration) error {
	r, err := r.normal()
	if err != nil {
		return err
	}
	c.table.mu.Lock()
	e := c.table.entries[r.Key()]
	known := e != nil && !e.leaving
	c.table.mu.Unlock()
	if !known {
		return fmt.Errorf("update %s: %w", r.Key(), ErrUnknown)
	}
	return c.Register(ctx, r)
}

// Deregister takes an instance out. A beat that is on its way is awaited first, so that
// none arrives afterwards and brings the instance back. Then it waits for a server's "ok";
// each of both takes Options.Timeout at most. A registration that is still pending is
// given up.
//
// Errors: *InvalidError. ErrUnknown: the key is not registered here. ErrPending: it goes
// on in the background, until a server takes it or, for an ephemeral instance, two delete
// timeouts have passed, after which it has expired. A *ServerError that is Refused: the
// server knows no such instance, and neither does this client any more.
func (c *Client) Deregister(ctx context.Context, k Key) error {
	k, err := k.normal()
	if err != nil {
		return err
	}
	e := c.table.leave(k)
	if e == nil {
		return fmt.Errorf("deregister %s: %w", k, ErrUnknown)
	}
	if err := e.take(ctx); err != nil {
		c.table.mu.Lock()
		c.table.schedule(e, retryFirst)
		c.table.mu.Unlock()
		return fmt.Errorf("deregister %s: %w: %w", k, ErrPending, err)
	}
	defer e.release()
	c.table.mu.Lock()
	want, changed := e.want, e.gone || !e.leaving
	c.table.mu.Unlock()
	if changed {
		return nil // another call has done it, or registers it again
	}
	err = c.sendDeregister(ctx, want, false)
	c.settleLeaving(e, err)
	if err != nil && !refused(err) {
		return fmt.Errorf("%w: %w", ErrPending, err)
	}
	return err
}

// State is how far a registration has got.
type State struct {
	Registration Registration // defaults filled in; do not change its Metadata
	Registered   bool         // a server has acknowledged these values
	Leaving      bool         // to be deregistered
	Failures     int          // of beats, registrations or deregistrations, in a row
}

// Registrations are all instances of this client, in no order, those included that wait to
// be deregistered. It does not block.
func (c *Client) Registrations() []State {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	all := make([]State, 0, len(c.table.entries))
	for _, e := range c.table.entries {
		all = append(all, State{e.want, e.registered, e.leaving, e.failures})
	}
	return all
}

func (c *Client) sendRegister(ctx context.Context, r Registration, once bool) error {
	q := c.identity(r)
	q.Set("weight", strconv.FormatFloat(r.Weight, 'g', -1, 64))
	q.Set("enable", strconv.FormatBool(!r.Disabled))
	q.Set("enabled", strconv.FormatBool(!r.Disabled))
	q.Set("healthy", "true")
	q.Set("ephemeral", strconv.FormatBool(!r.Persistent))
	q.Set("metadata", metadataText(r.Metadata))
	return c.sendOK(ctx, call{op: "register", method: http.MethodPost, path: pathInstance, query: q, once: once})
}

func (c *Client) sendDeregister(ctx context.Context, r Registration, once bool) error {
	q := c.identity(r)
	q.Set("ephemeral", strconv.FormatBool(!r.Persistent))
	return c.sendOK(ctx, call{op: "deregister", method: http.MethodDelete, path: pathInstance, query: q, once: once})
}

// sendOK is for calls whose only good answer is "ok".
func (c *Client) sendOK(ctx context.Context, q call) error {
	r, err := c.do(ctx, q)
	if err == nil && string(r.body) != "ok" {
		err = &ServerError{Op: q.op, Server: r.from.base, Status: http.StatusBadGateway, Text: errorText(r.body)}
	}
	return err
}

// identity are the parameters that name an instance.
func (c *Client) identity(r Registration) url.Values {
	return url.Values{
		"namespaceId": {c.opts.Namespace}, "serviceName": {r.Key().service().String()}, "groupName": {r.Group},
		"clusterName": {r.Cluster}, "ip": {r.IP}, "port": {strconv.Itoa(r.Port)},
	}
}

func metadataText(m map[string]string) string {
	if len(m) == 0 {
		return "{}"
	}
	b, _ := json.Marshal(m) // texts only: it cannot fail
	return string(b)
}

// beatAnswer is what a server says to a beat; the interval is in milliseconds.
type beatAnswer struct {
	ClientBeatInterval int64
	Code               int
	LightBeatEnabled   bool
}

func (c *Client) sendBeat(ctx context.Context, r Registration, light bool) (answer beatAnswer, err error) {
	q := call{op: "beat", method: http.MethodPut, path: pathBeat, query: c.identity(r), once: true}
	if !light {
		b, _ := json.Marshal(map[string]any{ // texts and numbers only: it cannot fail
			"ip": r.IP, "port": r.Port, "weight": r.Weight, "serviceName": r.Key().service().String(),
			"cluster": r.Cluster, "metadata": orEmpty(r.Metadata), "scheduled": true, "ephemeral": true,
		})
		q.form = url.Values{"beat": {string(b)}}
	}
	reply, err := c.do(ctx, q)
	if err != nil {
		return answer, err
	}
	if err := json.Unmarshal(reply.body, &answer); err != nil {
		return answer, unreadable("beat", reply, err)
	}
	return answer, nil
}

func orEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}
