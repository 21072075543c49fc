package httpapi

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/simplifiedchinese"

	"github.com/rollcall-io/rollcall/registry"
)

// charsets are those that the parameter `encoding` may name beside UTF-8, in lower case.
var charsets = map[string]encoding.Encoding{
	"iso-8859-1": charmap.ISO8859_1, "latin1": charmap.ISO8859_1, "gbk": simplifiedchinese.GBK,
	"gb2312": simplifiedchinese.GBK, "gb18030": simplifiedchinese.GB18030,
}

// reread decodes the values that are no UTF-8 from the charset that the request says they
// are in. UTF-8 is left alone whatever it says, and an unknown charset has no effect.
// Nacos re-reads what it has decoded as UTF-8 before, which can only spoil a text.
func (p *params) reread(charset string) {
	known := charsets[strings.ToLower(javaTrim(charset))]
	if known == nil {
		return
	}
	for i := range p.list {
		if v := &p.list[i].value; !utf8.ValidString(*v) {
			if text, err := known.NewDecoder().String(*v); err == nil {
				*v = text
			}
		}
	}
}

// parseJSON adds the members of a JSON object: texts, numbers and booleans as they are,
// objects and arrays (metadata, a selector) as their source text, nulls as missing.
func (p *params) parseJSON(text string) error {
	tooMany := false
	rest, ok := scanObject(text, func(key string, v jsonValue) bool {
		if tooMany = len(p.list) == maxParams; tooMany {
			return false
		}
		value, scalar := v.scalar()
		if !scalar {
			value = v.raw
		}
		if !v.isNull() {
			p.list = append(p.list, param{key, value})
		}
		return true
	})
	switch {
	case tooMany:
		return errTooManyParams
	case !ok || skipSpace(rest) != "":
		return registry.Invalid("body", text, "must be a JSON object")
	}
	return nil
}
