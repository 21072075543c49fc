package fsm

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/rollcall-io/rollcall/registry"
)

// The generators draw from few keys, so that commands meet one another.

func genServiceKey(t *rapid.T) registry.ServiceKey {
	return registry.ServiceKey{
		Namespace: rapid.SampledFrom([]string{"public", "public", "dev"}).Draw(t, "namespace"),
		Grouped:   rapid.SampledFrom([]string{"G@@a", "G@@a", "G@@a", "G@@b", "not a key"}).Draw(t, "service"),
	}
}

func genAddress(t *rapid.T) registry.Address {
	return registry.Address{
		Cluster: rapid.SampledFrom([]string{"DEFAULT", "DEFAULT", "c1"}).Draw(t, "cluster"),
		IP:      rapid.SampledFrom([]string{"10.0.0.1", "10.0.0.1", "10.0.0.1", "10.0.0.2", ""}).Draw(t, "ip"),
		Port:    rapid.SampledFrom([]uint16{80, 80, 0}).Draw(t, "port"),
	}
}

func genMetadata(t *rapid.T) registry.Metadata {
	var pairs []registry.Pair
	for _, k := range []string{"a", registry.KeyBeatInterval, registry.KeyIDGenerator} {
		if rapid.IntRange(0, 3).Draw(t, "has "+k) == 0 {
			v := rapid.SampledFrom([]string{"1", "2000", "20000", "snowflake"}).Draw(t, k)
			pairs = append(pairs, registry.Pair{Key: k, Value: v})
		}
	}
	return registry.NewMetadata(pairs)
}

func genSpec(t *rapid.T) registry.Spec {
	return registry.Spec{
		Address:   genAddress(t),
		Ephemeral: rapid.IntRange(0, 3).Draw(t, "kind") > 0,
		Enabled:   rapid.Bool().Draw(t, "enabled"), Healthy: rapid.Bool().Draw(t, "healthy"),
		Weight:   rapid.SampledFrom([]float64{0, 0.001, 1, 1, 1, 20_000, -1}).Draw(t, "weight"),
		App:      rapid.SampledFrom([]string{"", "shop"}).Draw(t, "app"),
		Metadata: genMetadata(t),
	}
}

func genTerm(t *rapid.T, s *script) uint64 {
	return s.term - uint64(rapid.IntRange(0, 7).Draw(t, "older term")/7)
}

func genRef(t *rapid.T, f *FSM) registry.LeaseRef {
	number := uint32(rapid.IntRange(0, 6).Draw(t, "lease"))
	l, found := f.Lease(number)
	if !found || rapid.IntRange(0, 5).Draw(t, "other grant") == 0 {
		return registry.LeaseRef{Number: number, Grant: registry.Position{Index: 11}}
	}
	return l.LeaseRef
}

func genKind(t *rapid.T) registry.Kind {
	return registry.Kind(rapid.IntRange(0, 2).Draw(t, "kind asked for"))
}

func genPatch(t *rapid.T) registry.Patch {
	s := genSpec(t)
	p := registry.Patch{Key: genAddress(t).In(genServiceKey(t))}
	bits := rapid.IntRange(0, 63).Draw(t, "given")
	p.Merge = bits&32 > 0
	if bits&1 > 0 {
		p.Weight = &s.Weight
	}
	if bits&2 > 0 {
		p.Enabled = &s.Enabled
	}
	if bits&4 > 0 {
		p.Healthy = &s.Healthy
	}
	if bits&8 > 0 {
		p.App = &s.App
	}
	if bits&16 > 0 {
		p.Metadata = &s.Metadata
	}
	return p
}

func genMetadataBatch(t *rapid.T) registry.MetadataBatch {
	c := registry.MetadataBatch{
		Service: genServiceKey(t), Delete: rapid.Bool().Draw(t, "delete"), Kind: genKind(t), Metadata: genMetadata(t),
	}
	for range rapid.IntRange(0, 2).Draw(t, "targets") {
		c.Targets = append(c.Targets, registry.Target{Address: genAddress(t), Ephemeral: rapid.Bool().Draw(t, "ephemeral")})
	}
	return c
}

func genServiceSpec(t *rapid.T) registry.ServiceSpec {
	return registry.ServiceSpec{
		ProtectThreshold: rapid.SampledFrom([]float64{0, 0.5, 2}).Draw(t, "threshold"),
		Metadata:         genMetadata(t),
		Selector:         registry.Selector{Type: rapid.SampledFrom([]string{"", "none", "label"}).Draw(t, "selector")},
	}
}

