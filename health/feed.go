package health

import "github.com/rollcall-io/rollcall/registry"

// ServiceChanged is told of each change of a service by the state's change feed, on
// every node, so that probes follow. It does not block.
func (k *Keeper) ServiceChanged(task registry.ChangeTask) {
	l := k.lead.Load()
	switch {
	case l == nil: // whoever takes over looks at everything
	case task.Kind == registry.TaskResync:
		l.prober.Resync()
	default:
		l.prober.Changed(task.Key)
	}
}
