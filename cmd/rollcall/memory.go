package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// allowance is how much garbage may pile up before a collection, however small the
	// live heap is. By Go's own rule, as much as is live, a node with little in it would
	// collect ten times a second under load, to save megabytes that nobody is short of.
	allowance = 128 << 20
	// plainPercent is Go's own rule, which holds from so much live heap on; topPercent
	// bounds how far a tiny heap strays from it.
	plainPercent, topPercent = 100, 1000
	// paceEvery is how soon a heap that grows fast comes under the rule.
	paceEvery = 250 * time.Millisecond
)

// paceCollector sets how much garbage may pile up by what is live, until ctx ends. It
// does nothing when the environment sets GOGC; GOMEMLIMIT holds in any case.
func paceCollector(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	ticker := time.NewTicker(paceEvery)
	defer ticker.Stop()
	set := plainPercent
	defer func() { debug.SetGCPercent(plainPercent) }()
	for {
		metrics.Read(live)
		// Setting it stops the program for a moment: not for a change that matters little.
		if p := percentFor(live[0].Value.Uint64()); p < set*9/10 || p > set*11/10 {
			debug.SetGCPercent(p)
			set = p
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// percentFor is the garbage that a live heap of so many bytes allows, in percent of it.
func percentFor(live uint64) int {
	if live == 0 {
		return topPercent
	}
	return int(min(max(allowance*100/live, plainPercent), topPercent))
}
