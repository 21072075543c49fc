package client

import "container/heap"

// dueHeap holds entries by the time at which they are due.
type dueHeap []*entry

// Len is for container/heap, as are Less, Swap, Push and Pop.
func (h dueHeap) Len() int { return len(h) }

// Less puts the one that is due first at the top.
func (h dueHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }

// Swap keeps the entries' places right.
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

// Push appends an entry.
func (h *dueHeap) Push(x any) {
	e := x.(*entry)
	e.at = len(*h)
	*h = append(*h, e)
}

// Pop takes the last.
func (h *dueHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	e.at = -1
	return e
}

func (h *dueHeap) put(e *entry) {
	if e.at >= 0 {
		heap.Fix(h, e.at)
		return
	}
	heap.Push(h, e)
}

func (h *dueHeap) remove(e *entry) {
	if e.at >= 0 {
		heap.Remove(h, e.at)
	}
}
