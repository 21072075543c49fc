package registry

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// fleet makes a service of instances given as letters: h healthy, u unhealthy, d healthy
// and disabled, x unhealthy and disabled; capitals are in cluster c2.
func fleet(threshold float64, letters string) *Service {
	d := NewDraft(ServiceKey{"public", "G@@s"}, 1)
	d.SetSpec(ServiceSpec{ProtectThreshold: threshold})
	for i, l := range letters {
		in := &Instance{Spec: Spec{Address: Address{Cluster: "c1", IP: fmt.Sprintf("%02d", i)}}}
		if l < 'a' {
			in.Cluster, l = "c2", l+'a'-'A'
		}
		in.Healthy, in.Enabled = l == 'h' || l == 'd', l == 'h' || l == 'u'
		d.Put(in)
	}
	return d.Service()
}

func TestSelect(t *testing.T) {
	for name, tc := range map[string]struct {
		threshold float64
		letters   string
		query     Query
		want      string // ip and shown health of each host
		protected bool
	}{
		"all healthy":                {0, "hh", Query{}, "00h 01h", false},
		"unhealthy come first":       {0, "hu", Query{}, "01u 00h", false},
		"healthy only":               {0, "hu", Query{HealthyOnly: true}, "00h", false},
		"none healthy, default":      {0, "uu", Query{}, "00h 01h", true},
		"none healthy, healthy only": {0, "uu", Query{HealthyOnly: true}, "00h 01h", true},
		"none healthy of three":      {0, "uuu", Query{}, "00h 01h 02h", true},
		"one of three below 0.5":     {0.5, "huu", Query{}, "00h 01h 02h", true},
		"two of three above 0.5":     {0.5, "hhu", Query{}, "02u 00h 01h", false},
		"share equal to threshold":   {0.5, "hu", Query{}, "00h 01h", true},
		"threshold 1, all healthy":   {1, "hh", Query{}, "00h 01h", false},
		"disabled are never shown":   {0, "hd", Query{}, "00h", false},
		"disabled count":             {0.5, "dduu", Query{}, "02h 03h", true},
		"only disabled":              {0, "dx", Query{}, "", false},
		"one cluster":                {0, "hH", Query{Clusters: []string{"c2"}}, "01h", false},
		"its own share":              {0, "hUU", Query{Clusters: []string{"c2"}}, "01h 02h", true},
		"unknown cluster beside":     {0, "hH", Query{Clusters: []string{"c1", "nope"}}, "00h", false},
		"unknown cluster":            {0, "hH", Query{Clusters: []string{"nope"}}, "", false},
		"empty service":              {0.9, "", Query{}, "", false},
	} {
		sel := Select(fleet(tc.threshold, tc.letters), tc.query)
		got := ""
		for _, h := range sel.Hosts {
			got += " " + h.IP + map[bool]string{true: "h", false: "u"}[h.Healthy]
		}
		if len(got) > 0 {
			got = got[1:]
		}
		if got != tc.want || sel.Protected != tc.protected {
			t.Errorf("%s: %q, protected %t; want %q, %t", name, got, sel.Protected, tc.want, tc.protected)
		}
	}
}

// A dumb second statement of the rule: filter, count, filter again.
func TestSelect_AgreesWithASimplerOne(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		letters := rapid.StringMatching(`[huddxHUDX]{0,8}`).Draw(rt, "fleet")
		threshold := rapid.SampledFrom([]float64{0, 0.25, 0.5, 1}).Draw(rt, "threshold")
		q := Query{HealthyOnly: rapid.Bool().Draw(rt, "healthy only")}
		if rapid.Bool().Draw(rt, "one cluster") {
			q.Clusters = []string{"c2"}
		}
		s := fleet(threshold, letters)
		var asked []*Instance
		healthy := 0
		for _, in := range s.Instances() {
			if len(q.Clusters) == 0 || in.Cluster == "c2" {
				asked = append(asked, in)
				if in.Healthy {
					healthy++
				}
			}
		}
		protect := len(asked) > 0 && float64(healthy)/float64(len(asked)) <= threshold
		want := map[string]bool{}
		for _, in := range asked {
			if in.Enabled && (in.Healthy || protect || !q.HealthyOnly) {
				want[in.IP] = in.Healthy || protect
			}
		}
		sel := Select(s, q)
		if sel.Found != len(asked) || len(sel.Hosts) != len(want) {
			rt.Fatalf("%d found, %d hosts, want %d, %d", sel.Found, len(sel.Hosts), len(asked), len(want))
		}
		for _, h := range sel.Hosts {
			if shown, there := want[h.IP]; !there || shown != h.Healthy {
				rt.Fatalf("%s shown as %t, want %t, %t", h.IP, h.Healthy, shown, there)
			}
		}
		if !slices.IsSortedFunc(sel.Hosts, func(a, b Selected) int {
			if a.Healthy != b.Healthy {
				return map[bool]int{true: 1, false: -1}[a.Healthy]
			}
			return a.Address.Compare(b.Address)
		}) {
			rt.Fatalf("out of order: %+v", sel.Hosts)
		}
	})
}
