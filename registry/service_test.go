package registry

import (
	"testing"
)

func TestService_InCluster(t *testing.T) {
	t.Parallel()
	d := NewDraft(NewServiceKey("", "", "svc"), 1)
	for _, a := range []Address{{"b", "10.0.0.2", 1}, {"b", "10.0.0.1", 1}, {"a", "10.0.0.1", 1}, {"c", "", 0}} {
		d.Put(&Instance{Spec: Spec{Address: a}})
	}
	for cluster, want := range map[string]int{"a": 1, "b": 2, "c": 1, "": 0, "bb": 0, "z": 0} {
		got := d.Service().InCluster(cluster)
		if len(got) != want {
			t.Errorf("cluster %q: %d instances, want %d", cluster, len(got), want)
		}
		for _, in := range got {
			if in.Cluster != cluster {
				t.Errorf("cluster %q shows one of %q", cluster, in.Cluster)
			}
		}
	}
}
