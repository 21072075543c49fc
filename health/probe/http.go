package probe

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"github.com/rollcall-io/rollcall/registry"
)

// maxHeaderBytes bounds what a probed host may send before its body.
const maxHeaderBytes = 16 << 10

// HTTP sends a GET and succeeds when the answer has the expected status: the settings'
// ExpectedCode, 200 when that is 0. As in Nacos 1.4.7 (HttpHealthCheckProcessor) a 302 or a
// 503 only counts, since a host that is busy or starting says that, while any other status
// and a refused connection are a clear no. Nacos stores the expected code and compares
// with 200 all the same; here it is compared.
type HTTP struct{ client *http.Client }

// NewHTTP makes the checker. Each probe has a connection of its own, ends before the body
// of the answer, and follows no redirect; proxies of the environment are not used.
func NewHTTP() *HTTP {
	return &HTTP{client: &http.Client{
		Transport: &http.Transport{
			DialContext:            (&net.Dialer{}).DialContext,
			DisableKeepAlives:      true,
			DisableCompression:     true,
			MaxResponseHeaderBytes: maxHeaderBytes,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Check asks address, host:port, for the settings' path with their headers.
func (h *HTTP) Check(ctx context.Context, address string, settings registry.Checker) Outcome {
	req, err := request(ctx, address, settings)
	if err != nil {
		return Down // settings that make no request: only an operator can change that
	}
	resp, err := h.client.Do(req)
	if err != nil {
		return failure(err)
	}
	_ = resp.Body.Close() // not read
	want := settings.ExpectedCode
	if want == 0 {
		want = http.StatusOK
	}
	switch resp.StatusCode {
	case want:
		return Up
	case http.StatusFound, http.StatusServiceUnavailable:
		return Down
	}
	return Refused
}

// request makes the GET. The path may hold a query; headers are `name:value|name:value`,
// among which Host names the virtual host.
func request(ctx context.Context, address string, settings registry.Checker) (*http.Request, error) {
	target, err := url.Parse("http://" + address + "/" + strings.TrimPrefix(settings.Path, "/"))
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "rollcall-probe")
	for header := range strings.SplitSeq(settings.Headers, "|") {
		name, value, found := strings.Cut(header, ":")
		if name = strings.TrimSpace(name); !found || name == "" {
			continue
		}
		if value = strings.TrimSpace(value); strings.EqualFold(name, "Host") {
			req.Host = value
		} else {
			req.Header.Set(name, value)
		}
	}
	return req, nil
}

// failure is the outcome of a connection that failed: refused counts at once, all else
// (timeouts, resets, names that are not found) only in a row.
func failure(err error) Outcome {
	if errors.Is(err, syscall.ECONNREFUSED) {
		return Refused
	}
	return Down
}
