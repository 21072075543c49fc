package field

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// timeouts are an instance's metadata parameter with heartbeat settings in milliseconds.
func timeouts(interval, beat, deletion int) string {
	return "metadata=" + url.QueryEscape(fmt.Sprintf(
		`{"preserved.heart.beat.interval":"%d","preserved.heart.beat.timeout":"%d","preserved.ip.delete.timeout":"%d"}`, interval, beat, deletion))
}

var (
	brief   = timeouts(300, 1500, 3000)
	lasting = timeouts(5000, 600_000, 900_000)
	// unhurried leaves a busy machine seconds for what comes before the first beat.
	unhurried = timeouts(300, 5000, 8000)
)

// beating sends beats of instances until stop is called, each to the next node when one
// does not take it. send makes the beat.
func beating(c *cluster, n int, send func(m *member, i int) bool) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	nodes := c.Running()
	for i := range n {
		wg.Go(func() {
			for at := i; ctx.Err() == nil; {
				for range nodes {
					if send(nodes[at%len(nodes)], i) {
						break
					}
					at++
				}
				select {
				case <-ctx.Done():
				case <-time.After(200 * time.Millisecond):
				}
			}
		})
	}
	return func() { cancel(); wg.Wait() }
}

// fullBeat sends a beat with the client's own copy of the instance.
func fullBeat(m *member, service, ip string, port int, more string) bool {
	beat := fmt.Sprintf(`{"ip":"%s","port":%d%s}`, ip, port, more)
	a, err := m.Do(http.MethodPut, "/instance/beat", "serviceName="+service+"&beat="+url.QueryEscape(beat))
	return err == nil && a.Status == http.StatusOK && strings.Contains(a.Body, `"code":10200`)
}

// detail is GET /instance.
func detail(m *member, service, ip string, port int) string {
	a, err := m.Do(http.MethodGet, "/instance", fmt.Sprintf("serviceName=%s&ip=%s&port=%d", service, ip, port))
	if err != nil {
		return err.Error()
	}
	return a.Body
}

// TestDisabledInstance_StaysDisabled: an operator takes an instance out of service; beats,
// a flip of its health, a restarted follower and another leader do not bring it back
// (alibaba/nacos #1814, #11112, #8653, #3934, #11890, #5243; Netflix/eureka #1116, #955).
func TestDisabledInstance_StaysDisabled(t *testing.T) {
	c := startCluster(t)
	c.Leader().MustRegister("svc", "10.1.0.1", 8080, timeouts(300, 2000, 120_000), "weight=3")
	must(t, c.Followers()[0], http.MethodPatch, "/instance", "serviceName=svc&ip=10.1.0.1&port=8080&enabled=false")
	for _, m := range c.Running() { // those that were not asked hear of it a moment later
		c.Until("the instance out of service on "+m.ID, func() bool {
			hosts, err := m.List("svc")
			return err == nil && len(hosts) == 0 && strings.Contains(detail(m, "svc", "10.1.0.1", 8080), `"weight":3.0`)
		})
	}
	beat := func(m *member, _ int) bool { return fullBeat(m, "svc", "10.1.0.1", 8080, `,"weight":1`) }
	look := func(when string) {
		t.Helper()
		for _, m := range c.Running() {
			c.Until("a list on "+m.ID, func() bool {
				hosts, err := m.List("svc")
				if err == nil && len(hosts) != 0 {
					t.Fatalf("%s, %s lists %v", when, m.ID, hosts)
				}
				return err == nil
			})
			c.Until("weight and metadata kept on "+m.ID+" "+when, func() bool {
				got := detail(m, "svc", "10.1.0.1", 8080)
				return strings.Contains(got, `"weight":3.0`) && strings.Contains(got, `"preserved.heart.beat.timeout":"2000"`)
			})
		}
	}
	stop := beating(c, 1, beat)
	look("while it beats")
	stop()
	c.Until("the instance unhealthy", func() bool {
		return strings.Contains(detail(c.Leader(), "svc", "10.1.0.1", 8080), `"healthy":false`)
	})
	stop = beating(c, 1, beat)
	c.Until("the instance healthy again", func() bool {
		return strings.Contains(detail(c.Leader(), "svc", "10.1.0.1", 8080), `"healthy":true`)
	})
	look("after a flip of its health")
	stop()
	f := c.Followers()[0]
	f.Stop()
	f.Start()
	c.WaitReady()
	look("after a follower's restart")
	c.Leader().Stop()
	c.WaitReady()
	look("under another leader")
}

