package raftnode

import (
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// repeated are lines that Raft and its transport write several times a second for as
// long as a peer is away.
var repeated = map[string]bool{
	"failed to heartbeat to":                        true,
	"failed to appendEntries to":                    true,
	"failed to make requestVote RPC":                true,
	"failed to make preVote RPC":                    true,
	"failed to contact":                             true,
	"failed to send snapshot to":                    true,
	"heartbeat timeout reached, starting election":  true,
	"Election timeout reached, restarting election": true,
	"failed to pipeline appendEntries":              true,
	"failed to decode incoming command":             true,
	"failed to accept connection":                   true,
}

const repeatedPeriod = 10 * time.Second

// LogFilter makes an Exclude function for hclog.LoggerOptions that lets lines which
// repeat themselves while a peer is away through once in ten seconds. It is safe for
// concurrent use.
func LogFilter() func(level hclog.Level, message string, args ...any) bool {
	var mu sync.Mutex
	last := make(map[string]time.Time)
	return func(_ hclog.Level, message string, _ ...any) bool {
		if !repeated[message] {
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		if now.Sub(last[message]) < repeatedPeriod {
			return true
		}
		last[message] = now
		return false
	}
}
