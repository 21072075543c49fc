package registry

import "testing"

func TestSelectLater(t *testing.T) {
	t.Parallel()
	d := NewDraft(NewServiceKey("", "", "svc"), 1)
	put := func(ip string, healthy, enabled bool) {
		d.Put(&Instance{Spec: Spec{Address: Address{Cluster: "c", IP: ip}, Healthy: healthy, Enabled: enabled}})
	}
	put("1", true, true)
	put("2", false, true)
	put("3", true, false)
	check := func(name string, q Query, hosts, healthy int, protected bool) {
		t.Helper()
		sel := SelectLater(d.Service(), q)
		n := 0
		for _, h := range sel.Hosts {
			if h.Healthy {
				n++
			}
		}
		if len(sel.Hosts) != hosts || n != healthy || sel.Protected != protected {
			t.Errorf("%s: %d hosts, %d healthy, protected %t; want %d, %d, %t", name, len(sel.Hosts), n, sel.Protected, hosts, healthy, protected)
		}
	}
	check("all", Query{}, 2, 1, false)
	check("healthy only", Query{HealthyOnly: true}, 1, 1, false)
	check("another cluster", Query{Clusters: []string{"x"}}, 0, 0, false)
	d.SetSpec(ServiceSpec{ProtectThreshold: 0.5})
	check("threshold of a service that a registration made", Query{}, 2, 1, false)
	d.SetManual()
	check("threshold", Query{}, 2, 2, true)
	check("threshold after healthyOnly", Query{HealthyOnly: true}, 1, 1, false)
}
