package httpapi

import (
	"errors"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/rollcall-io/rollcall/registry"
)

func TestParseMetadata(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"":                             nil,
		"  ":                           nil,
		"null":                         nil,
		"{}":                           nil,
		`{"a":"1"}`:                    {"a", "1"},
		`{"a":1.50,"b":true,"c":null}`: {"a", "1.50", "b", "true"},
		`{"a":"1","a":"2"}`:            {"a", "2"},
		`{"a":"1"} and more`:           {"a", "1"},
		`{"区":"上海 东","e":"🚀"}`:         {"e", "🚀", "区", "上海 东"},
		"a=1,b=/m":                     {"a", "1", "b", "/m"},
		"a=1,":                         {"a", "1"},
		"a = 1":                        {"a ", " 1"},
	} {
		m, err := parseMetadata(text)
		var got []string
		for _, p := range m {
			got = append(got, p.Key, p.Value)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("parseMetadata(%q) = %q, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{`{"a":{"b":1}}`, "[1]", "5", `"x"`, "a=1=2", "a=", "a", "{a:1}", "{bad", "a=1,,b=2"} {
		if m, err := parseMetadata(text); err == nil {
			t.Errorf("parseMetadata(%q) = %v, want an error", text, m)
		}
	}
}

// FuzzParseMetadata: whatever is accepted is sorted, without duplicates, and of a text
// that was UTF-8 it is UTF-8.
func FuzzParseMetadata(f *testing.F) {
	f.Add(`{"a":1}`)
	f.Add("a=1,b=2")
	f.Add(`{"\ud800":"x","a":"\u0000"}`)
	f.Fuzz(func(t *testing.T, text string) {
		m, err := parseMetadata(text)
		if err != nil {
			return
		}
		for i, p := range m {
			if i > 0 && m[i-1].Key >= p.Key {
				t.Errorf("%q: not sorted: %q", text, m)
			}
			if utf8.ValidString(text) && (!utf8.ValidString(p.Key) || !utf8.ValidString(p.Value)) {
				t.Errorf("%q: %q is not UTF-8", text, p)
			}
		}
	})
}

// FuzzParseBeat: a beat is refused with a text that says why, or names an address whose
// port is in range.
func FuzzParseBeat(f *testing.F) {
	f.Add(`{"ip":"10.0.0.1","port":80,"weight":1.0,"metadata":{"a":"b"},"cluster":"c"}`, "")
	f.Add(`{"ip":"10.0.0.1"}`, "80")
	f.Add(`{"ip":"10.0.0.1","port":80`, "")
	f.Add(`{"ip":1,"port":"x","ephemeral":"false"}`, "")
	f.Fuzz(func(t *testing.T, text, fallback string) {
		spec, err := parseBeat(text, fallback)
		if err != nil {
			if e, known := replyTo(err); !known || e.text == "" || e.status != 400 {
				t.Errorf("%q: answered %+v", text, e)
			}
			return
		}
		if spec.IP == "" || !spec.Enabled || !spec.Healthy {
			t.Errorf("%q: %+v", text, spec)
		}
	})
}

func TestSelectorLabels(t *testing.T) {
	t.Parallel()
	const two = "CONSUMER.label.A = PROVIDER.label.A & CONSUMER.label.B=PROVIDER.label.B"
	if got, ok := selectorLabels(two); !ok || !slices.Equal(got, []string{"A", "B"}) {
		t.Errorf("selectorLabels = %q, %v", got, ok)
	}
	for _, text := range []string{"x", "CONSUMER.label.A = PROVIDER.label.B", "CONSUMER.label. = PROVIDER.label.", two + "&"} {
		if got, ok := selectorLabels(text); ok {
			t.Errorf("selectorLabels(%q) = %q, want a refusal", text, got)
		}
	}
	if _, err := parseMetadataFilter(`{"type":"label","expression":"INSTANCE.metadata.k"}`); !errors.Is(err, registry.ErrInvalid) {
		t.Errorf("a filter without a value: %v", err)
	}
}

func TestPageOf(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ count, no, size, from, to int }{
		{25, 1, 10, 0, 10}, {25, 3, 10, 20, 25}, {25, 4, 10, 25, 25}, {25, 0, 10, 0, 10}, {25, -7, 10, 0, 10},
		{25, 1, 0, 0, 0}, {25, 1, 1<<31 - 1, 0, 25}, {25, 1<<31 - 1, 1<<31 - 1, 25, 25}, {0, 1, 10, 0, 0},
	} {
		if from, to, err := pageOf(tc.count, tc.no, tc.size); err != nil || from != tc.from || to != tc.to {
			t.Errorf("pageOf(%d, %d, %d) = %d, %d, %v", tc.count, tc.no, tc.size, from, to, err)
		}
	}
}
