package main

import (
	"strings"

	"github.com/rollcall-io/rollcall/test/faults/figures"
)

// line is a row of the table: all tests of an entry together. -1 is "not looked at".
type line struct {
	ID             string `json:"id"`
	Fault          string `json:"fault"`
	Rounds         int    `json:"rounds"`
	Operations     int    `json:"operations"`
	Acknowledged   int    `json:"acknowledged"`
	Lost           int    `json:"lost"`
	FalseEvictions int    `json:"falseEvictions"`
	Immortals      int    `json:"immortals"`
	OutageMs       int64  `json:"outageMs"`
	// Result is `held`, or what did not, or that a test was skipped or is not there.
	Result string   `json:"result"`
	Tests  []string `json:"tests"`
}

const (
	held    = "held"
	skipped = "skipped"
)

// bad tells whether the row fails the run. Skipped is no proof, and said in the table.
func (l line) bad() bool {
	return l.Result != held && l.Result != skipped || l.Lost > 0 || l.FalseEvictions > 0 || l.Immortals > 0
}

// gather makes the table. Without outcomes, which only a run has, a row consists of what
// its tests reported, and rows of which none did are left out.
func gather(entries []entry, rows map[string][]*figures.Row, outcomes map[string]*outcome) []line {
	var lines []line
	for _, e := range entries {
		l := line{
			ID: e.ID, Fault: e.Fault, Tests: e.Tests, Result: held, Operations: -1, Acknowledged: -1, Lost: -1,
			FalseEvictions: -1, Immortals: -1, OutageMs: -1,
		}
		reported := false
		for _, test := range e.Tests {
			name := test[strings.LastIndex(test, ".")+1:]
			for _, r := range rows[name] {
				l.add(r)
				reported = true
			}
			if outcomes != nil {
				l.judge(name, outcomes[test], len(rows[name]) > 0)
			}
		}
		if outcomes != nil || reported {
			lines = append(lines, l)
		}
	}
	return lines
}

func (l *line) add(r *figures.Row) {
	sum := func(to *int, n int) {
		if n >= 0 {
			*to = max(*to, 0) + n
		}
	}
	l.Rounds += r.Rounds
	sum(&l.Operations, r.Operations)
	sum(&l.Acknowledged, r.Acknowledged)
	sum(&l.Lost, r.Lost)
	sum(&l.FalseEvictions, r.FalseEvictions)
	sum(&l.Immortals, r.Immortals)
	l.OutageMs = max(l.OutageMs, r.OutageMs)
	switch {
	case r.Failed:
		l.Result = "FAILED " + r.Test
	case r.Skipped && l.Result == held:
		l.Result = skipped
	}
}

// judge takes the test's own outcome into the row. Each time that a test without figures
// passed is a round.
func (l *line) judge(name string, o *outcome, figures bool) {
	switch {
	case o == nil || o.failed+o.passed+o.skipped == 0:
		l.Result = "NOT RUN " + name
	case o.failed > 0:
		l.Result = "FAILED " + name
	case o.passed == 0 && l.Result == held:
		l.Result = skipped
	}
	if o != nil && !figures {
		l.Rounds += o.passed
	}
}
