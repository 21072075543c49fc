package httpapi

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rollcall-io/rollcall/registry"
)

// fakeSettings is the part of the fake's state that is about no service.
type fakeSettings struct {
	namespaces []registry.Namespace // sorted by id
	accounts   *registry.Accounts
}

func (f *fake) Namespaces() []registry.Namespace {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return slices.Clone(f.settings.namespaces)
}

func (f *fake) Accounts() *registry.Accounts {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.settings.accounts
}

func (f *fake) applySettings(c registry.Command) *registry.Error {
	switch c := c.(type) {
	case registry.NamespaceCreate:
		return f.createNamespace(c.Namespace)
	case registry.NamespaceUpdate:
		i, found := f.namespace(c.Namespace.ID)
		if !found {
			return registry.ErrNamespaceNotFound
		}
		f.settings.namespaces[i] = c.Namespace
	case registry.NamespaceDelete:
		return f.deleteNamespace(c.ID)
	default:
		next, _, err := f.settings.accounts.Apply(c)
		if err != nil {
			return err.(*registry.Error)
		}
		f.settings.accounts = next
	}
	return nil
}

func (f *fake) namespace(id string) (at int, found bool) {
	return slices.BinarySearchFunc(f.settings.namespaces, id, func(n registry.Namespace, id string) int { return strings.Compare(n.ID, id) })
}

func (f *fake) createNamespace(n registry.Namespace) *registry.Error {
	i, found := f.namespace(n.ID)
	if found {
		return registry.ErrNamespaceExists
	}
	f.settings.namespaces = slices.Insert(f.settings.namespaces, i, n)
	return nil
}

func (f *fake) deleteNamespace(id string) *registry.Error {
	i, found := f.namespace(id)
	if !found && !f.state.Known(id) {
		return registry.ErrNamespaceNotFound
	}
	if n := f.state.Size(id); n > 0 {
		return registry.ErrNamespaceNotEmpty.Because(fmt.Sprintf("namespace holds %d services", n))
	}
	f.state.DropNamespace(id)
	if found {
		f.settings.namespaces = slices.Delete(f.settings.namespaces, i, i+1)
	}
	return nil
}

func kindMismatch(in *registry.Instance) *registry.Error {
	if in.Ephemeral {
		return registry.ErrKindMismatch.Because("instance is registered as ephemeral")
	}
	return registry.ErrKindMismatch.Because("instance is registered as persistent")
}
