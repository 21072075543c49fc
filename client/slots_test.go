package client_test

import (
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/client"
)

// A service that found no stream free stayed without one for good, also when all others
// had been closed.
func TestStreams_AServiceWithoutOneTakesTheNextThatIsFree(t *testing.T) {
	s := startFake(t)
	c := newClient(t, func(o *client.Options) { o.MaxStreams, o.NoPush, o.PollInterval = 1, true, time.Hour }, s.URL())
	first := follow(t, c)
	const watch = "GET /api/v1/watch"
	until(t, "the first stream", func() bool { return s.Requests(watch) == 1 })
	second, err := c.Follow(t.Context(), client.ServiceName{Name: "payments"})
	if err != nil {
		t.Fatal(err)
	}
	third, err := c.Follow(t.Context(), client.ServiceName{Name: "parcels"})
	if err != nil {
		t.Fatal(err)
	}
	third.Close() // one that waits may leave
	first.Close()
	until(t, "a stream for the second", func() bool { return s.Requests(watch) >= 2 })
	added := up(80, 1)
	added.Service = "payments"
	s.Put(added)
	until(t, "the change", func() bool { return len(second.Snapshot().All()) == 1 })
}
