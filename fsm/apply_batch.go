package fsm

import (
	"slices"

	"github.com/rollcall-io/rollcall/registry"
)

// merged is an instance that a MetadataBatch found, before and after.
type merged struct{ old, next *registry.Instance }

// metadataBatch works all instances out before it changes one: a result that is not
// valid refuses the whole command.
func (t *tx) metadataBatch(c registry.MetadataBatch) registry.Result {
	svc := t.service(c.Service)
	if svc == nil {
		return t.done(false)
	}
	result := t.done(false)
	var work []merged
	for _, old := range found(svc, &c) {
		next := *old
		if c.Delete {
			next.Metadata = old.Metadata.Without(c.Metadata)
		} else {
			next.Metadata = old.Metadata.Merge(c.Metadata)
		}
		timeouts, err := normal(&next.Spec)
		if err != nil {
			return t.refuse(err)
		}
		result.Touched = append(result.Touched, registry.Target{Address: old.Address, Ephemeral: old.Ephemeral})
		if next.Metadata.Equal(old.Metadata) {
			continue
		}
		// The leader counts by the timeouts that came with the grant.
		if timeouts != old.Timeouts && next.Lease != 0 {
			next.Grant = t.position()
		}
		next.Timeouts = timeouts
		work = append(work, merged{old, &next})
	}
	for _, m := range work {
		m.next.Spec = t.texts.spec(&m.next.Spec)
		t.replace(c.Service, m.old, m.next, true)
	}
	result.Changed = len(work) > 0
	return result
}

// found lists the instances that a MetadataBatch names, each once, in the order of its
// targets, or all of its kind in the order of addresses.
func found(svc *registry.Service, c *registry.MetadataBatch) []*registry.Instance {
	var list []*registry.Instance
	if len(c.Targets) == 0 {
		for _, in := range svc.Instances() {
			if c.Kind == registry.AnyKind || (c.Kind == registry.KindEphemeral) == in.Ephemeral {
				list = append(list, in)
			}
		}
		return list
	}
	seen := make(map[registry.Target]bool, len(c.Targets))
	for _, target := range c.Targets {
		in := svc.Instance(target.Address)
		if in == nil || in.Ephemeral != target.Ephemeral || seen[target] {
			continue
		}
		seen[target] = true
		list = append(list, in)
	}
	return slices.Clip(list)
}

// skipped is the result of a batch of which n items were left out.
func (t *tx) skipped(n int, changed bool) registry.Result {
	r := t.done(changed)
	r.Skipped = n
	return r
}

func (t *tx) healthBatch(c registry.HealthBatch) registry.Result {
	if c.Term != t.term {
		return t.skipped(len(c.Items), false)
	}
	skipped, changed := 0, false
	for _, item := range c.Items {
		key, old := t.state.leases.at(item.Lease, item.Grant)
		if old == nil {
			skipped++
			continue
		}
		changed = t.setHealth(key, old, item.Healthy) || changed
	}
	return t.skipped(skipped, changed)
}

func (t *tx) probeBatch(c registry.ProbeBatch) registry.Result {
	if c.Term != t.term {
		return t.skipped(len(c.Items), false)
	}
	skipped, changed := 0, false
	for _, item := range c.Items {
		old := t.instance(item.Key)
		if old == nil || old.Ephemeral || old.Generation != item.Generation {
			skipped++
			continue
		}
		changed = t.setHealth(item.Key.Service, old, item.Healthy) || changed
	}
	return t.skipped(skipped, changed)
}

func (t *tx) setHealth(k registry.ServiceKey, old *registry.Instance, healthy bool) (changed bool) {
	if old.Healthy == healthy {
		return false
	}
	in := *old
	in.Healthy = healthy
	t.replace(k, old, &in, true)
	return true
}

func (t *tx) evictBatch(c registry.EvictBatch) registry.Result {
	if c.Term != t.term {
		return t.skipped(len(c.Items), false)
	}
	skipped := 0
	for _, item := range c.Items {
		key, old := t.state.leases.at(item.Number, item.Grant)
		if old == nil {
			skipped++
			continue
		}
		t.remove(key, old)
	}
	return t.skipped(skipped, skipped < len(c.Items))
}
