package httpapi

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rollcall-io/rollcall/registry"
)

// stuck is a client that reads nothing until it is let go.
type stuck struct {
	*httptest.ResponseRecorder
	begun, letGo chan struct{}
}

func newStuck() *stuck {
	return &stuck{httptest.NewRecorder(), make(chan struct{}, 1), make(chan struct{})}
}

func (s *stuck) Write(b []byte) (int, error) {
	s.begun <- struct{}{}
	<-s.letGo
	return s.ResponseRecorder.Write(b)
}

// longBatch is one event of more than a stream sends at a time.
func longBatch() registry.WatchBatch {
	in := watched("10.0.0.1", 1)
	in.Metadata = registry.NewMetadata([]registry.Pair{{Key: "k", Value: strings.Repeat("x", 3*streamChunk)}})
	return registry.WatchBatch{Index: 5, Events: []registry.ServiceEvent{{Service: registry.NewServiceKey("", "", "a"), Index: 5,
		Changes: []registry.InstanceEvent{{Reason: registry.ReasonRegistered, After: in}}}}}
}

// Thousands of clients that read nothing must neither hold up those who do nor fill the
// memory: each held all that it was to be told.
func TestEventStream_ClientsThatDoNotRead(t *testing.T) {
	t.Parallel()
	memory := budget{limit: 12 * streamChunk}
	turns := make(chan struct{}, 1)
	stream := func(w http.ResponseWriter) *eventStream {
		return &eventStream{w: w, rc: http.NewResponseController(w), turns: turns, memory: &memory}
	}
	client := newStuck()
	blocked, done := stream(client), make(chan error, 1)
	go func() { done <- blocked.batch(longBatch()) }()
	<-client.begun

	reader := httptest.NewRecorder()
	if err := stream(reader).batch(manyReasons()); err != nil || !strings.Contains(reader.Body.String(), "id: 12\n") {
		t.Errorf("a client that reads: %v %s", err, reader.Body)
	}
	if err := stream(httptest.NewRecorder()).batch(longBatch()); !errors.Is(err, errStreamMemory) {
		t.Errorf("one more long event: %v", err)
	}
	close(client.letGo)
	if err := <-done; err != nil || client.Body.Len() < 3*streamChunk {
		t.Errorf("the client that reads at last: %v, %d bytes", err, client.Body.Len())
	}
	if n := memory.used.Load(); n != 0 || len(turns) != 0 || blocked.b != nil {
		t.Errorf("%d bytes counted, %d turns taken, %d bytes kept", n, len(turns), cap(blocked.b))
	}
	if err := stream(httptest.NewRecorder()).batch(longBatch()); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
