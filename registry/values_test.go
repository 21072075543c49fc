package registry

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestClampWeight(t *testing.T) {
	for _, tc := range []struct{ given, want float64 }{
		{0, 0}, {-1, 0}, {math.Copysign(0, -1), 0}, {math.NaN(), 0}, {math.Inf(-1), 0}, {1e-300, 0.01}, {0.0099, 0.01},
		{0.01, 0.01}, {1, 1}, {10_000, 10_000}, {10_000.1, 10_000}, {math.Inf(1), 10_000},
	} {
		if got := ClampWeight(tc.given); got != tc.want || math.Signbit(got) {
			t.Errorf("%v is clamped to %v, want %v", tc.given, got, tc.want)
		}
	}
}

func TestValidateWeight(t *testing.T) {
	for w, ok := range map[float64]bool{
		0: true, 0.005: true, 1: true, 10_000: true, 10_001: false, -0.1: false, math.Inf(1): false, math.Inf(-1): false,
	} {
		if err := ValidateWeight(w); (err == nil) != ok || err != nil && !errors.Is(err, ErrInvalid) {
			t.Errorf("weight %v: %v", w, err)
		}
	}
	if ValidateWeight(math.NaN()) == nil {
		t.Error("NaN is taken for a weight")
	}
}

func TestParseTimeouts(t *testing.T) {
	def := DefaultTimeouts()
	for name, tc := range map[string]struct {
		interval, beat, delete string // "-" is absent
		want                   Timeouts
		bad                    []string
		fault                  string
	}{
		"absent":              {"-", "-", "-", def, nil, ""},
		"given":               {"1000", "3000", "9000", Timeouts{1000, 3000, 9000}, nil, ""},
		"equal":               {"5000", "5000", "5000", Timeouts{5000, 5000, 5000}, nil, ""},
		"no numbers":          {"5s", "-1", "1.5", def, []string{KeyBeatInterval, KeyBeatTimeout, KeyDeleteTimeout}, ""},
		"blank":               {"", " 9000", "+9000", def, []string{KeyBeatInterval, KeyBeatTimeout, KeyDeleteTimeout}, ""},
		"interval of nothing": {"0", "-", "-", def, []string{KeyBeatInterval}, ""},
		"larger than kept":    {"-", "99999999999999999999", "99999999999999999999", Timeouts{5000, MaxTimeout, MaxTimeout}, nil, ""},
		"beat below":          {"5000", "4999", "-", Timeouts{}, nil, KeyBeatTimeout},
		"delete below":        {"-", "-", "4999", Timeouts{}, nil, KeyDeleteTimeout},
		"interval above":      {"16000", "-", "-", Timeouts{}, nil, KeyBeatTimeout},
		"beat of nothing":     {"-", "0", "-", Timeouts{}, nil, KeyBeatTimeout},
	} {
		var pairs []Pair
		for key, v := range map[string]string{KeyBeatInterval: tc.interval, KeyBeatTimeout: tc.beat, KeyDeleteTimeout: tc.delete} {
			if v != "-" {
				pairs = append(pairs, Pair{key, v})
			}
		}
		got, bad, err := ParseTimeouts(NewMetadata(pairs))
		if tc.fault != "" {
			var e *Error
			if !errors.As(err, &e) || e.Code != CodeInvalid || e.Field != tc.fault {
				t.Errorf("%s: %v, want a fault of %s", name, err, tc.fault)
			}
			continue
		}
		if err != nil || got != tc.want || !reflect.DeepEqual(bad, tc.bad) {
			t.Errorf("%s: %+v, %q, %v; want %+v, %q", name, got, bad, err, tc.want, tc.bad)
		}
	}
}

