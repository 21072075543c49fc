package registry

import (
	"net/netip"
	"slices"
	"testing"
)

func TestSubscriberQuery_MatchesParts(t *testing.T) {
	k := NewServiceKey("public", "blue", "orders")
	for _, row := range []struct {
		q    SubscriberQuery
		want bool
	}{
		{SubscriberQuery{"public", "blue", "orders"}, true},
		{SubscriberQuery{"public", "lu", "der"}, true},
		{SubscriberQuery{"public", "", ""}, true},
		{SubscriberQuery{"other", "blue", "orders"}, false},
		{SubscriberQuery{"public", "red", "orders"}, false},
		{SubscriberQuery{"public", "blue", "ordersx"}, false},
	} {
		if got := row.q.Matches(k); got != row.want {
			t.Errorf("%+v matches %s: %t", row.q, k, got)
		}
	}
}

func TestSubscriber_CompareOrdersByServiceThenAddress(t *testing.T) {
	at := func(name, addr, agent, clusters string) Subscriber {
		return Subscriber{Service: NewServiceKey("", "", name), Addr: netip.MustParseAddrPort(addr), Agent: agent, Clusters: clusters}
	}
	want := []Subscriber{
		at("a", "10.0.0.2:9", "x", ""), at("b", "10.0.0.1:1", "x", ""), at("b", "10.0.0.1:2", "x", ""),
		at("b", "10.0.0.1:2", "x", "c1"), at("b", "10.0.0.1:2", "y", ""), at("b", "[::1]:1", "x", ""),
	}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, Subscriber.Compare)
	if !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}
