package raftnode

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

func TestSilentLeases_AreAskedForAndToldOff(t *testing.T) {
	ref := registry.LeaseRef{Number: 5, Grant: registry.Position{Index: 8, Seq: 2}}
	notes := registry.SilentNotes{Term: 3, Age: 700, Leases: []registry.SilentLease{{LeaseRef: ref, Age: 9000, Given: 4000}}}
	renewed := make(chan []registry.LeaseRef, 3)
	c := startCluster(t, 3, func(i int, o *Options) {
		o.OnAsk = map[string]func(context.Context, []byte) ([]byte, error){
			TopicSilent:  AnswerSilent(func() registry.SilentNotes { return notes }),
			TopicRenewed: AnswerRenewed(func(refs []registry.LeaseRef) { renewed <- refs }),
		}
		if i == 2 { // one that answers nonsense
			o.OnAsk[TopicSilent] = func(context.Context, []byte) ([]byte, error) { return []byte{0xff}, nil }
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if got := c.nodes[0].AskSilent(ctx); len(got) != 1 || !reflect.DeepEqual(got[0], notes) {
		t.Errorf("got %+v", got)
	}
	c.nodes[0].TellRenewed(ctx, []registry.LeaseRef{ref})
	for range 2 {
		select {
		case refs := <-renewed:
			if len(refs) != 1 || refs[0] != ref {
				t.Errorf("told of %+v", refs)
			}
		case <-ctx.Done():
			t.Fatal("not told")
		}
	}
	if _, err := AnswerRenewed(func([]registry.LeaseRef) { t.Error("nonsense was handed on") })(ctx, []byte{0xff}); err == nil {
		t.Error("nonsense was taken")
	}
}
