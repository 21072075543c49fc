package raftnode

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// repeated are lines that Raft and its transport write several times a second for as
// long as a peer is away.
var repeated = map[string]bool{
	"failed to heartbeat to":                                 true,
	"failed to appendEntries to":                             true,
	"failed to make requestVote RPC":                         true,
	"failed to make preVote RPC":                             true,
	"failed to contact":                                      true,
	"failed to send snapshot to":                             true,
	"heartbeat timeout reached, starting election":           true,
	"Election timeout reached, restarting election":          true,
	"failed to pipeline appendEntries":                       true,
	"failed to decode incoming command":                      true,
	"failed to accept connection":                            true,
	"entering candidate state":                               true,
	"pre-vote campaign failed, waiting for election timeout": true,
}

// aboutPeer are the keys under which these lines name the peer.
var aboutPeer = map[any]bool{"peer": true, "target": true, "server-id": true}

const (
	repeatedPeriod = 10 * time.Second
	// repeatedPeers bounds what is remembered: peers come and go over the years.
	repeatedPeers = 1000
)

// LogFilter makes an Exclude function for hclog.LoggerOptions that lets lines which
// repeat themselves while a peer is away through once in ten seconds for each peer, and
// drops what the transport says of connections that this node itself has closed. It is
// safe for concurrent use.
func LogFilter() func(level hclog.Level, message string, args ...any) bool {
	var mu sync.Mutex
	last := make(map[string]time.Time)
	return func(_ hclog.Level, message string, args ...any) bool {
		if !repeated[message] {
			return false
		}
		key := message
		for i := 0; i+1 < len(args); i += 2 {
			if err, is := args[i+1].(error); is && errors.Is(err, net.ErrClosed) {
				return true
			}
			if aboutPeer[args[i]] {
				key += fmt.Sprint(" ", args[i+1])
			}
		}
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		if len(last) >= repeatedPeers {
			clear(last)
		}
		if now.Sub(last[key]) < repeatedPeriod {
			return true
		}
		last[key] = now
		return false
	}
}
