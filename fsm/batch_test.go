package fsm

import (
	"errors"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/rollcall-io/rollcall/registry"
)

func TestFatal_NothingOfTheBatchIsApplied(t *testing.T) {
	var fatal []error
	n := &node{newFSM(t, Options{Fatal: func(err error) { fatal = append(fatal, err) }}), newScript(t)}
	n.ok(register("orders", "10.0.0.1", 80))
	before, applied := contents(t, n.FSM), n.Applied()

	good, bad := n.entry(register("orders", "10.0.0.2", 80)), n.entry(registry.NoOp{})
	bad.Data = append(bad.Data, 0x38, 1)
	responses := n.ApplyBatch([]*raft.Log{good, n.configuration(), bad})
	if len(responses) != 3 || len(fatal) != 1 || contents(t, n.FSM) != before || n.Applied() != applied {
		t.Fatalf("responses %v, fatal %v, applied %d:\n%s", responses, fatal, n.Applied(), contents(t, n.FSM))
	}
	for _, word := range []string{"entry 13", "field 7", "newest version"} {
		if !strings.Contains(fatal[0].Error(), word) {
			t.Errorf("%q does not say %q", fatal[0], word)
		}
	}
	if err, is := n.Apply(good).(error); !is || !errors.Is(err, fatal[0]) || n.Applied() != applied {
		t.Errorf("the next batch was answered %v", err)
	}
	if _, err := n.Snapshot(); !errors.Is(err, fatal[0]) {
		t.Errorf("a snapshot of a state that lacks entries: %v", err)
	}
}

func TestFatal_FeatureLevelOfANewerBuild(t *testing.T) {
	var fatal error
	n := &node{newFSM(t, Options{Fatal: func(err error) { fatal = err }}), newScript(t)}
	n.Apply(n.entry(registry.FeatureLevel{Level: Level + 1}))
	if fatal == nil || n.FeatureLevel() != 1 {
		t.Fatalf("fatal %v, level %d", fatal, n.FeatureLevel())
	}
}

func TestFatal_PanicsByDefault(t *testing.T) {
	n := newNode(t)
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	n.Apply(&raft.Log{Index: 11, Type: raft.LogCommand, Data: []byte("{}")})
}

func TestApplyBatch_ConfigurationEntries(t *testing.T) {
	n := newNode(t)
	responses := n.ApplyBatch([]*raft.Log{n.configuration(), n.entry(), n.entry(registry.NoOp{}, registry.NoOp{}), n.configuration()})
	if len(responses) != 4 || responses[0] != nil || responses[3] != nil {
		t.Fatalf("responses %v", responses)
	}
	if none, two := responses[1].([]registry.Result), responses[2].([]registry.Result); len(none) != 0 || len(two) != 2 {
		t.Errorf("results %v and %v", none, two)
	}
	if n.Applied() != n.index {
		t.Errorf("applied %d, want %d", n.Applied(), n.index)
	}
	restored := newFSM(t, Options{})
	load(t, restored, save(t, n.FSM))
	if restored.Applied() != n.index {
		t.Errorf("a snapshot kept index %d, want %d", restored.Applied(), n.index)
	}
}

func TestDigestCheck_FindsDivergence(t *testing.T) {
	n := newNode(t)
	n.ok(register("orders", "10.0.0.1", 80))
	index, d := n.Digest()
	n.ok(registry.DigestCheck{At: index, Digest: d})
	n.ok(registry.DigestCheck{At: 5, Digest: registry.Digest{}})
	if _, yes := n.Diverged(); yes {
		t.Fatal("diverged from itself")
	}
	file := save(t, n.FSM)
	n.ok(registry.DigestCheck{At: index, Digest: registry.Digest{1}})
	n.ok(registry.DigestCheck{At: index + 1, Digest: registry.Digest{1}})
	if at, yes := n.Diverged(); !yes || at != index {
		t.Errorf("diverged at %d, %t, want %d", at, yes, index)
	}
	load(t, n.FSM, file)
	if _, yes := n.Diverged(); yes {
		t.Error("a restored snapshot left the alarm on")
	}
}
