package httpapi

import (
	"strconv"
	"strings"

	"github.com/rollcall-io/rollcall/registry"
)

// maxParams bounds the parameters of one request; a Nacos client sends about 15.
const maxParams = 1000

var errTooManyParams = registry.Invalid("parameters", "more than "+strconv.Itoa(maxParams), "too many parameters")

// maxRawObjects bounds how many unescaped JSON values of one text are looked for.
const maxRawObjects = 8

// params are the parameters of a request, query before body. The zero value is empty
// and reset makes it so again, keeping its memory.
type params struct{ list []param }

type param struct{ key, value string }

func (p *params) reset() {
	clear(p.list)
	p.list = p.list[:0]
}

// get is the value of key: the first of several, so that the query wins over the
// body. Missing: "" and false.
func (p *params) get(key string) (string, bool) {
	for i := range p.list {
		if p.list[i].key == key {
			return p.list[i].value, true
		}
	}
	return "", false
}

// parse adds the pairs of a query string or form body. It is lenient, since clients
// send bodies that were never escaped (Go SDK 1.x): `;` is an ordinary character, a
// value with a broken escape is taken as it is, and a value that starts with a raw
// `{` keeps its `+` and, when it is a whole JSON object, its `&` too. Everything is
// decoded once. The values share memory with text.
func (p *params) parse(text string) error {
	objects := 0 // raw objects looked for; each look may read to the end of text
	for text != "" {
		var key, value string
		key, value, text = cutPair(text, &objects)
		if key == "" && value == "" {
			continue
		}
		if len(p.list) == maxParams {
			return errTooManyParams
		}
		p.list = append(p.list, param{unescape(key, true), unescape(value, !strings.HasPrefix(value, "{"))})
	}
	return nil
}

// cutPair takes one pair off the front of text, undecoded. Apart from raw objects it
// looks no further than the pair, so that a text of many pairs takes linear time.
func cutPair(text string, objects *int) (key, value, rest string) {
	pair, rest, _ := strings.Cut(text, "&")
	key, value, _ = strings.Cut(pair, "=")
	if !strings.HasPrefix(value, "{") || *objects == maxRawObjects {
		return key, value, rest
	}
	*objects++
	after := text[len(key)+1:]
	if n := rawObject(after); n > 0 {
		return key, after[:n], strings.TrimPrefix(after[n:], "&")
	}
	return key, value, rest
}

// rawObject is the length of the JSON object at the front of text when a pair ends
// right after it, else 0.
func rawObject(text string) int {
	v, rest, ok := scanValue(text)
	if !ok || (rest != "" && rest[0] != '&') {
		return 0
	}
	return len(v.raw)
}

// unescape decodes percent escapes and, if plus is set, `+`. Text with a broken
// escape is returned as it is.
func unescape(s string, plus bool) string {
	escapes := 0
	change := false
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '%':
			if i+2 >= len(s) || !isHex(s[i+1]) || !isHex(s[i+2]) {
				return s
			}
			escapes++
			i += 2
		case s[i] == '+' && plus:
			change = true
		}
	}
	if escapes == 0 && !change {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) - 2*escapes)
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '%':
			b.WriteByte(unhex(s[i+1])<<4 | unhex(s[i+2]))
			i += 2
		case s[i] == '+' && plus:
			b.WriteByte(' ')
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func unhex(c byte) byte {
	switch {
	case c >= 'a':
		return c - 'a' + 10
	case c >= 'A':
		return c - 'A' + 10
	}
	return c - '0'
}
