// Package probe is what every Go program of checks needs beside its client: the list of
// checks and their report, plain requests to each node, and faults on demand. It knows no
// client.
package probe

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
)

// Check is one thing that must be true. Checks of the same Phase run at once, phases one
// after the other: those below 0 first, as long as nobody else uses the cluster.
type Check struct {
	Phase int
	Name  string
	Run   func() error
}

// World is the cluster under test.
type World struct {
	Servers []string // host:port of each node's HTTP
	Unrest  bool     // the leader is being killed all the time
	faults  string
	client  *http.Client
}

// Open reads where the cluster is from the environment.
func Open() *World {
	return &World{
		Servers: strings.Split(os.Getenv("COMPAT_SERVERS"), ","),
		Unrest:  os.Getenv("COMPAT_UNREST") != "",
		faults:  os.Getenv("COMPAT_FAULTS"),
		client:  &http.Client{Timeout: 40 * time.Second},
	}
}

// RunAll runs the checks, prints a line for each and returns how many failed.
func RunAll(checks []Check) int {
	var mu sync.Mutex
	failed, only := 0, os.Getenv("COMPAT_ONLY")
	first, last := 0, 0
	for _, c := range checks {
		first, last = min(first, c.Phase), max(last, c.Phase)
	}
	for phase := first; phase <= last; phase++ {
		var wg sync.WaitGroup
		for _, c := range checks {
			if c.Phase != phase || !strings.Contains(c.Name, only) {
				continue
			}
			wg.Go(func() {
				start := time.Now()
				err := c.Run()
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					failed++
					fmt.Printf("FAIL %s: %v\n", c.Name, err)
					return
				}
				fmt.Printf("ok %s (%s)\n", c.Name, time.Since(start).Round(100*time.Millisecond))
			})
		}
		wg.Wait()
	}
	return failed
}

// Note prints a line that is no result.
func Note(format string, args ...any) { fmt.Println("note", fmt.Sprintf(format, args...)) }

// Fault asks the runner for something: hold, release, leader, kill, stop, start, or
// start?wait=no; node names the node where one is meant.
func (w *World) Fault(what, node string) (string, error) {
	path, more, _ := strings.Cut(what, "?")
	return w.post(w.faults + "/" + path + "?" + more + "&node=" + url.QueryEscape(node))
}

// Alone runs do while nobody else does anything to the cluster.
func (w *World) Alone(do func() error) error {
	if _, err := w.Fault("hold", ""); err != nil {
		return err
	}
	err := do()
	if _, err2 := w.Fault("release", ""); err == nil {
		err = err2
	}
	return err
}

// Index is the place in Servers of the node with an id such as n2.
func Index(id string) int { return int(id[len(id)-1] - '1') }

func (w *World) post(address string) (string, error) {
	resp, err := w.client.Post(address, "", nil)
	if err != nil {
		return "", err
	}
	return answer(resp)
}

func answer(resp *http.Response) (string, error) {
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 4<<20))
	if err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %d %s", resp.Request.URL, resp.StatusCode, strings.TrimSpace(string(body)))
	}
	return string(body), nil
}

// Request sends a plain request to one node, without any client in between.
func (w *World) Request(server, method, path string, params url.Values) (string, error) {
	req, err := http.NewRequest(method, "http://"+server+"/nacos/v1/ns"+path+"?"+params.Encode(), nil)
	if err != nil {
		return "", err
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return "", err
	}
	return answer(resp)
}
