package main

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

func TestPercentFor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		live uint64
		want int
	}{
		{0, 1000}, {1 << 20, 1000}, {16 << 20, 800}, {64 << 20, 200}, {128 << 20, 100}, {1 << 30, 100}, {1 << 50, 100},
	} {
		if got := percentFor(c.live); got != c.want {
			t.Errorf("%d MiB live: %d %%, want %d", c.live>>20, got, c.want)
		}
	}
}

// gcPercent is the percentage in force. It only reads it: who sets it to learn the old one
// undoes what paceCollector sets at that moment.
func gcPercent() int {
	s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(s)
	return int(s[0].Value.Uint64())
}

// It writes a setting of the whole process, so it runs alone.
func TestPaceCollector(t *testing.T) {
	before := gcPercent()
	defer debug.SetGCPercent(before)
	pace := func(until func() bool) bool {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		ended := make(chan struct{})
		go func() { defer close(ended); paceCollector(ctx) }()
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for !until() {
			select {
			case <-ended:
				return false
			case <-tick.C:
			}
		}
		cancel()
		<-ended
		return true
	}
	t.Run("small heap", func(t *testing.T) {
		t.Setenv("GOGC", "")
		debug.SetGCPercent(100)
		runtime.GC() // what lives now counts, not what a test before has held
		if !pace(func() bool { return gcPercent() > 100 }) {
			t.Error("a small heap keeps Go's own rule")
		}
		if p := gcPercent(); p != 100 {
			t.Errorf("%d %% after its end", p)
		}
	})
	t.Run("large heap", func(t *testing.T) {
		t.Setenv("GOGC", "")
		held := make([]byte, 2*allowance)
		runtime.GC()
		debug.SetGCPercent(100)
		if !pace(func() bool { runtime.Gosched(); return gcPercent() == 100 }) {
			t.Error("a large heap strays from Go's own rule")
		}
		runtime.KeepAlive(held)
	})
	t.Run("set by the operator", func(t *testing.T) {
		t.Setenv("GOGC", "70")
		debug.SetGCPercent(70)
		paceCollector(t.Context())
		if p := gcPercent(); p != 70 {
			t.Errorf("%d %% though GOGC is 70", p)
		}
	})
}
