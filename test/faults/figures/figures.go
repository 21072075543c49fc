// Package figures lets a test report what it tried and what held, in one line of JSON
// that `make faults` turns into a row of its table.
package figures

import (
	"encoding/json"
	"os"
	"sync"
	"testing"
	"time"
)

const (
	// Mark begins the line in the test's log; the JSON of a Row follows.
	Mark = "faults: "
	// FileVariable names the environment variable with a file to which the lines are
	// appended as well: the log of a test that passed is not shown without -v.
	FileVariable = "ROLLCALL_FAULTS_FILE"
)

// Row is what one test saw. A number of -1 was not looked at. Its methods are safe for
// concurrent use; the fields are for the test's goroutine.
type Row struct {
	Test  string `json:"test"`
	Fault string `json:"fault"`
	// Rounds is how often the fault was made.
	Rounds int `json:"rounds"`
	// Operations are requests that were sent, Acknowledged the writes among them that were
	// answered ok, Lost those of them that were not there in the end.
	Operations   int `json:"operations"`
	Acknowledged int `json:"acknowledged"`
	Lost         int `json:"lost"`
	// FalseEvictions are sights of an instance, gone or unhealthy, that had an acknowledged
	// beat inside its timeout. Immortals were still listed after their bound.
	FalseEvictions int `json:"falseEvictions"`
	Immortals      int `json:"immortals"`
	// OutageMs is the longest time without an acknowledged write.
	OutageMs int64  `json:"outageMs"`
	Failed   bool   `json:"failed"`
	Skipped  bool   `json:"skipped"`
	Note     string `json:"note,omitempty"`

	mu sync.Mutex
}

// Track returns the row of a test, which is reported when the test ends, however it does.
func Track(t testing.TB, fault string) *Row {
	r := &Row{
		Test: t.Name(), Fault: fault, Operations: -1, Acknowledged: -1, Lost: -1,
		FalseEvictions: -1, Immortals: -1, OutageMs: -1,
	}
	t.Cleanup(func() {
		r.Failed, r.Skipped = t.Failed(), t.Skipped()
		line, err := json.Marshal(r)
		if err != nil {
			t.Errorf("report: %v", err)
			return
		}
		t.Logf("%s%s", Mark, line)
		if err := keep(line); err != nil {
			t.Errorf("report: %v", err)
		}
	})
	return r
}

// keep appends a line to the file that the environment names, if it does. Several test
// processes may do so at the same time: one write each.
func keep(line []byte) error {
	path := os.Getenv(FileVariable)
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.Write(append(line, '\n')); err != nil {
		_ = f.Close() // the first error is the one to tell
		return err
	}
	return f.Close()
}

// Outage notes a time without an acknowledged write; the longest counts.
func (r *Row) Outage(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.OutageMs = max(r.OutageMs, d.Milliseconds())
}

// Wrote notes writes, of which all that were acknowledged were looked for in the end.
func (r *Row) Wrote(operations, acknowledged, lost int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Operations = max(r.Operations, 0) + operations
	r.Acknowledged = max(r.Acknowledged, 0) + acknowledged
	r.Lost = max(r.Lost, 0) + lost
}
