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
// the group. It asks for one page after the other. Errors: as for every request,
// *ServerError, ErrUnavailable or the context's.
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

// ServerStatus is what one server says of itself: "UP" when it serves. It asks in turn
// until one answers.
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
