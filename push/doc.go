// Package push tells subscribers of changes: by UDP those clients of Nacos 1.x that
// asked for it in a query (Pusher), and by streams of events whoever watches (Watches).
//
// Each node serves the subscribers that asked it, out of its own applied state. What is
// sent is always the state of the moment of sending, never a queued copy of an older
// one: per service there is one mark "changed", and whoever sends looks again
// afterwards. So a change is never lost to one that was being sent, a slow subscriber
// has nothing that could pile up, and time never runs backwards. What a list looks like
// is for the Renderer to say; this package imports registry alone.
//
// Goroutines: Pusher.Run starts the schedule, its senders and the reader of
// acknowledgements, Watches.Run the dispatcher of events. Both end with their context
// and wait for what they started.
package push
