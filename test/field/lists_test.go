package field

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
)

// TestServiceList_PagesWithoutGapsAndPastTheEnd: a page past the last was a 500 or all
// data, and count was the size of the page (alibaba/nacos #4477, #5204, #7502, #824,
// #13449).
func TestServiceList_PagesWithoutGapsAndPastTheEnd(t *testing.T) {
	c := startCluster(t)
	for i := range 25 {
		c.Leader().MustRegister(fmt.Sprintf("G1@@page-%02d", i), "10.1.0.1", 80, lasting)
	}
	c.Leader().MustRegister("other", "10.1.0.1", 80, lasting)
	var order []string // of the first node
	for _, m := range c.Members() {
		var all []string
		for page, want := range []int{10, 10, 5, 0} {
			var got struct {
				Count int
				Doms  []string
			}
			c.Until(fmt.Sprintf("page %d on %s", page+1, m.ID), func() bool {
				a, err := m.Do(http.MethodGet, "/service/list", fmt.Sprintf("groupName=G1&pageNo=%d&pageSize=10", page+1))
				return err == nil && json.Unmarshal([]byte(a.Body), &got) == nil && got.Count == 25
			})
			if len(got.Doms) != want || got.Doms == nil {
				t.Errorf("page %d on %s: %d names, want %d", page+1, m.ID, len(got.Doms), want)
			}
			all = append(all, got.Doms...)
		}
		if order == nil {
			order = slices.Clone(all)
		}
		if !slices.Equal(all, order) {
			t.Errorf("%s names %v, %s %v", m.ID, all, c.Members()[0].ID, order)
		}
		slices.Sort(all)
		if distinct := slices.Compact(slices.Clone(all)); len(distinct) != 25 {
			t.Errorf("%s: %d distinct names of 25", m.ID, len(distinct))
		}
	}
}

// TestList_IsTheSameTextOnEveryNodeAndCall: the order of hosts changed from call to call,
// and clients took that for news (alibaba/nacos #865, #3471, #3499; nacos-sdk-go #285).
func TestList_IsTheSameTextOnEveryNodeAndCall(t *testing.T) {
	c := startCluster(t)
	for i := range 50 {
		c.Members()[i%3].MustRegister("svc", fmt.Sprintf("10.1.%d.1", i*37%50), 1000+i*13%50, lasting)
	}
	read := func(m *member) string {
		a, err := m.Do(http.MethodGet, "/instance/list", "serviceName=svc")
		if err != nil {
			return err.Error()
		}
		return a.Body
	}
	first := read(c.Leader())
	compare := func(times int) {
		t.Helper()
		for _, m := range c.Members() {
			c.Until("the same list on "+m.ID, func() bool { return read(m) == first })
			for range times {
				if got := read(m); got != first {
					t.Fatalf("%s: %s\nfirst: %s", m.ID, got, first)
				}
			}
		}
	}
	compare(30)
	f := c.Followers()[0]
	f.Stop()
	f.Start()
	c.WaitReady()
	compare(3)
}
