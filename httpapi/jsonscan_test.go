package httpapi

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzScanValue holds the scanner to encoding/json: it accepts the same texts and reads
// the same strings.
func FuzzScanValue(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.5e-3,{"b":null}],"c":"\ud83d\ude80\u00e9\n"}`, `[`, `{"a"}`, `01`, `-`, `1.`, `"\x"`,
		`{"a":1,}`, `[true,false,nul]`, ` {} `, `"\ud83d"`, `1e5`, "\"\x01\"", `{"":""}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, rest, ok := scanValue(text)
		whole := ok && skipSpace(rest) == ""
		if want := json.Valid([]byte(text)); whole != want && strings.Count(text, "[")+strings.Count(text, "{") < maxDepth {
			t.Fatalf("scan of %q: whole %v, encoding/json says %v", text, whole, want)
		}
		if !whole || v.kind != '"' || !utf8.ValidString(text) {
			return
		}
		var want string
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatal(err)
		}
		if got, _ := v.scalar(); got != want {
			t.Errorf("unquote %q = %q, want %q", text, got, want)
		}
	})
}

// FuzzScanObject holds objects and arrays to scanValue, which reads them another way.
func FuzzScanObject(f *testing.F) {
	f.Add(`{"a":1,"b":[{}]}`)
	f.Add(`[1,"x",[]]`)
	f.Add(`{"a":1`)
	f.Fuzz(func(t *testing.T, text string) {
		v, rest, ok := scanValue(text)
		objectRest, object := scanObject(text, func(string, jsonValue) bool { return true })
		if want := ok && v.kind == '{'; object != want || object && objectRest != rest {
			t.Errorf("object %q: %v with rest %q, want %v with %q", text, object, objectRest, want, rest)
		}
		arrayRest, array := scanArray(text, func(jsonValue) bool { return true })
		if want := ok && v.kind == '['; array != want || array && arrayRest != rest {
			t.Errorf("array %q: %v with rest %q, want %v with %q", text, array, arrayRest, want, rest)
		}
	})
}

func TestScanValue_Depth(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 100_000)
	if _, _, ok := scanValue(deep + strings.Repeat("]", 100_000)); ok {
		t.Error("a value nested 100,000 times is accepted")
	}
}

// FuzzAppendString holds the encoder to encoding/json: what it writes decodes to the
// same text, invalid bytes replaced.
func FuzzAppendString(f *testing.F) {
	for _, seed := range []string{"", "plain", "q\"b\\", "\x00\x1f\n\r\t\b", "区🚀", "\xff\xfea", "a\xc3", "\u2028<&>"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var got string
		if err := json.Unmarshal(appendString(nil, s), &got); err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		if want := strings.ToValidUTF8(s, "\ufffd"); got != want && utf8.ValidString(s) {
			t.Errorf("%q came back as %q", s, got)
		}
	})
}
