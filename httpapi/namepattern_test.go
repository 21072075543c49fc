package httpapi

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// Counted repetitions make a pattern of 256 bytes cost milliseconds for each name, and so
// minutes for a large registry.
func TestNamePattern_CountedRepetitionsAreBounded(t *testing.T) {
	t.Parallel()
	s, _ := newTestServer(t, nil)
	do(s, http.MethodPost, registerPath)
	names := nsPrefix + "/service/names?expr="
	for _, heavy := range []string{strings.Repeat("(.?){1000}", 25), "(a{500}){2}b{100}", `(\pL?){900}`} {
		if w := do(s, http.MethodGet, names+url.QueryEscape(heavy)); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "repeats too much") {
			t.Errorf("%s: %d %s", heavy, w.Code, w.Body)
		}
	}
	for _, usual := range []string{".*svc.*", "(?i)[A-Z0-9._-]{1,64}@@s(vc|rv)", strings.Repeat("a|", 120) + "svc"} {
		if w := do(s, http.MethodGet, names+url.QueryEscape(usual)); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"svc"`) {
			t.Errorf("%s: %d %s", usual, w.Code, w.Body)
		}
	}
}

func TestNamePattern_EndsWithTheTimeOfARead(t *testing.T) {
	t.Parallel()
	s, _ := newTestServer(t, func(o *Options) { o.ReadTimeout = time.Nanosecond })
	do(s, http.MethodPost, registerPath)
	for _, path := range []string{"/service/names?expr=s.c", "/catalog/services?pageNo=1&pageSize=9&serviceNameParam=s.c"} {
		if w := do(s, http.MethodGet, nsPrefix+path); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "takes too long") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}
