package httpapi

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// isNull tells whether the value is JSON's null.
func (v jsonValue) isNull() bool { return v.kind == 'n' }

// scalar is a string's content, or the source text of a number or boolean; ok is false
// for null, objects and arrays.
func (v jsonValue) scalar() (text string, ok bool) {
	switch v.kind {
	case '"':
		return unquote(v.raw), true
	case '0', 't', 'f':
		return v.raw, true
	}
	return "", false
}

// unquote decodes a string literal that stringLen accepted. A lone surrogate becomes
// the replacement character.
func unquote(literal string) string {
	s := literal[1 : len(literal)-1]
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' {
			return unquoteEscapes(s, i)
		}
	}
	return s
}

func unquoteEscapes(s string, first int) string {
	out := append(make([]byte, 0, len(s)), s[:first]...)
	for i := first; i < len(s); i++ {
		if s[i] != '\\' {
			out = append(out, s[i])
			continue
		}
		i++
		switch s[i] {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r, n := unicodeEscape(s[i+1:])
			out = utf8.AppendRune(out, r)
			i += n
		default:
			out = append(out, s[i])
		}
	}
	return string(out)
}

// unicodeEscape decodes the digits after `\u`, with a second escape when both form a
// surrogate pair, and returns how many bytes of s it took.
func unicodeEscape(s string) (rune, int) {
	r, _ := hex4(s)
	if !utf16.IsSurrogate(r) {
		return r, 4
	}
	if len(s) >= 10 && s[4] == '\\' && s[5] == 'u' {
		if low, ok := hex4(s[6:]); ok {
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				return pair, 10
			}
		}
	}
	return utf8.RuneError, 4
}

func hex4(s string) (rune, bool) {
	if len(s) < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(s[:4], 16, 32)
	return rune(n), err == nil
}
