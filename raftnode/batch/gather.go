package batch

import "time"

const (
	// gatherFrom is how many items the last batch must have had for the next to wait.
	gatherFrom = 8
	// gatherShare times the wait is at most what the last batch took.
	gatherShare = 2
	// gatherMax bounds the wait on slow disks and long ways.
	gatherMax = time.Millisecond
	// gatherLooks is how often a wait looks whether they came.
	gatherLooks = 4
)

// ending is the end of a batch.
type ending struct {
	items int
	took  time.Duration
	at    time.Time
}

// gather waits, when a batch of many items has just ended, for those whom it answered to
// come again: sent at once, the next batch would hold only what came while the last was
// under way, and a batch costs its work on every node however little it holds. The wait
// ends when they are there, or enough for a batch to go beside others. Where few items
// come, and after a pause, there is none.
func (q *Queue) gather() {
	q.mu.Lock()
	n, busy, last := q.waitingLocked(), q.underway > 0, q.last
	q.mu.Unlock()
	wait := min(last.took/gatherShare, gatherMax)
	if busy || n == 0 || last.items < gatherFrom || time.Since(last.at) > wait {
		return
	}
	enough := min(n+last.items, q.limits.Deepen)
	for range gatherLooks {
		if n >= enough {
			return
		}
		time.Sleep(wait / gatherLooks)
		n = q.waiting()
	}
}

func (q *Queue) waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waitingLocked()
}

func (q *Queue) waitingLocked() int {
	return len(q.lines[Client].items) + len(q.lines[Background].items)
}
