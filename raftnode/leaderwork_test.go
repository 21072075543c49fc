package raftnode

import (
	"errors"
	"testing"
	"time"
)

// A check is an entry too: when it counted as a change, an idle cluster wrote an entry an
// interval, for ever.
func TestDigest_IdleClusterIsComparedOnce(t *testing.T) {
	const interval = 10 * time.Millisecond
	c := startCluster(t, 1, func(_ int, o *Options) { o.DigestInterval = interval })
	fsm := c.nodes[0].fsm
	var last uint64
	var since time.Time
	eventually(t, 10*time.Second, "an index that rests for 30 intervals", func() error {
		if at := fsm.Applied(); at != last || since.IsZero() {
			last, since = at, time.Now()
		}
		if time.Since(since) < 30*interval {
			return errors.New("the log goes on growing")
		}
		return nil
	})
}
