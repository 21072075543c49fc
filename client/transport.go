package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	// maxAnswer bounds what is read of an answer: far above a list of 20,000 instances.
	maxAnswer = 64 << 20
	// maxErrorText is how much of a refusal is kept.
	maxErrorText = 512
	// maxQuery is the longest encoded query: some servers lose the form of a POST, all
	// bound the request line at 8 KiB or more.
	maxQuery = 4 << 10
	// firstPause and longestPause are between two rounds over all servers.
	firstPause   = 100 * time.Millisecond
	longestPause = time.Second
)

// call is one request as any server may answer it. All naming calls may be repeated.
type call struct {
	op     string
	method string
	path   string // below the context path
	query  url.Values
	form   url.Values // only for POST and PUT
	agent  string     // User-Agent other than the client's own
	once   bool       // one round over the servers instead of rounds until the deadline
	open   bool       // goes without a token
}

// reply is a success.
type reply struct {
	body  []byte
	index uint64 // X-Rollcall-Index; 0 where the server is another
	from  *server
}

// newTransport is one pool for everything that the client sends.
func newTransport(o Options) *http.Transport {
	dialer := &net.Dialer{Timeout: 2 * time.Second, KeepAlive: 15 * time.Second}
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         dialer.DialContext,
		TLSClientConfig:     o.TLS,
		TLSHandshakeTimeout: 3 * time.Second,
		MaxIdleConns:        256,
		MaxIdleConnsPerHost: max(16, o.BeatWorkers),
		IdleConnTimeout:     60 * time.Second, // below the servers' own
	}
}

// do asks servers in turn until one answers, over and over until the deadline unless the
// call says once. Errors: *ServerError when the answer is a refusal or rights are lacking,
// ErrClosed when Close is done with its own requests, otherwise ErrUnavailable with the
// last failure, which may be the context's.
func (c *Client) do(ctx context.Context, q call) (reply, error) {
	if c.ctx.Err() != nil {
		return reply{}, fmt.Errorf("%s: %w", q.op, ErrClosed)
	}
	if err := ctx.Err(); err != nil { // no server is to blame
		return reply{}, fmt.Errorf("%s: %w: %w", q.op, ErrUnavailable, err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	r, err := c.rounds(ctx, q)
	if err != nil && c.ctx.Err() != nil {
		return reply{}, fmt.Errorf("%s: %w", q.op, ErrClosed)
	}
	return r, err
}

// rounds is do's loop over all servers.
func (c *Client) rounds(ctx context.Context, q call) (reply, error) {
	var last error
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		for _, at := range c.servers.order() {
			r, err := c.ask(ctx, at, q)
			if err == nil || refused(err) {
				return r, err
			}
			if ctx.Err() == nil || last == nil {
				last = err // what ended by our own deadline says less than what came before
			}
			if ctx.Err() != nil {
				break
			}
		}
		if denied(last) {
			return reply{}, last // rights do not change within a call
		}
		if q.once || !c.pause(ctx, pause) {
			return reply{}, fmt.Errorf("%s: %w: %w", q.op, ErrUnavailable, last)
		}
	}
}

// pause waits between half of d and d; false when ctx ended.
func (c *Client) pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(jitter(d, 0.5))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// jitter is a random duration from d-share*d to d.
func jitter(d time.Duration, share float64) time.Duration {
	return d - time.Duration(rand.Float64()*share*float64(d))
}

// ask sends the call to one server, twice when the first time shows that the token is no
// longer good.
func (c *Client) ask(ctx context.Context, at *server, q call) (reply, error) {
	token, err := c.login.token(ctx, q.open)
	if err != nil {
		return reply{}, err
	}
	r, err := c.send(ctx, at, q, token)
	var e *ServerError
	if errors.As(err, &e) && (e.Status == http.StatusForbidden || e.Status == http.StatusUnauthorized) && token != "" {
		c.login.drop(ctx, token)
		if token, err = c.login.token(ctx, q.open); err != nil {
			return reply{}, err
		}
		r, err = c.send(ctx, at, q, token)
	}
	return r, err
}

// send is one request to one server; it keeps the server's mark and the metrics.
func (c *Client) send(ctx context.Context, at *server, q call, token string) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.AttemptTimeout)
	defer cancel()
	req, err := c.request(ctx, at, q, token)
	if err != nil {
		return reply{}, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if ctx.Err() == nil || errors.Is(ctx.Err(), context.DeadlineExceeded) {
			at.failed(time.Now())
		}
		c.metrics.request(q.op, "error")
		return reply{}, fmt.Errorf("%s at %s: %w", q.op, at.base, withoutURL(err))
	}
	defer resp.Body.Close()
	c.metrics.request(q.op, strconv.Itoa(resp.StatusCode))
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case resp.StatusCode != http.StatusOK:
		if resp.StatusCode >= 500 && resp.StatusCode != http.StatusGatewayTimeout {
			at.failed(time.Now())
		}
		return reply{}, &ServerError{Op: q.op, Server: at.base, Status: resp.StatusCode, Text: errorText(body)}
	case err != nil:
		at.failed(time.Now())
		return reply{}, fmt.Errorf("%s at %s: %w", q.op, at.base, err)
	case len(body) > maxAnswer:
		return reply{}, fmt.Errorf("%s at %s: answer over %d bytes", q.op, at.base, maxAnswer)
	}
	at.works()
	index, _ := strconv.ParseUint(resp.Header.Get("X-Rollcall-Index"), 10, 64)
	return reply{body: body, index: index, from: at}, nil
}

func (c *Client) request(ctx context.Context, at *server, q call, token string) (*http.Request, error) {
	target := at.base + c.opts.ContextPath + q.path
	query, form := q.query.Encode(), q.form.Encode()
	if (q.method == http.MethodPost || q.method == http.MethodPut) && len(query) > maxQuery {
		query, form = "", strings.Trim(query+"&"+form, "&")
	}
	if query != "" {
		target += "?" + query
	}
	var body io.Reader
	if form != "" {
		body = strings.NewReader(form)
	}
	req, err := http.NewRequestWithContext(ctx, q.method, target, body)
	if err != nil {
		return nil, err
	}
	if form != "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	c.headers(req, q.agent, token)
	return req, nil
}

func (c *Client) headers(req *http.Request, agent, token string) {
	def(&agent, c.opts.UserAgent)
	req.Header.Set("User-Agent", agent)
	req.Header.Set("Client-Version", "rollcall-go:v"+Version)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
}

// unreadable is the error of a success that says nothing.
func unreadable(op string, r reply, err error) error {
	return fmt.Errorf("%s at %s: %w: %w", op, r.from.base, ErrUnavailable, err)
}

// withoutURL takes the address, whose query may be long, off an error of net/http.
func withoutURL(err error) error {
	var e *url.Error
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

func errorText(body []byte) string {
	return strings.ToValidUTF8(strings.TrimSpace(string(body[:min(len(body), maxErrorText)])), "?")
}
