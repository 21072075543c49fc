// Command faults runs the tests that make faults and prints one table of what was tried
// and what held. It is what scripts/faults.sh runs; it ends with 1 when anything failed.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/rollcall-io/rollcall/test/faults/figures"
)

func main() {
	long := flag.Bool("long", false, "the long form of each test, and repetitions; an hour at most")
	asJSON := flag.Bool("json", false, "print JSON instead of a table")
	only := flag.String("only", "", "only rows whose number or fault contains the text")
	from := flag.String("from", "", "print the table of a file of figures instead of running anything")
	first := flag.Bool("first", false, "of each planted fault try only the first test that must catch it")
	planted := flag.String("planted", "", "directory of planted faults: show that a test catches each")
	flag.Parse()
	if *planted != "" {
		os.Exit(catch(*planted, *only, *first))
	}
	var lines []line
	if *from != "" {
		rows, err := read(*from)
		if err != nil {
			fmt.Fprintln(os.Stderr, "faults:", err)
			os.Exit(2)
		}
		lines = gather(matrix, rows, nil)
	} else {
		chosen := choose(*only)
		rows, outcomes := runAll(chosen, *long)
		lines = gather(chosen, rows, outcomes)
	}
	if *asJSON {
		out := json.NewEncoder(os.Stdout)
		out.SetIndent("", "  ")
		_ = out.Encode(lines) // to standard output
	} else {
		show(os.Stdout, lines)
	}
	for _, l := range lines {
		if l.bad() {
			os.Exit(1)
		}
	}
}

// choose are the rows whose number is, or whose text contains, the given one.
func choose(text string) []entry {
	var chosen []entry
	for _, e := range matrix {
		if text == "" || e.ID == text || strings.Contains(e.Fault, text) {
			chosen = append(chosen, e)
		}
	}
	return chosen
}

// read reads the rows that tests appended to a file.
func read(path string) (map[string][]*figures.Row, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rows := map[string][]*figures.Row{}
	in := bufio.NewScanner(f)
	for in.Scan() {
		if r, ok := parse(in.Text()); ok {
			rows[r.Test] = append(rows[r.Test], r)
		}
	}
	return rows, in.Err()
}

func parse(text string) (*figures.Row, bool) {
	r := &figures.Row{}
	return r, json.Unmarshal([]byte(text), r) == nil && r.Test != ""
}

// show prints the table.
func show(w io.Writer, lines []line) {
	format := "%-4s %-44s %6s %9s %9s %5s %6s %9s %9s  %s\n"
	fmt.Fprintf(w, format, "row", "fault", "rounds", "ops", "acked", "lost", "false", "immortals", "outage", "result")
	for _, l := range lines {
		outage := "-"
		if l.OutageMs >= 0 {
			outage = fmt.Sprintf("%.2f s", float64(l.OutageMs)/1000)
		}
		fmt.Fprintf(w, format, l.ID, l.Fault, number(l.Rounds), number(l.Operations), number(l.Acknowledged),
			number(l.Lost), number(l.FalseEvictions), number(l.Immortals), outage, l.Result)
	}
}

func number(n int) string {
	if n < 0 {
		return "-"
	}
	return fmt.Sprint(n)
}
