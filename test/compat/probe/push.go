package probe

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// PollInterval is what clients that are pushed to are told to wait between queries.
	PollInterval = 10 * time.Second
	// PushGoal is what a push on an idle cluster should take, the change included. Only
	// the bounds below fail a check: machines that run checks are busy.
	PushGoal = 200 * time.Millisecond
	// PushMedian and PushMax bound the median and the slowest push of a series. Both are
	// well below PollInterval.
	PushMedian, PushMax = 500 * time.Millisecond, 4 * time.Second
)

// Pushes is what some nodes counted since they started.
type Pushes struct {
	Queries int // of instance lists, by anybody
	Sent    int // UDP pushes
	Acked   int // acknowledged ones of them
	Dropped int // pushes that could not be sent
}

// Pushes adds up the counts of the given nodes.
func (w *World) Pushes(servers ...string) (Pushes, error) {
	var p Pushes
	for _, server := range servers {
		resp, err := w.client.Get("http://" + server + "/metrics")
		if err != nil {
			return p, err
		}
		text, err := answer(resp)
		if err != nil {
			return p, err
		}
		if err := p.add(text); err != nil {
			return p, fmt.Errorf("metrics of %s: %w", server, err)
		}
	}
	return p, nil
}

// add reads a text of metrics.
func (p *Pushes) add(text string) error {
	known := false
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		series, value, _ := strings.Cut(lines.Text(), " ")
		var to *int
		switch {
		case strings.HasPrefix(series, "rollcall_http_requests_total{") && strings.Contains(series, `method="`+http.MethodGet+`"`) &&
			strings.Contains(series, `route="/nacos/v1/ns/instance/list"`):
			to = &p.Queries
		case series == `rollcall_push_packets_total{outcome="sent"}`:
			to, known = &p.Sent, true
		case series == `rollcall_push_packets_total{outcome="acked"}`:
			to = &p.Acked
		case strings.HasPrefix(series, "rollcall_push_drops_total{"):
			to = &p.Dropped
		default:
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return err
		}
		*to += int(n)
	}
	if !known {
		return fmt.Errorf("no count of pushes in %d bytes", len(text))
	}
	return lines.Err()
}

// Subscribed gives those of the nodes that push a service to somebody.
func (w *World) Subscribed(servers []string, s Service) ([]string, error) {
	var found []string
	for _, server := range servers {
		q := s.params()
		q.Set("aggregation", "false")
		body, err := w.Request(server, http.MethodGet, "/service/subscribers", q)
		if err != nil {
			return nil, err
		}
		var reply struct {
			Count int `json:"count"`
		}
		if err := json.Unmarshal([]byte(body), &reply); err != nil {
			return nil, fmt.Errorf("%s: %w", body, err)
		}
		if reply.Count > 0 {
			found = append(found, server)
		}
	}
	return found, nil
}

// Series is a row of changes, each of which must be heard by a push.
type Series struct {
	World   *World
	Servers []string // the nodes that may push
	Acks    int      // how many clients acknowledge each push
	Took    []time.Duration
	Polled  int // changes during which somebody asked for a list: they prove nothing
	Acked   int // acknowledgements that the nodes counted
}

// Step makes a change and waits until it is heard, for longer than a push may take and
// shorter than a poll. heard gives the moment at which the client called back. A change
// that a client could have polled is left out of the series, and so is its time.
func (r *Series) Step(change func() error, heard func(within time.Duration) (time.Time, error)) error {
	before, err := r.World.Pushes(r.Servers...)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := change(); err != nil {
		return err
	}
	at, err := heard(PushMax)
	if err != nil {
		return err
	}
	var after Pushes
	err = Until(PushMax, func() bool {
		after, err = r.World.Pushes(r.Servers...)
		return err == nil && after.Acked-before.Acked >= r.Acks
	})
	if err != nil {
		return fmt.Errorf("%d of %d acknowledgements, %d pushes sent: %w", after.Acked-before.Acked, r.Acks, after.Sent-before.Sent, err)
	}
	if after.Dropped != before.Dropped {
		return fmt.Errorf("%d pushes could not be sent", after.Dropped-before.Dropped)
	}
	r.Acked += after.Acked - before.Acked
	if after.Queries != before.Queries {
		r.Polled++
		return nil
	}
	r.Took = append(r.Took, at.Sub(start))
	return nil
}

// Verdict prints the times and fails when they are too long, or too few to prove pushes.
func (r *Series) Verdict(what string) error {
	if len(r.Took) == 0 || len(r.Took) < r.Polled {
		return fmt.Errorf("%d changes came by push and %d beside a poll", len(r.Took), r.Polled)
	}
	slices.Sort(r.Took)
	median, slowest := r.Took[len(r.Took)/2], r.Took[len(r.Took)-1]
	slow := 0
	for _, d := range r.Took {
		if d > PushGoal {
			slow++
		}
	}
	fmt.Printf("figure %s: %d changes by push, %d acknowledgements, from the call to the callback median %s, max %s, %d over %s; %d beside a poll\n", what,
		len(r.Took), r.Acked, median.Round(100*time.Microsecond), slowest.Round(100*time.Microsecond), slow, PushGoal, r.Polled)
	if median > PushMedian || slowest > PushMax {
		return fmt.Errorf("pushes took %s in the median and %s at most", median, slowest)
	}
	return nil
}
