package httpapi

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// readerFunc is a body that a test makes up.
type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

func postBody(s *Server, body io.Reader, length int64) *httptest.ResponseRecorder {
	req := httptest.NewRequest(http.MethodPost, registerPath, body)
	req.ContentLength = length
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, req)
	return w
}

// Headers alone must not cost memory: thousands of requests that announced a long body and
// never sent it made a heap of gigabytes.
func TestBody_AnnouncedLengthTakesNoMemory(t *testing.T) {
	t.Parallel()
	s, _ := newTestServer(t, nil)
	asked := 0
	postBody(s, readerFunc(func(b []byte) (int, error) {
		asked = max(asked, len(b))
		return 0, io.EOF
	}), s.opts.MaxBody)
	if asked == 0 || asked > maxPooled {
		t.Errorf("%d bytes were there for a body that had not come", asked)
	}
}

func TestBody_LongOnesAreBounded(t *testing.T) {
	t.Parallel()
	s, _ := newTestServer(t, func(o *Options) { o.MaxBodies = 1 << 20 })
	long := "x=" + strings.Repeat("a", 200<<10)
	var slow sync.WaitGroup
	var ends []*io.PipeWriter
	for range 2 { // each holds more than a third of all there is
		r, w := io.Pipe()
		ends = append(ends, w)
		slow.Go(func() {
			postBody(s, r, -1)
			_ = r.Close()
		})
		if _, err := io.WriteString(w, long); err != nil {
			t.Fatal(err)
		}
	}
	w := postBody(s, strings.NewReader(long+long), -1)
	wantAnswer(t, w, http.StatusServiceUnavailable, "caused: too many long request bodies at a time;")
	if w.Header().Get("Retry-After") == "" || w.Header().Get("Connection") != "close" {
		t.Errorf("headers %v", w.Header())
	}
	wantAnswer(t, postBody(s, strings.NewReader("x=1"), 3), http.StatusOK, "ok")
	for _, end := range ends {
		_ = end.Close()
	}
	slow.Wait()
	wantAnswer(t, postBody(s, strings.NewReader(long), -1), http.StatusOK, "ok")
	if n := s.bodies.used.Load(); n != 0 {
		t.Errorf("%d bytes are still counted", n)
	}
}

// longList is a server with a service whose list is some 200 KiB long, and room for limit
// bytes of such answers.
func longList(t *testing.T, limit int64) *Server {
	t.Helper()
	s, _ := newTestServer(t, func(o *Options) { o.MaxAnswers = limit })
	metadata := url.QueryEscape(`{"k":"` + strings.Repeat("x", 10<<10) + `"}`)
	for port := range 20 {
		w := do(s, http.MethodPost, fmt.Sprintf("%s/instance?serviceName=svc&ip=10.0.0.1&port=%d&metadata=%s", nsPrefix, port, metadata))
		wantAnswer(t, w, http.StatusOK, "ok")
	}
	return s
}

// sendTo has a client that does not read be answered; the function lets it read.
func sendTo(s *Server, target string) (read func() *stuck) {
	client, done := newStuck(), make(chan struct{})
	go func() {
		defer close(done)
		s.Handler().ServeHTTP(client, httptest.NewRequest(http.MethodGet, target, nil))
	}()
	<-client.begun
	return func() *stuck {
		close(client.letGo)
		<-done
		return client
	}
}

// Clients that ask for a long list of their own choice of clusters and do not read it each
// held one of their own, for a minute, without a bound on all.
func TestAnswers_LongOnesAreBounded(t *testing.T) {
	t.Parallel()
	s := longList(t, 600<<10)
	own := listPath + "&clusters=DEFAULT,other"
	first, second := sendTo(s, own), sendTo(s, own)
	w := do(s, http.MethodGet, own)
	wantAnswer(t, w, http.StatusServiceUnavailable, "caused: too many long answers at a time;")
	if w.Header().Get("Retry-After") == "" || w.Header().Get("Content-Length") != "" {
		t.Errorf("headers %v", w.Header())
	}
	wantAnswer(t, do(s, http.MethodGet, nsPrefix+"/instance?serviceName=svc&ip=10.0.0.9&port=1"), http.StatusInternalServerError, "caused: no matched ip found!;")
	for _, read := range []func() *stuck{first, second} {
		if client := read(); client.Code != http.StatusOK || strings.Count(client.Body.String(), `"ip"`) != 20 {
			t.Errorf("a client that reads at last: %d, %d bytes", client.Code, client.Body.Len())
		}
	}
	if w := do(s, http.MethodGet, own); w.Code != http.StatusOK {
		t.Errorf("afterwards: %d", w.Code)
	}
	if n := s.answers.used.Load(); n != 0 {
		t.Errorf("%d bytes are still counted", n)
	}
}

// The list that all ask for is one however many read it; that of each older state is
// another one while somebody reads it.
func TestAnswers_SharedListsCountOnce(t *testing.T) {
	t.Parallel()
	s := longList(t, 600<<10)
	var readers []func() *stuck
	for range 20 {
		readers = append(readers, sendTo(s, listPath))
	}
	one := s.answers.used.Load()
	if one < 200<<10 || one > 300<<10 {
		t.Fatalf("%d bytes counted for one list", one)
	}
	do(s, http.MethodPost, registerPath)
	readers = append(readers, sendTo(s, listPath))
	do(s, http.MethodDelete, registerPath)
	wantAnswer(t, do(s, http.MethodGet, listPath), http.StatusServiceUnavailable, "caused: too many long answers at a time;")
	for _, read := range readers {
		if client := read(); client.Code != http.StatusOK {
			t.Errorf("a client that reads at last: %d", client.Code)
		}
	}
	if n := s.answers.used.Load(); n != 0 {
		t.Errorf("%d bytes are still counted", n)
	}
	if w := do(s, http.MethodGet, listPath); w.Code != http.StatusOK || s.answers.used.Load() != 0 {
		t.Errorf("afterwards: %d, %d bytes counted", w.Code, s.answers.used.Load())
	}
}
