package nodes

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Instance is what a test registers and beats.
type Instance struct {
	Service string
	IP      string
	Port    int
	// Interval, Timeout and Delete go into the metadata when Interval is set.
	Interval time.Duration
	Timeout  time.Duration
	Delete   time.Duration
}

// Key is ip:port.
func (in Instance) Key() string { return in.IP + ":" + strconv.Itoa(in.Port) }

// Lasting is the instance with timeouts that no test outlives.
func (in Instance) Lasting() Instance {
	in.Interval, in.Timeout, in.Delete = 5*time.Second, 10*time.Minute, 15*time.Minute
	return in
}

// Form are the parameters that name the instance.
func (in Instance) Form() url.Values {
	return url.Values{"serviceName": {in.Service}, "ip": {in.IP}, "port": {strconv.Itoa(in.Port)}, "clusterName": {"DEFAULT"}}
}

// Registration are the parameters that register it.
func (in Instance) Registration() url.Values {
	form := in.Form()
	if in.Interval > 0 {
		ms := func(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
		text, err := json.Marshal(map[string]string{
			"preserved.heart.beat.interval": ms(in.Interval), "preserved.heart.beat.timeout": ms(in.Timeout),
			"preserved.ip.delete.timeout": ms(in.Delete),
		})
		if err != nil {
			panic(err) // texts only
		}
		form.Set("metadata", string(text))
	}
	return form
}

// Register registers the instance through the node.
func (n *Node) Register(in Instance) (Answer, error) {
	return n.Do(http.MethodPost, "/instance", in.Registration())
}

// MustRegister repeats a registration that a leader change gets in the way of.
func (n *Node) MustRegister(instances ...Instance) {
	n.c.t.Helper()
	for _, in := range instances {
		var a Answer
		var err error
		n.c.Until("registration of "+in.Key()+" through "+n.ID, func() bool {
			if a, err = n.Register(in); err == nil && a.Status/100 == 4 {
				n.c.t.Fatalf("register %s: %d %s", in.Key(), a.Status, a.Body)
			}
			return err == nil && a.OK()
		})
	}
}

// beatTimeout is how long a client waits for the answer to a beat before it turns to
// another node.
const beatTimeout = time.Second

// What a beat is answered: 10200 and 20404 are Nacos' codes, anything else is a refusal.
const (
	beatRefused = 0
	beatTaken   = 10200
	beatUnknown = 20404
)

// Beat sends a light beat and tells whether the node took it for a known instance.
func (n *Node) Beat(ctx context.Context, in Instance) bool { return n.beat(ctx, in) == beatTaken }

func (n *Node) beat(ctx context.Context, in Instance) int {
	ctx, cancel := context.WithTimeout(ctx, beatTimeout)
	defer cancel()
	a, err := n.Send(ctx, http.MethodPut, NS+"/instance/beat", in.Form())
	if err != nil || a.Status != http.StatusOK {
		return beatRefused
	}
	var reply struct{ Code int }
	if json.Unmarshal([]byte(a.Body), &reply) != nil {
		return beatRefused
	}
	return reply.Code
}
