package raftnode

import (
	"bytes"
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
