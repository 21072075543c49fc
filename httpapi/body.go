package httpapi

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/rollcall-io/rollcall/registry"
)

// drainFactor times MaxBody is how much of a body that is too large is read before the
// refusal, so that the client is there to read it instead of being cut off while sending.
const drainFactor = 8

// firstRead is how much memory the reading of a body starts with.
const firstRead = 4 << 10

// readParams reads the query and, on every verb, a form body.
func (r *request) readParams() error {
	if err := r.readSources(); err != nil {
		return err
	}
	if charset, found := r.params.get("encoding"); found {
		r.params.reread(charset)
	}
	return nil
}

func (r *request) readSources() error {
	req := r.gin.Request
	if err := r.params.parse(req.URL.RawQuery); err != nil {
		return err
	}
	if req.ContentLength == 0 || req.Body == nil || req.Body == http.NoBody {
		return nil
	}
	contentType, _, _ := strings.Cut(strings.ToLower(req.Header.Get("Content-Type")), ";")
	if contentType = strings.TrimSpace(contentType); strings.HasPrefix(contentType, "multipart/") {
		return &reply{status: http.StatusUnsupportedMediaType, closing: true, text: "Content-Type " + shorten(contentType) +
			" is not supported: send parameters in the query or as application/x-www-form-urlencoded"}
	}
	text, err := r.readBody()
	if err != nil {
		return err
	}
	// Nacos reads parameters from forms alone; a JSON body is no error and says nothing. On
	// the routes of the open API, which nobody sends JSON by accident, it counts.
	switch {
	case contentType == "" || contentType == "application/x-www-form-urlencoded":
		err = r.params.parse(text)
	case contentType == "application/json" && r.v2:
		err = r.params.parseJSON(text)
	}
	return err
}

// readBody is the whole body as a string, refused when it is over the limit. Memory is
// taken as the body comes, whatever length was announced, and a share of it is counted
// while the request lasts: many long bodies at once are refused as an overload.
func (r *request) readBody() (string, error) {
	limit, body := r.srv.opts.MaxBody, r.gin.Request.Body
	if n := r.gin.Request.ContentLength; n > limit {
		return "", r.tooLarge(limit)
	}
	content, err := r.unpacked(io.LimitReader(body, limit+1))
	if err != nil {
		return "", err
	}
	b := r.buffer()
	for {
		if len(b) == cap(b) {
			size := min(max(firstRead, 2*int64(cap(b))), limit+1)
			if err := r.hold(2 * size); err != nil { // the text is made of it in the end
				return "", closing(err)
			}
			b = append(make([]byte, 0, size), b...)
		}
		n, err := content.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		r.out = b
		switch {
		case int64(len(b)) > limit:
			return "", r.tooLarge(limit)
		case err == io.EOF:
			return string(b), nil
		case err != nil:
			return "", bodyError(err)
		}
	}
}

// closing ends the connection after the refusal, since what is left of the body was not
// read.
func closing(err error) error {
	e, _ := replyTo(err)
	last := *e
	last.closing = true
	return &last
}

// unpacked is the body's content: itself, or what it holds when it was sent zipped.
func (r *request) unpacked(body io.Reader) (io.Reader, error) {
	switch coding := strings.ToLower(r.gin.Request.Header.Get("Content-Encoding")); coding {
	case "", "identity":
		return body, nil
	case "gzip", "x-gzip":
		content, err := gzip.NewReader(body)
		if err != nil {
			return nil, bodyError(err)
		}
		return content, nil
	default:
		return nil, &reply{status: http.StatusUnsupportedMediaType, closing: true,
			text: "Content-Encoding " + shorten(coding) + " is not supported: send gzip or identity"}
	}
}

func (r *request) tooLarge(limit int64) error {
	// What is left unread is dropped with the connection; an error here changes nothing.
	_, _ = io.CopyN(io.Discard, r.gin.Request.Body, drainFactor*limit)
	return &reply{status: http.StatusRequestEntityTooLarge, closing: true,
		text: fmt.Sprintf("request body is larger than %d bytes", limit)}
}

// bodyError is a body that could not be read to its end: the client's fault, since its
// connection broke or it was too slow.
func bodyError(err error) error {
	reason := "could not be read: " + err.Error()
	if errors.Is(err, io.ErrUnexpectedEOF) {
		reason = "ended early"
	}
	return registry.Invalid("body", "", reason)
}
