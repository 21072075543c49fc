package httpapi

// maxDepth bounds the nesting of a JSON text that a client sends.
const maxDepth = 64

// jsonValue is one value inside a JSON text, not decoded yet. It shares memory with
// the text.
type jsonValue struct {
	// kind is the first byte of the value, '0' for every number.
	kind byte
	// raw is the value as it stands in the text.
	raw string
}

// scanObject reads the object at the front of text and calls field for each member in
// order, duplicates included. It returns what follows the object; ok is false when
// the text is not such an object or field said so.
func scanObject(text string, field func(key string, v jsonValue) bool) (rest string, ok bool) {
	s := skipSpace(text)
	if s == "" || s[0] != '{' {
		return text, false
	}
	s = skipSpace(s[1:])
	if s != "" && s[0] == '}' {
		return s[1:], true
	}
	for {
		key, after, ok := scanKey(s)
		if !ok {
			return text, false
		}
		v, after, ok := scanValueAt(skipSpace(after), 1)
		if !ok || !field(key, v) {
			return text, false
		}
		s = skipSpace(after)
		if s == "" || (s[0] != ',' && s[0] != '}') {
			return text, false
		}
		if s[0] == '}' {
			return s[1:], true
		}
		s = skipSpace(s[1:])
	}
}

// scanArray is scanObject for an array.
func scanArray(text string, item func(v jsonValue) bool) (rest string, ok bool) {
	s := skipSpace(text)
	if s == "" || s[0] != '[' {
		return text, false
	}
	s = skipSpace(s[1:])
	if s != "" && s[0] == ']' {
		return s[1:], true
	}
	for {
		v, after, ok := scanValueAt(s, 1)
		if !ok || !item(v) {
			return text, false
		}
		s = skipSpace(after)
		if s == "" || (s[0] != ',' && s[0] != ']') {
			return text, false
		}
		if s[0] == ']' {
			return s[1:], true
		}
		s = skipSpace(s[1:])
	}
}

// scanValue reads one value at the front of text, blanks before it allowed.
func scanValue(text string) (v jsonValue, rest string, ok bool) {
	return scanValueAt(skipSpace(text), 0)
}

func scanValueAt(s string, depth int) (v jsonValue, rest string, ok bool) {
	if s == "" || depth > maxDepth {
		return v, s, false
	}
	n := 0
	kind := s[0]
	switch {
	case kind == '"':
		n = stringLen(s)
	case kind == '{':
		n = compositeLen(s, depth)
	case kind == '[':
		n = compositeLen(s, depth)
	case kind == '-' || kind >= '0' && kind <= '9':
		n, kind = numberLen(s), '0'
	default:
		n = wordLen(s)
	}
	if n == 0 {
		return v, s, false
	}
	return jsonValue{kind, s[:n]}, s[n:], true
}

// compositeLen is the length of the object or array at the front of s, 0 when broken.
func compositeLen(s string, depth int) int {
	isObject, closing := s[0] == '{', byte(']')
	if isObject {
		closing = '}'
	}
	at := skipSpace(s[1:])
	if at != "" && at[0] == closing {
		return len(s) - len(at) + 1
	}
	for {
		ok := true
		if isObject {
			if _, at, ok = scanKey(at); !ok {
				return 0
			}
			at = skipSpace(at)
		}
		if _, at, ok = scanValueAt(at, depth+1); !ok {
			return 0
		}
		at = skipSpace(at)
		switch {
		case at == "":
			return 0
		case at[0] == closing:
			return len(s) - len(at) + 1
		case at[0] != ',':
			return 0
		}
		at = skipSpace(at[1:])
	}
}

// scanKey reads `"key":` at the front of s.
func scanKey(s string) (key, rest string, ok bool) {
	if s == "" || s[0] != '"' {
		return "", s, false
	}
	n := stringLen(s)
	if n == 0 {
		return "", s, false
	}
	key = unquote(s[:n])
	s = skipSpace(s[n:])
	if s == "" || s[0] != ':' {
		return "", s, false
	}
	return key, s[1:], true
}

func skipSpace(s string) string {
	for s != "" && (s[0] == ' ' || s[0] == '\t' || s[0] == '\n' || s[0] == '\r') {
		s = s[1:]
	}
	return s
}

// stringLen is the length of the string literal at the front of s with its quotes.
func stringLen(s string) int {
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return i + 1
		case c < ' ':
			return 0
		case c == '\\':
			i++
			if i >= len(s) {
				return 0
			}
			switch s[i] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				if _, ok := hex4(s[i+1:]); !ok {
					return 0
				}
				i += 4
			default:
				return 0
			}
		}
	}
	return 0
}

// numberLen is the length of the number at the front of s by JSON's grammar.
func numberLen(s string) int {
	i := 0
	if s[i] == '-' {
		i++
	}
	whole := digits(s, i)
	if whole == 0 || (s[i] == '0' && whole > 1) {
		return 0
	}
	i += whole
	if i < len(s) && s[i] == '.' {
		n := digits(s, i+1)
		if n == 0 {
			return 0
		}
		i += 1 + n
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		i++
		if i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
		n := digits(s, i)
		if n == 0 {
			return 0
		}
		i += n
	}
	return i
}

// digits counts the decimal digits of s from i on.
func digits(s string, i int) int {
	n := 0
	for i+n < len(s) && s[i+n] >= '0' && s[i+n] <= '9' {
		n++
	}
	return n
}

func wordLen(s string) int {
	for _, word := range [...]string{"true", "false", "null"} {
		if len(s) >= len(word) && s[:len(word)] == word {
			return len(word)
		}
	}
	return 0
}