func TestServiceKey_Parts(t *testing.T) {
	for _, tc := range []struct{ namespace, group, name, want, wantGroup, wantName string }{
		{"", "", "orders", "public/DEFAULT_GROUP@@orders", "DEFAULT_GROUP", "orders"},
		{"dev", "g", "orders", "dev/g@@orders", "g", "orders"},
		{"dev", "g", "h@@orders", "dev/h@@orders", "h", "orders"},
		{"dev", "g", "a@@b@@c", "dev/a@@b@@c", "a", "b"},
		{"dev", "g", "@@orders", "dev/@@orders", "", "orders"},
	} {
		k := NewServiceKey(tc.namespace, tc.group, tc.name)
		if k.String() != tc.want || k.Group() != tc.wantGroup || k.Name() != tc.wantName {
			t.Errorf("%+v: %s, group %q, name %q", tc, k, k.Group(), k.Name())
		}
	}
	bare := ServiceKey{"public", "orders"}
	if bare.Name() != "orders" {
		t.Errorf("name %q", bare.Name())
	}
}

func TestServiceKey_Validate(t *testing.T) {
	for name, tc := range map[string]struct {
		key   ServiceKey
		fault string
	}{
		"plain":           {ServiceKey{"public", "G@@a.b:c_d-e"}, ""},
		"three parts":     {ServiceKey{"public", "a@@b@@c"}, ""},
		"no group":        {ServiceKey{"public", "orders"}, "serviceName"},
		"empty group":     {ServiceKey{"public", "@@orders"}, "serviceName"},
		"empty name":      {ServiceKey{"public", "G@@"}, "serviceName"},
		"blank":           {ServiceKey{"public", "G@@a b"}, "serviceName"},
		"other letters":   {ServiceKey{"public", "G@@é"}, "serviceName"},
		"long name":       {ServiceKey{"public", "G@@" + strings.Repeat("a", MaxName+1)}, "serviceName"},
		"longest name":    {ServiceKey{"public", "G@@" + strings.Repeat("a", MaxName)}, ""},
		"long group":      {ServiceKey{"public", strings.Repeat("g", MaxGroup+1) + "@@a"}, "groupName"},
		"long namespace":  {ServiceKey{strings.Repeat("n", MaxNamespace+1), "G@@a"}, "namespaceId"},
		"odd namespace":   {ServiceKey{"a\nb", "G@@a"}, "namespaceId"},
		"not a character": {ServiceKey{"\xff", "G@@a"}, "namespaceId"},
	} {
		err := ValidateServiceKey(tc.key)
		var e *Error
		if (tc.fault == "") != (err == nil) || err != nil && (!errors.As(err, &e) || e.Field != tc.fault) {
			t.Errorf("%s: %v, want a fault of %q", name, err, tc.fault)
		}
	}
}

func TestAddress_DatumKey(t *testing.T) {
	if got := (Address{"c1", "10.0.0.1", 80}).DatumKey(); got != "10.0.0.1:80:unknown:c1" {
		t.Error(got)
	}
	if got := (Address{"c1", "10.0.0.1", 0}).DatumKey(); got != "10.0.0.1:unknown:c1" {
		t.Error(got)
	}
}

func TestMetadata_ActsLikeAMap(t *testing.T) {
	gen := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Pair {
		return Pair{rapid.StringMatching(`[abc]`).Draw(t, "key"), rapid.StringMatching(`[xy]`).Draw(t, "value")}
	}), 0, 6)
	toMap := func(pairs []Pair) map[string]string {
		m := map[string]string{}
		for _, p := range pairs {
			m[p.Key] = p.Value
		}
		return m
	}
	rapid.Check(t, func(rt *rapid.T) {
		a, b := gen.Draw(rt, "a"), gen.Draw(rt, "b")
		ma, mb := toMap(a), toMap(b)
		m, o := NewMetadata(a), NewMetadata(b)
		original := fmt.Sprint(m)
		merged, without := toMap(append(append([]Pair{}, m...), o...)), toMap(m)
		for k := range mb {
			delete(without, k)
		}
		for what, tc := range map[string]struct {
			got  Metadata
			want map[string]string
		}{"new": {m, ma}, "merged": {m.Merge(o), merged}, "without": {m.Without(o), without}} {
			if !reflect.DeepEqual(toMap(tc.got), tc.want) || len(tc.got) != len(tc.want) {
				rt.Fatalf("%s: %v, want %v", what, tc.got, tc.want)
			}
			for i := 1; i < len(tc.got); i++ {
				if tc.got[i-1].Key >= tc.got[i].Key {
					rt.Fatalf("%s is out of order: %v", what, tc.got)
				}
			}
		}
		if v, found := m.Get("b"); v != ma["b"] || found != (ma["b"] != "") {
			rt.Fatalf("b is %q, %t in %v", v, found, m)
		}
		if fmt.Sprint(m) != original {
			rt.Fatalf("merging changed %s into %v", original, m)
		}
	})
}

