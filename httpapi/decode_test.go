package httpapi

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func zipped(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestBody_Coding(t *testing.T) {
	t.Parallel()
	const form = "serviceName=svc&ip=10.0.0.1&port=80"
	whole := zipped(t, form)
	for _, tc := range []struct {
		name, coding string
		body         []byte
		status       int
		text         string
	}{
		{"plain", "", []byte(form), 200, "ok"},
		{"identity", "identity", []byte(form), 200, "ok"},
		{"gzip", "gzip", whole, 200, "ok"},
		{"gzip in capitals", "GZIP", whole, 200, "ok"},
		{"cut off", "gzip", whole[:len(whole)-9], 400, `caused: body "": ended early;`},
		{"no gzip", "gzip", []byte(form), 400, `caused: body "": could not be read: gzip: invalid header;`},
		{"another coding", "br", []byte(form), 415, "caused: Content-Encoding br is not supported: send gzip or identity;"},
		{"unpacks to more than the limit", "gzip", zipped(t, form+"&x="+strings.Repeat("x", 1<<20)), 413,
			"caused: request body is larger than 4096 bytes;"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s, f := newTestServer(t, func(o *Options) { o.MaxBody = 4 << 10 })
			req := httptest.NewRequest(http.MethodPost, nsPrefix+"/instance", bytes.NewReader(tc.body))
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			req.Header.Set("Content-Encoding", tc.coding)
			w := httptest.NewRecorder()
			s.Handler().ServeHTTP(w, req)
			wantAnswer(t, w, tc.status, tc.text)
			if (len(f.proposed) > 0) != (tc.status == 200) {
				t.Errorf("proposed %v", f.proposed)
			}
		})
	}
}

func TestParams_Encoding(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ text, want string }{
		{"a=%E5%8C%BA&encoding=UTF-8", "区"},
		{"a=%E5%8C%BA&encoding=GBK", "区"}, // UTF-8 stays, whatever is said
		{"a=%C7%F8&encoding=GBK", "区"},
		{"a=%C7%F8&encoding=gb2312", "区"},
		{"a=%E9&encoding=ISO-8859-1", "é"},
		{"a=%E9&encoding=klingon", "\xe9"},
		{"a=plain&encoding=GBK", "plain"},
	} {
		var p params
		if err := p.parse(tc.text); err != nil {
			t.Fatal(err)
		}
		charset, _ := p.get("encoding")
		p.reread(charset)
		if got, _ := p.get("a"); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.text, got, tc.want)
		}
	}
}

func TestParams_JSON(t *testing.T) {
	t.Parallel()
	var p params
	if err := p.parseJSON(`{"a":"x","n":1.50,"b":true,"m":{"k":"v"},"z":null} `); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"a": "x", "n": "1.50", "b": "true", "m": `{"k":"v"}`, "z": ""} {
		if got, _ := p.get(key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	for _, bad := range []string{"", "[]", `{"a":1}x`, `{"a":`, "null", "{" + strings.Repeat(`"a":1,`, maxParams) + `"a":1}`} {
		p.reset()
		if err := p.parseJSON(bad); err == nil {
			t.Errorf("%.40q was read as %v", bad, p.list)
		}
	}
}

// A JSON body counts on the routes of the open API alone.
func TestBody_JSON(t *testing.T) {
	t.Parallel()
	s, _ := newTestServer(t, nil)
	send := func(path, body string) *httptest.ResponseRecorder {
		req := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json; charset=utf-8")
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, req)
		return w
	}
	const body = `{"serviceName":"svc","ip":"10.0.0.1","port":80,"metadata":{"a":"1"}}`
	wantAnswer(t, send(v2NsPrefix+"/instance", body), 200, `{"code":0,"message":"success","data":"ok"}`)
	wantAnswer(t, send(nsPrefix+"/instance", body), 400, "caused: Param 'serviceName' is required.;")
	wantAnswer(t, send(v2NsPrefix+"/instance", body+"x"), 400,
		`{"code":20002,"message":"parameter validate error","data":"body \"`+strings.ReplaceAll(body, `"`, `\"`)+`x\": must be a JSON object"}`)
}
