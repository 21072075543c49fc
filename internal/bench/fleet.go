package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// answerTimeout is above the server's own deadline of a write.
const answerTimeout = 10 * time.Second

// fleet sends the requests of a run's instances.
type fleet struct {
	opts   Options
	client *http.Client
	token  string // of the login, if there was one
}

func newFleet(o Options) *fleet {
	perNode := o.Conns/len(o.Addrs) + 1
	return &fleet{opts: o, client: &http.Client{
		Timeout:   answerTimeout,
		Transport: &http.Transport{MaxIdleConns: 2 * o.Conns, MaxIdleConnsPerHost: 2 * perNode, MaxConnsPerHost: 2 * perNode},
	}}
}

func (f *fleet) close() { f.client.CloseIdleConnections() }

func (f *fleet) service(i int) string {
	return f.opts.Prefix + "-" + strconv.Itoa(i/instancesPerService)
}

// query names instance i.
func (f *fleet) query(i int) string {
	return fmt.Sprintf("serviceName=%s&ip=10.%d.%d.%d&port=8080&clusterName=DEFAULT", f.service(i), i>>16&255, i>>8&255, i&255)
}

// do sends one request about instance i to a node and checks its answer.
func (f *fleet) do(ctx context.Context, op string, i, node int) error {
	switch op {
	case "register", "reregister":
		return f.expect(ctx, http.MethodPost, node, "/instance?"+f.query(i), "ok")
	case "beat", "live":
		return f.expect(ctx, http.MethodPut, node, "/instance/beat?"+f.query(i), `"code":10200`)
	case "deregister":
		return f.expect(ctx, http.MethodDelete, node, "/instance?"+f.query(i), "ok")
	default:
		return f.expect(ctx, http.MethodGet, node, "/instance/list?healthyOnly=true&serviceName="+f.service(i), `"hosts":[{`)
	}
}

func (f *fleet) expect(ctx context.Context, method string, node int, path, want string) error {
	status, body, _, err := f.call(ctx, method, node, path)
	if err != nil {
		return err
	}
	if status != http.StatusOK || !strings.Contains(body, want) {
		return fmt.Errorf("%s answered %d %.120s", f.opts.Addrs[node%len(f.opts.Addrs)], status, body)
	}
	return nil
}

func (f *fleet) call(ctx context.Context, method string, node int, path string) (int, string, http.Header, error) {
	target := "http://" + f.opts.Addrs[node%len(f.opts.Addrs)] + "/nacos/v1/ns" + path
	req, err := http.NewRequestWithContext(ctx, method, target, nil)
	if err != nil {
		return 0, "", nil, err
	}
	if f.token != "" {
		req.Header.Set("Authorization", "Bearer "+f.token)
	}
	resp, err := f.client.Do(req)
	if err != nil {
		return 0, "", nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), resp.Header, err
}

// login gets a token, which every node takes, if there is a user.
func (f *fleet) login(ctx context.Context) error {
	if f.opts.User == "" {
		return nil
	}
	form := url.Values{"username": {f.opts.User}, "password": {f.opts.Password}}.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+f.opts.Addrs[0]+"/nacos/v1/auth/login", strings.NewReader(form))
	if err != nil {
		return fmt.Errorf("log in at %s: %w", f.opts.Addrs[0], err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := f.client.Do(req)
	if err != nil {
		return fmt.Errorf("log in at %s: %w (is a node running there?)", f.opts.Addrs[0], err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("log in at %s: %w", f.opts.Addrs[0], err)
	}
	var answer struct{ AccessToken string }
	if err := json.Unmarshal(body, &answer); err != nil || answer.AccessToken == "" {
		return fmt.Errorf("log in at %s as %s: answered %d %.120s", f.opts.Addrs[0], f.opts.User, resp.StatusCode, body)
	}
	f.token = answer.AccessToken
	return nil
}

// index is the highest applied index that any node tells.
func (f *fleet) index(ctx context.Context) (uint64, error) {
	var highest uint64
	for node := range f.opts.Addrs {
		status, body, header, err := f.call(ctx, http.MethodGet, node, "/instance/list?serviceName="+f.service(0))
		switch {
		case err != nil:
			return 0, fmt.Errorf("ask %s: %w (is a node running there?)", f.opts.Addrs[node], err)
		case status == http.StatusForbidden:
			return 0, fmt.Errorf("%s wants an account with the permission for this: name one with --user and put its password into ROLLCALL_PASSWORD", f.opts.Addrs[node])
		case status != http.StatusOK:
			return 0, fmt.Errorf("%s answered %d %.120s", f.opts.Addrs[node], status, body)
		}
		at, err := strconv.ParseUint(header.Get("X-Rollcall-Index"), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s does not tell its index: is it a rollcall node?", f.opts.Addrs[node])
		}
		highest = max(highest, at)
	}
	return highest, nil
}

// missing is how many of the run's instances a node does not show as healthy.
func (f *fleet) missing(ctx context.Context, node int) (int, error) {
	missing := 0
	for first := 0; first < f.opts.Instances; first += instancesPerService {
		_, body, _, err := f.call(ctx, http.MethodGet, node, "/instance/list?healthyOnly=true&serviceName="+f.service(first))
		if err != nil {
			return 0, err
		}
		var list struct{ Hosts []struct{ Healthy bool } }
		if err := json.Unmarshal([]byte(body), &list); err != nil {
			return 0, fmt.Errorf("list of %s: %w", f.service(first), err)
		}
		healthy := 0
		for _, h := range list.Hosts {
			if h.Healthy {
				healthy++
			}
		}
		missing += min(instancesPerService, f.opts.Instances-first) - healthy
	}
	return missing, nil
}
