package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"time"
)

// login keeps the token that all calls share.
type login struct {
	c    *Client
	turn chan struct{} // held by who logs in, so that one does it for all

	// Guarded by turn.
	current string
	renewAt time.Time
	failed  error // of the last login; not repeated before renewAt
}

const (
	opLogin = "login"
	// loginPause is after a login that failed: thousands of beats must not each try one.
	loginPause = 5 * time.Second
)

func newLogin(c *Client) *login { return &login{c: c, turn: make(chan struct{}, 1)} }

// token is the present token, after a login when there is none or it is 90 % old; empty
// when the client has no user. It blocks on the login of one server after the other.
func (l *login) token(ctx context.Context, open bool) (string, error) {
	if l.c.opts.Username == "" || open {
		return "", nil
	}
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if time.Now().Before(l.renewAt) {
		return l.current, l.failed
	}
	token, ttl, err := l.ask(ctx)
	if err == nil {
		l.current, l.failed, l.renewAt = token, nil, time.Now().Add(ttl-ttl/10)
		return token, nil
	}
	if l.current != "" && !refused(err) {
		// Until its end the old one is good: ask again a little later.
		l.renewAt = time.Now().Add(loginPause)
		return l.current, nil
	}
	l.current = ""
	if refused(err) {
		l.failed, l.renewAt = err, time.Now().Add(loginPause)
	}
	return "", err
}

// drop forgets a token that a server refused, unless it is another by now. Who has no time
// to wait for a login that is under way leaves that to the next who is refused.
func (l *login) drop(ctx context.Context, token string) {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return
	}
	if l.current == token {
		l.current, l.renewAt = "", time.Time{}
	}
	<-l.turn
}

func (l *login) ask(ctx context.Context) (token string, ttl time.Duration, err error) {
	r, err := l.c.do(ctx, call{
		op: opLogin, method: http.MethodPost, path: "/v1/auth/users/login", open: true, once: true,
		form: url.Values{"username": {l.c.opts.Username}, "password": {l.c.opts.Password}},
	})
	if err != nil {
		return "", 0, err
	}
	var answer struct {
		AccessToken string
		TokenTTL    int64 // seconds
	}
	if err := json.Unmarshal(r.body, &answer); err != nil || answer.AccessToken == "" {
		return "", 0, unreadable(opLogin, r, errors.New("an answer without a token"))
	}
	return answer.AccessToken, time.Duration(max(answer.TokenTTL, 1)) * time.Second, nil
}
