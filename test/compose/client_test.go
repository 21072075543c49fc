//go:build compose

package compose

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var httpClient = &http.Client{
	Timeout:   5 * time.Second,
	Transport: &http.Transport{DisableKeepAlives: true}, // a container that comes back has new connections
}

// base is where a node's published port answers.
func base(node string) string {
	number := strings.TrimPrefix(node, "n")
	port := os.Getenv("ROLLCALL_PORT_" + number)
	if port == "" {
		port = map[string]string{"1": "8848", "2": "8849", "3": "8850"}[number]
	}
	return "http://127.0.0.1:" + port + "/nacos/v1/ns"
}

// call sends one request; an answer other than 200 is an error.
func call(method, address string) (string, http.Header, error) {
	req, err := http.NewRequest(method, address, nil)
	if err != nil {
		return "", nil, err
	}
	resp, err := httpClient.Do(req)
	if err != nil {
		return "", nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return "", nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return "", resp.Header, fmt.Errorf("%s %s: %d %s", method, address, resp.StatusCode, body)
	}
	return string(body), resp.Header, nil
}

// register puts one instance through a node. Its port is its number, its metadata too.
func register(node, service string, number int, ephemeral bool) error {
	q := url.Values{
		"serviceName": {service}, "ip": {"10.9.8.7"}, "port": {fmt.Sprint(number)},
		"ephemeral": {fmt.Sprint(ephemeral)}, "metadata": {fmt.Sprintf(`{"number":"%d"}`, number)},
	}
	body, _, err := call(http.MethodPost, base(node)+"/instance?"+q.Encode())
	if err == nil && body != "ok" {
		err = fmt.Errorf("answered %q", body)
	}
	return err
}

// list returns the ports of a service's instances as a node sees them, sorted. One whose
// metadata is not what register sent counts as missing.
func list(node, service string) ([]int, error) {
	body, _, err := call(http.MethodGet, base(node)+"/instance/list?serviceName="+service)
	if err != nil {
		return nil, err
	}
	var reply struct {
		Hosts []struct {
			Port     int
			Metadata map[string]string
		}
	}
	if err := json.Unmarshal([]byte(body), &reply); err != nil {
		return nil, fmt.Errorf("%s: %w", body, err)
	}
	var ports []int
	for _, h := range reply.Hosts {
		if h.Metadata["number"] == fmt.Sprint(h.Port) {
			ports = append(ports, h.Port)
		}
	}
	slices.Sort(ports)
	return ports, nil
}

// leader is the node that some other node names; empty when none does.
func leader(among ...string) string {
	for _, n := range among {
		if _, header, err := call(http.MethodGet, base(n)+"/instance/list?serviceName=any"); err == nil {
			if l := header.Get("X-Rollcall-Leader"); l != "" {
				return l
			}
		}
	}
	return ""
}

// beatFor keeps ephemeral instances alive as a client does: a full beat every two
// seconds, through whichever node answers, until the test ends.
func beatFor(t *testing.T, service string, numbers ...int) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(2 * time.Second)
		defer tick.Stop()
		for {
			for _, number := range numbers {
				beatOnce(service, number)
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
}

func beatOnce(service string, number int) {
	beat := fmt.Sprintf(`{"serviceName":"DEFAULT_GROUP@@%s","ip":"10.9.8.7","port":%d,"weight":1,"metadata":{"number":"%d"}}`,
		service, number, number)
	q := url.Values{"serviceName": {"DEFAULT_GROUP@@" + service}, "beat": {beat}}
	for _, n := range names {
		if _, _, err := call(http.MethodPut, base(n)+"/instance/beat?"+q.Encode()); err == nil {
			return
		}
	}
}
