package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/rollcall-io/rollcall/test/faults/figures"
)

const (
	// shortTimeout and longTimeout bound the tests of one package.
	shortTimeout = 10 * time.Minute
	longTimeout  = 30 * time.Minute
	// repetitions is how often the tests of packages without a long form run in the long one.
	repetitions = 5
)

// outcome counts how a test ended.
type outcome struct{ passed, failed, skipped int }

// runAll runs all tests of the entries, one package after the other: the machine is the
// test's alone, as far as that is in our hands.
func runAll(entries []entry, long bool) (map[string][]*figures.Row, map[string]*outcome) {
	names := map[string][]string{}
	var order []string
	for _, e := range entries {
		for _, test := range e.Tests {
			at := strings.LastIndex(test, ".")
			pkg, name := test[:at], test[at+1:]
			if names[pkg] == nil {
				order = append(order, pkg)
			}
			if !slices.Contains(names[pkg], name) {
				names[pkg] = append(names[pkg], name)
			}
		}
	}
	rows, outcomes := map[string][]*figures.Row{}, map[string]*outcome{}
	for _, pkg := range order {
		start := time.Now()
		fmt.Fprintf(os.Stderr, "%s, %d tests ... ", pkg, len(names[pkg]))
		err := runPackage(pkg, names[pkg], long, rows, outcomes)
		fmt.Fprintf(os.Stderr, "%d s\n", int(time.Since(start).Seconds()))
		if err != nil {
			fmt.Fprintln(os.Stderr, "faults:", err)
		}
	}
	return rows, outcomes
}

// hasLongForm tells whether the package's tests read the environment for a long form.
func hasLongForm(pkg string) bool { return pkg == "test/e2e" || pkg == "internal/clustertest" }

func arguments(pkg string, names []string, long bool) []string {
	args := []string{"test", "-v", "-run", "^(" + strings.Join(names, "|") + ")$"}
	timeout, count := shortTimeout, 1
	if long {
		timeout = longTimeout
		if !hasLongForm(pkg) {
			count = repetitions
		}
	}
	return append(args, fmt.Sprintf("-count=%d", count), "-timeout", timeout.String(), "./"+pkg)
}

func runPackage(pkg string, names []string, long bool, rows map[string][]*figures.Row, outcomes map[string]*outcome) error {
	cmd := exec.Command("go", arguments(pkg, names, long)...)
	cmd.Env = os.Environ()
	if long {
		cmd.Env = append(cmd.Env, "ROLLCALL_E2E=long")
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return err
	}
	text := listen(pkg, out, rows, outcomes)
	if err := cmd.Wait(); err != nil {
		kept, keepErr := keepLog(pkg, text)
		if keepErr != nil {
			return keepErr
		}
		return fmt.Errorf("%s: %w; what it printed is in %s", pkg, err, kept)
	}
	return nil
}

// listen reads the output of `go test -v` and returns it whole.
func listen(pkg string, out io.Reader, rows map[string][]*figures.Row, outcomes map[string]*outcome) string {
	var all strings.Builder
	in := bufio.NewReader(out)
	for {
		text, err := in.ReadString('\n')
		all.WriteString(text)
		if _, after, found := strings.Cut(text, figures.Mark); found {
			if r, ok := parse(after); ok {
				rows[r.Test] = append(rows[r.Test], r)
			}
		}
		count(pkg, text, outcomes)
		if err != nil {
			return all.String()
		}
	}
}

// count counts the end of a test that is no part of another.
func count(pkg, text string, outcomes map[string]*outcome) {
	rest, found := strings.CutPrefix(text, "--- ")
	if !found {
		return
	}
	words := strings.Fields(rest)
	if len(words) < 2 {
		return
	}
	key := pkg + "." + words[1]
	if outcomes[key] == nil {
		outcomes[key] = &outcome{}
	}
	switch o := outcomes[key]; words[0] {
	case "PASS:":
		o.passed++
	case "FAIL:":
		o.failed++
	case "SKIP:":
		o.skipped++
	}
}

// keepLog writes what failed tests printed where it can be read.
func keepLog(pkg, text string) (string, error) {
	f, err := os.CreateTemp("", "faults-"+strings.ReplaceAll(pkg, "/", "-")+"-*.log")
	if err != nil {
		return "", err
	}
	if _, err := f.WriteString(text); err != nil {
		return "", err
	}
	return f.Name(), f.Close()
}
