package fsm

import (
	"fmt"

	"github.com/rollcall-io/rollcall/registry"
)

// apply carries out one command. It is the table of all there are, one function for
// each; what they do is written at the types in registry.
func (t *tx) apply(c registry.Command) registry.Result {
	switch c := c.(type) {
	case registry.Register:
		return t.register(&c)
	case registry.Deregister:
		return t.deregister(c)
	case registry.Update:
		return t.update(&c)
	case registry.Patch:
		return t.patch(c)
	case registry.MetadataBatch:
		return t.metadataBatch(c)
	case registry.HealthBatch:
		return t.healthBatch(c)
	case registry.ProbeBatch:
		return t.probeBatch(c)
	case registry.EvictBatch:
		return t.evictBatch(c)
	case registry.ServiceCreate:
		return t.serviceCreate(c)
	case registry.ServiceUpdate:
		return t.serviceUpdate(c)
	case registry.ServiceDelete:
		return t.serviceDelete(c)
	case registry.ClusterUpdate:
		return t.clusterUpdate(c)
	case registry.SwitchSet:
		return t.switchSet(c)
	case registry.NamespaceCreate:
		return t.namespaceCreate(c)
	case registry.NamespaceUpdate:
		return t.namespaceUpdate(c)
	case registry.NamespaceDelete:
		return t.namespaceDelete(c)
	case registry.ClusterInit:
		return t.clusterInit(c)
	case registry.TermStart:
		return t.termStart(c)
	case registry.DigestCheck:
		return t.digestCheck(c)
	case registry.FeatureLevel:
		return t.featureLevel(c)
	case registry.NoOp:
		return t.done(false)
	}
	if result, ok := t.accounts(c); ok {
		return result
	}
	// The decoder makes no other types: going on would let replicas drift apart.
	panic(fmt.Sprintf("apply entry %d: command of type %T has no function", t.index, c))
}
