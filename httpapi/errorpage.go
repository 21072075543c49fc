package httpapi

import (
	"net/http"
	"strings"
	"time"
)

// noRoute answers what no route takes: 501 under the naming prefix, as Nacos' filter
// does for unknown paths and verbs alike. Elsewhere a known path with another verb is
// 500, with the text of its framework, and an unknown one 404.
func (s *Server) noRoute(r *request) error {
	path := r.gin.Request.URL.Path
	if path == nsPrefix || strings.HasPrefix(path, nsPrefix+"/") {
		return r.errorPage(http.StatusNotImplemented, "no such api:"+r.gin.Request.Method+":"+path)
	}
	if s.paths[strings.TrimSuffix(path, "/")] {
		if strings.HasPrefix(path, v2Prefix) {
			return r.wrongVerbV2()
		}
		return failed("Request method '" + shorten(r.gin.Request.Method) + "' not supported")
	}
	return r.errorPage(http.StatusNotFound, "No message available")
}

// errorPage answers in the form of Spring Boot's error controller: JSON, or a page when
// the client likes HTML best.
func (r *request) errorPage(status int, message string) error {
	contentType := r.textType()
	if &contentType[0] == &typeHTML[0] {
		return r.write(status, typeHTML, htmlPage(r.buffer(), status, message))
	}
	b := append(r.buffer(), `{"timestamp":"`...)
	b = append(b, timestamp(time.Now())...)
	b = append(b, `","status":`...)
	b = appendInt(b, int64(status))
	b = append(b, `,"error":`...)
	b = appendString(b, http.StatusText(status))
	b = append(b, `,"message":`...)
	b = appendString(b, message)
	b = append(b, `,"path":`...)
	b = appendString(b, r.gin.Request.URL.Path)
	return r.write(status, typeJSON, append(b, '}'))
}

func htmlPage(b []byte, status int, message string) []byte {
	b = append(b, "<html><body><h1>Whitelabel Error Page</h1><p>This application has no explicit mapping for /error, so you are seeing this as a fallback.</p><div id='created'>"...)
	b = append(b, time.Now().UTC().Format("Mon Jan 02 15:04:05 UTC 2006")...)
	b = append(b, "</div><div>There was an unexpected error (type="...)
	b = append(b, http.StatusText(status)...)
	b = append(b, ", status="...)
	b = appendInt(b, int64(status))
	b = append(b, ").</div><div>"...)
	b = append(b, htmlSafe.Replace(message)...)
	return append(b, "</div></body></html>"...)
}
