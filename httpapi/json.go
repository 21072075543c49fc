package httpapi

import (
	"strconv"
	"unicode/utf8"

	"github.com/rollcall-io/rollcall/registry"
)

const hexDigits = "0123456789abcdef"

// appendString appends s as a JSON string. Bytes that are not UTF-8 become the
// replacement character.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				b = append(append(b, s[start:i]...), "\ufffd"...)
				start = i + 1
			}
			i += n
			continue
		}
		b = append(b, s[start:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		start = i
	}
	return append(append(b, s[start:]...), '"')
}

// appendMetadata appends m as a JSON object, {} when it is empty.
func appendMetadata(b []byte, m registry.Metadata) []byte {
	b = append(b, '{')
	for i := range m {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, m[i].Key)
		b = append(b, ':')
		b = appendString(b, m[i].Value)
	}
	return append(b, '}')
}

// appendDouble appends a number as Java prints a double: always with a fraction.
func appendDouble(b []byte, f float64) []byte { return appendReal(b, f, 64) }

// appendFloat is appendDouble for what Nacos keeps in 32 bits.
func appendFloat(b []byte, f float64) []byte { return appendReal(b, f, 32) }

func appendReal(b []byte, f float64, bits int) []byte {
	at := len(b)
	b = strconv.AppendFloat(b, f, 'f', -1, bits)
	for _, c := range b[at:] {
		if c == '.' {
			return b
		}
	}
	return append(b, '.', '0')
}

func appendBool(b []byte, v bool) []byte { return strconv.AppendBool(b, v) }

func appendInt(b []byte, n int64) []byte { return strconv.AppendInt(b, n, 10) }
