package raftnode

import (
	"bytes"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
)

func TestLogFilter_DropsRepetitionsOnly(t *testing.T) {
	var out bytes.Buffer
	log := hclog.New(&hclog.LoggerOptions{Output: &out, Exclude: LogFilter()}).Named("raft")
	for range 20 {
		log.Error("failed to heartbeat to", "peer", "n2")
		log.Warn("something else")
	}
	if got := strings.Count(out.String(), "failed to heartbeat"); got != 1 {
		t.Errorf("%d repetitions, want 1", got)
	}
	if got := strings.Count(out.String(), "something else"); got != 20 {
		t.Errorf("%d other lines, want 20", got)
	}
}

func TestLogFilter_EachPeerIsNamed(t *testing.T) {
	var out bytes.Buffer
	log := hclog.New(&hclog.LoggerOptions{Output: &out, Exclude: LogFilter()}).Named("raft")
	for range 5 {
		log.Error("failed to make requestVote RPC", "target", "n2", "error", errors.New("refused"))
		log.Error("failed to make requestVote RPC", "target", "n3", "error", errors.New("refused"))
	}
	for _, peer := range []string{"target=n2", "target=n3"} {
		if got := strings.Count(out.String(), peer); got != 1 {
			t.Errorf("%d lines with %s, want 1", got, peer)
		}
	}
}

// An orderly stop is no error.
func TestLogFilter_OwnClosingIsNoError(t *testing.T) {
	var out bytes.Buffer
	log := hclog.New(&hclog.LoggerOptions{Output: &out, Exclude: LogFilter()}).Named("transport")
	log.Error("failed to accept connection", "error", net.ErrClosed)
	log.Error("failed to decode incoming command", "error", &net.OpError{Op: "read", Err: net.ErrClosed})
	if out.Len() != 0 {
		t.Errorf("logged %q", out.String())
	}
	log.Error("failed to accept connection", "error", errors.New("too many open files"))
	if !strings.Contains(out.String(), "too many open files") {
		t.Errorf("logged %q, want the real error", out.String())
	}
}
