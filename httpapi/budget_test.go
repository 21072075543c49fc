package httpapi

import (
	"io"
	"net/http"
	"net/http/httptest"
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