// TestBeatAfterEviction_BringsWhatTheBeatSays: an instance that a full beat makes again
// has the beat's data, not that of an earlier registration, and not nothing
// (alibaba/nacos #3404; polarismesh/polaris-java #592).
func TestBeatAfterEviction_BringsWhatTheBeatSays(t *testing.T) {
	c := startCluster(t)
	m := c.Followers()[0]
	m.MustRegister("svc", "10.1.0.1", 8080, brief)
	m.MustRegister("svc", "10.1.0.1", 8080, brief, "weight=2")
	c.Until("the eviction", func() bool { hosts, err := m.List("svc"); return err == nil && len(hosts) == 0 })
	c.Until("the beat taken", func() bool { return fullBeat(m, "svc", "10.1.0.1", 8080, `,"weight":4,"metadata":{"v":"3"}`) })
	for _, node := range c.Members() {
		c.Until("the beat's data on "+node.ID, func() bool {
			got := detail(node, "svc", "10.1.0.1", 8080)
			return strings.Contains(got, `"weight":4.0`) && strings.Contains(got, `"metadata":{"v":"3"}`)
		})
	}
}

// TestBeatRightAfterRegistration_IsKnownOnOtherNodes: the first beat went to a node that
// had not seen the registration yet and was told that there is no such instance
// (polarismesh/polaris #974, #180).
func TestBeatRightAfterRegistration_IsKnownOnOtherNodes(t *testing.T) {
	c := startCluster(t)
	nodes := c.Members()
	for i := range 300 {
		nodes[i%3].MustRegister("svc", "10.1.0.1", 1000+i, lasting)
		for _, k := range []int{1, 2} {
			text := must(t, nodes[(i+k)%3], http.MethodPut, "/instance/beat", fmt.Sprintf("serviceName=svc&ip=10.1.0.1&port=%d", 1000+i))
			if !strings.Contains(text, `"code":10200`) {
				t.Fatalf("beat %d through %s: %s", i, nodes[(i+k)%3].ID, text)
			}
		}
	}
}

// TestTwoClusters_BeatsOfOneDoNotRenewTheOther is about one address in two clusters
// (alibaba/nacos #3919, #1470).
func TestTwoClusters_BeatsOfOneDoNotRenewTheOther(t *testing.T) {
	c := startCluster(t)
	m := c.Leader()
	m.MustRegister("svc", "10.1.0.1", 8080, short, "clusterName=c1")
	m.MustRegister("svc", "10.1.0.1", 8080, short, "clusterName=c2")
	stop := beating(c, 1, func(m *member, _ int) bool {
		a, err := m.Do(http.MethodPut, "/instance/beat", "serviceName=svc&ip=10.1.0.1&port=8080&clusterName=c1")
		return err == nil && a.Status == http.StatusOK
	})
	defer stop()
	c.Until("only c1 left", func() bool {
		a, err := m.Do(http.MethodGet, "/instance/list", "serviceName=svc")
		if err == nil && strings.Contains(a.Body, `"healthy":false,"marked":false,"instanceId":"10.1.0.1#8080#c1`) {
			t.Fatalf("the beating one is unhealthy: %s", a.Body)
		}
		return err == nil && strings.Contains(a.Body, "#c1#") && !strings.Contains(a.Body, "#c2#")
	})
}

// TestDeadClients_LeaveWhileANodeIsDown: expiry was the duty of the node that owned the
// instance, and with that node down nobody did it
// (alibaba/nacos #3337, #4829, #3110; alibaba/spring-cloud-alibaba #3415).
func TestDeadClients_LeaveWhileANodeIsDown(t *testing.T) {
	for _, down := range []string{"leader", "follower"} {
		t.Run(down, func(t *testing.T) {
			c := startCluster(t)
			fill(t, c, "svc", 1000, 1060, unhurried)
			stop := beating(c, 30, func(m *member, i int) bool {
				a, err := m.Beat("svc", "10.1.0.1", 1000+i)
				return err == nil && a.Status == http.StatusOK
			})
			defer stop()
			victim := c.Leader()
			if down == "follower" {
				victim = c.Followers()[0]
			}
			victim.Stop()
			for _, m := range c.Running() {
				c.Until("only the living on "+m.ID, func() bool {
					hosts, err := m.List("svc")
					for _, h := range hosts {
						if h.Port < 1030 && !h.Healthy {
							t.Fatalf("%s calls %d, which beats, unhealthy", m.ID, h.Port)
						}
					}
					return err == nil && len(hosts) == 30
				})
			}
		})
	}
}
