package client

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
)

// namesPage is how many names one request asks for.
const namesPage = 500

// ServiceNames are the names of all services of a group, DefaultGroup when empty, without
// the group, in the server's order. It asks for one page of 500 after the other, of any
// server, and blocks for Options.Timeout at most over all of them; a service that comes or
// goes meanwhile may be missing, or be there twice, and a node may be a moment behind the
// one that took a registration. Errors: *ServerError, when a server
// refused; ErrUnavailable, with the context's when that ended it; ErrClosed.
func (c *Client) ServiceNames(ctx context.Context, group string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	var names []string
	for page := 1; ; page++ {
		r, err := c.do(ctx, call{op: "names", method: http.MethodGet, path: "/v1/ns/service/list", query: url.Values{
			"namespaceId": {c.opts.Namespace}, "groupName": {cmp.Or(group, DefaultGroup)},
			"pageNo": {strconv.Itoa(page)}, "pageSize": {strconv.Itoa(namesPage)},
		}})
		if err != nil {
			return nil, err
		}
		var answer struct {
			Count int
			Doms  []string
		}
		if err := json.Unmarshal(r.body, &answer); err != nil {
			return nil, unreadable("names", r, err)
		}
		names = append(names, answer.Doms...)
		if len(answer.Doms) < namesPage || len(names) >= answer.Count {
			return names, nil
		}
	}
}

// ServerStatus is what one server says of itself: "UP" when it serves, "DOWN" and the like
// otherwise. It asks each server once, until one answers, and blocks for Options.Timeout
// at most. Errors: as those of ServiceNames.
func (c *Client) ServerStatus(ctx context.Context) (string, error) {
	r, err := c.do(ctx, call{op: "status", method: http.MethodGet, path: "/v1/ns/operator/metrics", once: true})
	if err != nil {
		return "", err
	}
	var answer struct{ Status string }
	if err := json.Unmarshal(r.body, &answer); err != nil {
		return "", unreadable("status", r, err)
	}
	return answer.Status, nil
}
