package httpapi

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

func TestParams_Lenient(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, text, key, want string }{
		{"plain", "a=1&b=2", "b", "2"},
		{"first of several wins", "a=1&a=2", "a", "1"},
		{"plus and percent", "a=x+y%20z%2Bq", "a", "x y z+q"},
		{"decoded once", "a=a%2520b", "a", "a%20b"},
		{"UTF-8", "a=%E5%8C%BA", "a", "区"},
		{"raw UTF-8", "a=区", "a", "区"},
		{"semicolon", "a=1;2&b=3", "a", "1;2"},
		{"stray percent", "a=50%&b=3", "a", "50%"},
		{"broken escape", "a=%ZZ+x", "a", "%ZZ+x"},
		{"escape cut off", "a=%4", "a", "%4"},
		{"equals in value", "a=b=c", "a", "b=c"},
		{"escaped key", "%61=1", "a", "1"},
		{"no value", "a&b=1", "a", ""},
		{"trailing and doubled separators", "&a=1&&", "a", "1"},
		{"raw object keeps plus", `a={"tz":"GMT+8"}&b=1`, "a", `{"tz":"GMT+8"}`},
		{"raw object keeps ampersand", `a={"u":"x&y=z;50%"}&b=1`, "a", `{"u":"x&y=z;50%"}`},
		{"after a raw object", `a={"u":"x&y"}&b=1`, "b", "1"},
		{"raw object with good escapes", `a={"u":"x%20y+z"}`, "a", `{"u":"x y+z"}`},
		{"raw brace that is no object", `a={x&b=1`, "b", "1"},
		{"raw object and more", `a={"u":1}x&b=2`, "a", `{"u":1}x`},
		{"escaped object is a form value", `a=%7B%22u%22%3A%22x+y%22%7D`, "a", `{"u":"x y"}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var p params
			if err := p.parse(tc.text); err != nil {
				t.Fatal(err)
			}
			if got, _ := p.get(tc.key); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestParams_TooMany(t *testing.T) {
	t.Parallel()
	var p params
	if err := p.parse(strings.Repeat("a=1&", maxParams)); err != nil {
		t.Fatalf("%d parameters: %v", maxParams, err)
	}
	if err := p.parse("b=1"); !errors.Is(err, registry.ErrInvalid) {
		t.Errorf("one more: %v, want ErrInvalid", err)
	}
}

// Pairs that say nothing are not counted, so nothing but their cost bounds them: looking to
// the end of the body for each of them took seconds for one request.
func TestParams_EmptyPairsTakeLinearTime(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"separators": strings.Repeat("&", 1<<22), "equal signs": strings.Repeat("=&", 1<<21),
	} {
		var p params
		started := time.Now()
		if err := p.parse(text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		// Far from both: a second on a busy machine, and the minutes of quadratic time.
		if took := time.Since(started); took > 10*time.Second {
			t.Errorf("%s: %d bytes took %s", name, len(text), took)
		}
	}
}

// FuzzParams compares with net/url where that accepts the text and no value is a raw
// object, the one place where the rules differ for well-formed text.
func FuzzParams(f *testing.F) {
	for _, seed := range []string{"a=1&b=2", "a=%zz", `a={"b":"c&d"}&e=f`, "=&=&", "a={&b={\"", "a=%E5;b", "%=+%2"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var p params
		if err := p.parse(text); err != nil {
			return
		}
		values, err := url.ParseQuery(text)
		if err != nil || strings.Contains(text, "={") {
			return
		}
		for key, want := range values {
			if got, found := p.get(key); key != "" && (!found || got != want[0]) {
				t.Errorf("%q: %q = %q, want %q", text, key, got, want[0])
			}
		}
	})
}
