package registry

import "testing"

func TestWatch_Matches(t *testing.T) {
	k := NewServiceKey("public", "blue", "orders-eu")
	for _, row := range []struct {
		w    Watch
		want bool
	}{
		{Watch{Namespace: "public", Group: "blue", Name: "orders-eu"}, true},
		{Watch{Namespace: "public", Group: "blue", Name: "orders"}, false},
		{Watch{Namespace: "public", Group: "blue", Name: "orders", Prefix: true}, true},
		{Watch{Namespace: "public", Group: "blue", Prefix: true}, true},
		{Watch{Namespace: "public", Group: "red", Prefix: true}, false},
		{Watch{Namespace: "public", Group: AnyGroup, Prefix: true}, true},
		{Watch{Namespace: "other", Group: AnyGroup, Prefix: true}, false},
	} {
		if got := row.w.Matches(k); got != row.want {
			t.Errorf("%+v matches: %t", row.w, got)
		}
	}
	if got, one := (Watch{Namespace: "public", Group: "blue", Name: "orders-eu"}).Key(); !one || got != k {
		t.Errorf("%s %t", got, one)
	}
	if _, one := (Watch{Namespace: "public", Group: "blue", Prefix: true}).Key(); one {
		t.Error("a watch of many has one key")
	}
}

func TestReason_EveryOneHasAName(t *testing.T) {
	seen := map[string]bool{}
	for r := ReasonRegistered; r <= ReasonEdited; r++ {
		if r.String() == "" || seen[r.String()] {
			t.Errorf("reason %d is called %q", r, r)
		}
		seen[r.String()] = true
	}
	if Reason(0).String() != "" || Reason(99).String() != "" {
		t.Error("what is no reason has a name")
	}
}
