package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rollcall-io/rollcall/test/faults/figures"
)

// exists tells whether a test of the form package.TestName is in the tree.
func exists(t *testing.T, test string) bool {
	t.Helper()
	at := strings.LastIndex(test, ".")
	files, err := filepath.Glob(filepath.Join("../..", test[:at], "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	begins := regexp.MustCompile(`(?m)^func ` + test[at+1:] + `\(`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if begins.Match(text) {
			return true
		}
	}
	return false
}

func TestMatrix_EveryTestIsThere(t *testing.T) {
	for _, e := range matrix {
		for _, test := range e.Tests {
			if !exists(t, test) {
				t.Errorf("%s: no test %s", e.ID, test)
			}
		}
	}
}

// TestMatrix_NamesEveryRow: each fault and each invariant is tried, or docs/faults.md says
// why not.
func TestMatrix_NamesEveryRow(t *testing.T) {
	text, err := os.ReadFile("../../docs/faults.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "## Not covered")
	excused, _, _ := strings.Cut(rest, "\n## ")
	for letter, n := range map[string]int{"M": 20, "I": 18} {
		for i := 1; i <= n; i++ {
			id := fmt.Sprint(letter, i)
			tried := slices.ContainsFunc(matrix, func(e entry) bool { return e.ID == id })
			if !tried && !strings.Contains(excused, "| "+id+",") {
				t.Errorf("%s is neither tried nor excused", id)
			}
		}
	}
}

// TestPlanted_ApplyToTheCodeAsItIs keeps the planted faults up to date: whether tests catch
// them takes longer and is for scripts/faults.sh planted.
func TestPlanted_ApplyToTheCodeAsItIs(t *testing.T) {
	all, err := load("planted")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		for _, test := range p.catches {
			if !exists(t, test) {
				t.Errorf("%s: no test %s", p.name, test)
			}
		}
		if p.what == "" || len(p.catches) == 0 {
			t.Errorf("%s says not what it does, or nothing catches it", p.name)
		}
	}
	t.Chdir("../..")
	for _, p := range all {
		if _, err := p.overlay(t.TempDir()); err != nil {
			t.Error(err)
		}
	}
}

func TestGather_AnythingLostOrFailedOrNotRunIsBad(t *testing.T) {
	const test = "pkg.TestX"
	entries := []entry{{"M1", "a fault", []string{test}}}
	good := figures.Row{Test: "TestX", Rounds: 2, Operations: 10, Acknowledged: 9, Lost: 0, FalseEvictions: -1, Immortals: -1, OutageMs: 40}
	ran := map[string]*outcome{test: {passed: 1}}
	for name, tc := range map[string]struct {
		change   func(*figures.Row)
		outcomes map[string]*outcome
		bad      bool
	}{
		"held":     {func(*figures.Row) {}, ran, false},
		"lost":     {func(r *figures.Row) { r.Lost = 1 }, ran, true},
		"evicted":  {func(r *figures.Row) { r.FalseEvictions = 1 }, ran, true},
		"immortal": {func(r *figures.Row) { r.Immortals = 1 }, ran, true},
		"failed":   {func(*figures.Row) {}, map[string]*outcome{test: {failed: 1}}, true},
		"not run":  {func(*figures.Row) {}, map[string]*outcome{}, true},
		"skipped":  {func(r *figures.Row) { r.Skipped = true }, map[string]*outcome{test: {skipped: 1}}, false},
	} {
		r := figures.Row{
			Test: good.Test, Rounds: good.Rounds, Operations: good.Operations, Acknowledged: good.Acknowledged, Lost: good.Lost,
			FalseEvictions: good.FalseEvictions, Immortals: good.Immortals, OutageMs: good.OutageMs,
		}
		tc.change(&r)
		lines := gather(entries, map[string][]*figures.Row{"TestX": {&r}}, tc.outcomes)
		if len(lines) != 1 || lines[0].bad() != tc.bad {
			t.Errorf("%s: %+v", name, lines)
		}
	}
}