func TestSwitches_PairsAndWithAreInverse(t *testing.T) {
	s, err := DefaultSwitches().With("clientBeatInterval", "6000")
	if err != nil {
		t.Fatal(err)
	}
	if s, err = s.With("check", "false"); err != nil {
		t.Fatal(err)
	}
	var back Switches
	for i, p := range s.Pairs() {
		if i > 0 && s.Pairs()[i-1].Key >= p.Key {
			t.Errorf("%s is out of order", p.Key)
		}
		if back, err = back.With(p.Key, p.Value); err != nil {
			t.Fatal(err)
		}
	}
	if back != s || reflect.TypeFor[Switches]().NumField() != len(s.Pairs()) {
		t.Errorf("%+v, want %+v", back, s)
	}
	for _, bad := range []Pair{{"nonsense", "1"}, {"check", "perhaps"}, {"clientBeatInterval", "499"}, {"healthCheckTimes", "0"},
		{"clientBeatInterval", "4294967296"}, {"defaultCacheMillis", "-1"}} {
		if next, err := s.With(bad.Key, bad.Value); !errors.Is(err, ErrInvalid) || next != s {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

func TestError_MatchesByCode(t *testing.T) {
	err := fmt.Errorf("register: %w", ErrKindMismatch.Because("other words"))
	if !errors.Is(err, ErrKindMismatch) || errors.Is(err, ErrInvalid) {
		t.Error(err)
	}
	long := Invalid("ip", strings.Repeat("x", 200), "is odd")
	if len(long.Value) != maxShownValue || !strings.Contains(long.Error(), `ip "xxx`) {
		t.Errorf("%d bytes shown: %s", len(long.Value), long.Error())
	}
	for _, odd := range []string{"a\xff", strings.Repeat("é", 90), "x" + strings.Repeat("é", 90)} {
		if v := Invalid("ip", odd, "is odd").Value; !utf8.ValidString(v) || len(v) > maxShownValue {
			t.Errorf("%q is shown as %q", odd, v)
		}
	}
}

func TestState_CountsAndNamespaces(t *testing.T) {
	s := NewState()
	one, two := fleet(0, "hh"), fleet(0, "hhh")
	s.Publish(one)
	s.Publish(two) // the same key
	if services, instances := s.Counts(); services != 1 || instances != 3 {
		t.Errorf("%d services, %d instances", services, instances)
	}
	c := s.Clone()
	if s.Delete(two.Key) != two || s.Delete(two.Key) != nil || c.Service(two.Key) != two {
		t.Error("deleted in the clone, or not deleted")
	}
	if services, instances := s.Counts(); services != 0 || instances != 0 {
		t.Errorf("%d services, %d instances after the deletion", services, instances)
	}
	if !s.Known("public") || s.Size("public") != 0 || s.AddNamespace("public") || !s.AddNamespace("dev") {
		t.Error("namespaces do not stay known")
	}
	if c.DropNamespace("public") || !s.DropNamespace("dev") || s.Known("dev") {
		t.Error("a namespace with services was dropped, or one without was not")
	}
}