func genNamespace(t *rapid.T) registry.Namespace {
	return registry.Namespace{
		ID:   rapid.SampledFrom([]string{"dev", "prod", ""}).Draw(t, "id"),
		Name: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "name"),
	}
}

// genInstanceCommand draws what clients and operators do to instances.
func genInstanceCommand(t *rapid.T) registry.Command {
	switch rapid.IntRange(0, 9).Draw(t, "command") {
	case 0, 1:
		return registry.Deregister{Key: genAddress(t).In(genServiceKey(t)), Kind: genKind(t)}
	case 2:
		return registry.Update{Service: genServiceKey(t), Spec: genSpec(t)}
	case 3:
		return genPatch(t)
	case 4:
		return genMetadataBatch(t)
	}
	return registry.Register{Service: genServiceKey(t), Spec: genSpec(t), FromBeat: rapid.IntRange(0, 3).Draw(t, "beat") == 0}
}

// genLeaderCommand draws what the leader proposes.
func genLeaderCommand(t *rapid.T, f *FSM, s *script) registry.Command {
	term := genTerm(t, s)
	switch rapid.IntRange(0, 4).Draw(t, "leader's command") {
	case 0:
		return registry.EvictBatch{Term: term, Items: []registry.LeaseRef{genRef(t, f), genRef(t, f)}}
	case 1:
		ref := genRef(t, f)
		return registry.HealthBatch{Term: term, Items: []registry.HealthItem{
			{Lease: ref.Number, Grant: ref.Grant, Healthy: rapid.Bool().Draw(t, "health")},
		}}
	case 2:
		k := genAddress(t).In(genServiceKey(t))
		item := registry.ProbeItem{Key: k, Healthy: rapid.Bool().Draw(t, "health")}
		if in := f.Instance(k); in != nil {
			item.Generation = in.Generation
		}
		return registry.ProbeBatch{Term: term, Items: []registry.ProbeItem{item}}
	case 3:
		return registry.TermStart{Term: term, Node: "n1", Level: 1}
	}
	c := registry.ServiceDelete{Key: genServiceKey(t)}
	if svc := f.Service(c.Key); svc != nil && rapid.Bool().Draw(t, "guarded") {
		c.IfRevision = svc.Revision
	}
	return c
}

// genSettingsCommand draws what operators set.
func genSettingsCommand(t *rapid.T) registry.Command {
	switch rapid.IntRange(0, 12).Draw(t, "settings") {
	case 0:
		return registry.ServiceCreate{Key: genServiceKey(t), Spec: genServiceSpec(t)}
	case 1:
		return registry.ServiceUpdate{Key: genServiceKey(t), Spec: genServiceSpec(t)}
	case 2:
		c := registry.NewCluster(rapid.SampledFrom([]string{"DEFAULT", "c2", "a b"}).Draw(t, "cluster"))
		c.CheckPort = uint16(rapid.IntRange(80, 81).Draw(t, "check port"))
		return registry.ClusterUpdate{Key: genServiceKey(t), Cluster: c}
	case 3:
		entry := rapid.SampledFrom([]string{"check", "pushEnabled", "nonsense"}).Draw(t, "entry")
		return registry.SwitchSet{Entry: entry, Value: fmt.Sprint(rapid.Bool().Draw(t, "value"))}
	case 4:
		return registry.NamespaceCreate{Namespace: genNamespace(t)}
	case 5:
		return registry.NamespaceUpdate{Namespace: genNamespace(t)}
	case 6:
		return registry.NamespaceDelete{ID: rapid.SampledFrom([]string{"dev", "prod", "public"}).Draw(t, "id")}
	case 7:
		return registry.ClusterInit{ClusterID: rapid.SampledFrom([]string{"one", "two", ""}).Draw(t, "cluster id")}
	}
	if rapid.IntRange(0, 4).Draw(t, "accounts") > 0 {
		return genAccountsCommand(t)
	}
	return registry.FeatureLevel{Level: uint32(rapid.IntRange(0, 1).Draw(t, "level"))}
}

func genCommand(t *rapid.T, f *FSM, s *script) registry.Command {
	switch n := rapid.IntRange(0, 9).Draw(t, "family"); {
	case n < 6:
		return genInstanceCommand(t)
	case n < 8:
		return genLeaderCommand(t, f, s)
	}
	return genSettingsCommand(t)
}
