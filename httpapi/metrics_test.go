package httpapi

import (
	"net/http"
	"strings"
	"testing"
)

func TestMetrics_ARouteHasNoneBeforeItsFirstRequest(t *testing.T) {
	t.Parallel()
	s, _ := newTestServer(t, nil)
	do(s, http.MethodPost, registerPath)
	text := do(s, http.MethodGet, "/metrics").Body.String()
	if want := `rollcall_http_request_seconds_count{method="POST",route="/nacos/v1/ns/instance"} 1`; !strings.Contains(text, want) {
		t.Errorf("no %s in\n%s", want, text)
	}
	if n := strings.Count(text, "rollcall_http_request_seconds_count"); n != 1 {
		t.Errorf("%d routes have a histogram after one request", n)
	}
}
