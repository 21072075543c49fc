// Package client joins a Go service to a registry that speaks Nacos over HTTP: rollcall,
// or a stock Nacos 1.x or 2.x server. It registers instances and sends their beats, finds
// instances of other services, and tells of changes.
//
//	c, err := client.New(client.Options{Servers: []string{"10.0.0.1:8848", "10.0.0.2:8848"}})
//	err = c.Register(ctx, client.Registration{Service: "orders", IP: "10.1.0.7", Port: 8080})
//	payments, err := c.Follow(ctx, client.ServiceName{Name: "payments"})
//	instance, err := payments.Pick()
//
// # Registration
//
// What was registered is wanted until it is deregistered. A table of wanted instances is
// compared with the servers by one scheduler: it beats for ephemeral instances, registers
// again what a server has forgotten, repeats a registration that failed and a
// deregistration that did not get through. Registrar ties this to the life of a process.
//
// # Discovery
//
// A followed service is a Snapshot in memory, swapped as a whole. Reading and choosing
// from it blocks on nothing and allocates nothing. It is kept up to date by the server's
// watch stream; by UDP pushes where there is no such stream; by asking again in any case.
// Stream and push are hints only: what counts is a list that was asked for, so a lost,
// repeated, late or forged one costs a request and nothing else.
//
// # Blocking
//
// What takes a context may block: until a server has answered, at most as long as
// Options.Timeout unless it says otherwise, and no longer than the context. Servers are
// asked in turn, each for Options.AttemptTimeout at most; a context that is much shorter
// than that may end at a single server that hangs. What takes no context does not block,
// but for Client.Close and New, which say so.
//
// # Errors
//
// They are matched with errors.Is against ErrClosed, ErrNoInstance, ErrUnavailable,
// ErrPending and ErrUnknown, and with errors.As against *InvalidError, a value that was
// refused before anything was sent, and *ServerError, the answer of a server. An error
// may match several: ErrPending with ErrUnavailable, ErrUnavailable with the context's.
//
// Everything exported is safe for concurrent use unless it says otherwise. There is no
// global state: two clients share nothing.
package client
