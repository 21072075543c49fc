package app

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"
)

// startDebug serves the Go profiler on DebugAddr, in the node's group. It is off unless
// asked for, and never on the clients' port: a profile costs CPU and tells secrets.
func (n *Node) startDebug() error {
	if n.opts.DebugAddr == "" {
		return nil
	}
	listener, err := net.Listen("tcp", n.opts.DebugAddr)
	if err != nil {
		return fmt.Errorf("listen for the profiler (--debug-addr): %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	n.debug = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	n.group.Go(func() error {
		if err := n.debug.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve the profiler: %w", err)
		}
		return nil
	})
	return nil
}
