package batch

import (
	"context"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/internal/wire"
)

func TestQueue_FewCommandsWaitForTheBatchUnderWay(t *testing.T) {
	q := NewQueue(Limits{Commands: 100, Bytes: 1000, BatchCommands: 10, BatchBytes: 100, Deepen: 3}, 4)
	put(q, Client, 1)
	if got := len(q.take(time.Now())); got != 1 {
		t.Fatalf("the first batch has %d items: a lone command goes at once", got)
	}
	put(q, Client, 1)
	put(q, Background, 1)
	if got := q.take(time.Now()); got != nil {
		t.Fatalf("%d items went beside the batch under way", len(got))
	}
	put(q, Client, 1)
	if got := len(q.take(time.Now())); got != 2 {
		t.Fatalf("%d items of the clients went when enough waited, want 2", got)
	}
	q.ended(ending{items: 1})
	if got := q.take(time.Now()); got != nil {
		t.Fatalf("%d items went while one batch is still under way", len(got))
	}
	q.ended(ending{items: 2})
	if got := len(q.take(time.Now())); got != 1 {
		t.Fatalf("%d items went once nothing was under way, want 1", got)
	}
}

// Beside batches of many items goes only one of as many, or a full one.
func TestQueue_ManyWaitForAsManyAsAreUnderWay(t *testing.T) {
	q := NewQueue(Limits{Commands: 100, Bytes: 1000, BatchCommands: 10, BatchBytes: 100, Deepen: 2}, 4)
	for _, step := range []struct{ come, sent int }{
		{4, 4}, {3, 0}, {1, 4}, // four beside four
		{7, 0}, {1, 8}, // eight beside twice four
		{9, 0}, {1, 10}, // more than a batch holds is not asked for
	} {
		for range step.come {
			put(q, Client, 1)
		}
		if got := len(q.take(time.Now())); got != step.sent {
			t.Fatalf("%d more: a batch of %d, want %d", step.come, got, step.sent)
		}
	}
	q.ended(ending{items: 10})
	q.ended(ending{items: 8})
	for range 7 {
		put(q, Client, 1)
	}
	if got := q.take(time.Now()); got != nil {
		t.Fatalf("%d items went beside eight", len(got))
	}
	put(q, Client, 1)
	if got := len(q.take(time.Now())); got != 8 {
		t.Fatalf("%d items went beside eight, want 8", got)
	}
}

// What came while a batch was under way goes when it ends, without another wake-up.
func TestRun_WhatWaitedGoesWhenTheBatchEnds(t *testing.T) {
	q := NewQueue(Limits{Commands: 100, Bytes: 1000, BatchCommands: 10, BatchBytes: 100, Deepen: 50}, 4)
	ctx, cancel := context.WithCancel(context.Background())
	begun, release, ended := make(chan int, 10), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		q.Run(ctx, func(items []*Item) func() {
			begun <- len(items)
			return func() {
				<-release
				q.Finish(items, func(int) wire.Outcome { return wire.Outcome{} })
			}
		})
	}()
	t.Cleanup(func() { cancel(); <-ended })
	groups := []*Group{put(q, Client, 1)}
	if n := <-begun; n != 1 {
		t.Fatalf("first batch of %d", n)
	}
	for range 5 {
		groups = append(groups, put(q, Client, 1))
	}
	close(release)
	if n := <-begun; n != 5 {
		t.Fatalf("second batch of %d, want all 5 that waited", n)
	}
	for _, g := range groups {
		if o := outcome(t, g); o.Err != nil {
			t.Fatal(o.Err)
		}
	}
}
