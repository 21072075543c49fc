package raftnode

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestAskOthers_EveryOtherMemberThatKnowsAnswers(t *testing.T) {
	c := startCluster(t, 3, func(i int, o *Options) {
		o.OnAsk = map[string]func(context.Context, []byte) ([]byte, error){
			"names": func(_ context.Context, q []byte) ([]byte, error) { return fmt.Appendf(nil, "%s%d", q, i), nil },
			"fails": func(context.Context, []byte) ([]byte, error) { return nil, errors.New("no answer") },
		}
		if i == 2 {
			o.OnAsk["hangs"] = func(ctx context.Context, _ []byte) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() }
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	answers := c.nodes[0].AskOthers(ctx, "names", []byte("node "))
	if len(answers) != 2 || string(answers[c.nodes[1].ID()]) != "node 1" || string(answers[c.nodes[2].ID()]) != "node 2" {
		t.Errorf("%q", answers)
	}
	for _, topic := range []string{"fails", "unknown"} {
		if answers := c.nodes[0].AskOthers(ctx, topic, nil); len(answers) != 0 {
			t.Errorf("%s: %q", topic, answers)
		}
	}
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if answers := c.nodes[0].AskOthers(short, "hangs", nil); len(answers) != 0 {
		t.Errorf("%q", answers)
	}
	c.stop(1)
	if answers := c.nodes[0].AskOthers(ctx, "names", nil); len(answers) != 1 {
		t.Errorf("with a node down: %q", answers)
	}
}
