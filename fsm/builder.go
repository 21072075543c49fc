package fsm

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rollcall-io/rollcall/internal/wire"
	"github.com/rollcall-io/rollcall/registry"
)

// builder makes a state out of the records of a snapshot. It trusts none of them.
type builder struct {
	header  wire.SnapshotHeader
	state   *state
	texts   interner
	records uint64

	last      wire.RecordKind
	service   *registry.Service // whose instances are being read
	instances []*registry.Instance
	leases    []leaseSlot // in no order
	accounts  registry.Accounts
}

func newBuilder(h wire.SnapshotHeader) *builder {
	b := &builder{header: h, state: newState(), texts: newInterner()}
	b.state.sum = sum{}
	b.state.index, b.state.term = h.Index, h.Term
	return b
}

// block takes the records of one block.
func (b *builder) block(content []byte) error {
	rest := string(content)
	for len(rest) > 0 {
		record, after, err := wire.NextRecord(rest)
		if err != nil {
			return fmt.Errorf("record %d: %w", b.records+1, err)
		}
		end := len(content) - len(after)
		b.state.sum.add(hashOf(content[end-len(record) : end]))
		b.records++
		if err := b.record(record); err != nil {
			return fmt.Errorf("record %d: %w", b.records, err)
		}
		rest = after
	}
	return nil
}

func (b *builder) record(text string) error {
	r, err := wire.DecodeRecord(text)
	if err != nil {
		return err
	}
	if err := b.inOrder(r.Kind); err != nil {
		return err
	}
	switch r.Kind {
	case wire.RecordGlobals:
		return b.globals(r.Globals, text)
	case wire.RecordSwitches:
		return b.switches(r.Switches)
	case wire.RecordKnown:
		if !b.state.reg.AddNamespace(b.texts.get(r.Known)) {
			return fmt.Errorf("namespace %q is there twice", r.Known)
		}
	case wire.RecordNamespace:
		return b.namespace(r.Namespace)
	case wire.RecordService:
		return b.begin(r.Service)
	case wire.RecordInstance:
		return b.instance(r.Key, r.Instance)
	case wire.RecordTombstone:
		return b.tombstone(r.Tombstone, r.Until)
	default:
		return b.account(r)
	}
	return nil
}

// inOrder checks that a kind of record may follow the one before. Globals and switches
// come once each and first; services and instances alternate.
func (b *builder) inOrder(k wire.RecordKind) error {
	once := k <= wire.RecordSwitches
	alternate := k == wire.RecordService && b.last == wire.RecordInstance
	switch {
	case once && k != b.last+1, !once && k < b.last && !alternate, !once && b.last < wire.RecordSwitches:
		return fmt.Errorf("record of kind %d follows kind %d", k, b.last)
	case k != wire.RecordInstance:
		if err := b.closeService(); err != nil {
			return err
		}
	}
	b.last = k
	return nil
}

func (b *builder) globals(g wire.Globals, text string) error {
	h := b.header
	if g.ClusterID != h.ClusterID || g.Level != h.Level || g.LastTime != h.Time {
		return fmt.Errorf("values %+v contradict the header %+v", g, h)
	}
	g.ClusterID = b.texts.get(g.ClusterID)
	b.state.globals = g
	b.state.globalsHash = hashOf([]byte(text))
	return nil
}

func (b *builder) switches(pairs []registry.Pair) error {
	var err error
	for _, p := range pairs {
		if b.state.switches, err = b.state.switches.With(p.Key, p.Value); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) namespace(n registry.Namespace) error {
	if _, found := b.state.namespaces[n.ID]; found {
		return fmt.Errorf("record of namespace %q is there twice", n.ID)
	}
	n = registry.Namespace{ID: b.texts.get(n.ID), Name: b.texts.get(n.Name), Description: b.texts.get(n.Description)}
	b.state.namespaces[n.ID] = n
	return nil
}

func (b *builder) tombstone(k registry.InstanceKey, until int64) error {
	if b.state.tombs.byKey[k] != nil {
		return fmt.Errorf("tombstone of %s is there twice", k)
	}
	spec := b.texts.spec(&registry.Spec{Address: k.Address()})
	b.state.tombs.add(spec.Address.In(b.ownKey(k.Service)), until)
	return nil
}

// finish checks what was read against the trailer and completes the state.
func (b *builder) finish(t wire.SnapshotTrailer) error {
	if err := b.closeService(); err != nil {
		return err
	}
	if b.last < wire.RecordSwitches {
		return errors.New("records are missing")
	}
	if b.records != t.Records {
		return fmt.Errorf("%d records instead of %d", b.records, t.Records)
	}
	if d := b.state.sum.digest(); d != t.Digest {
		return fmt.Errorf("digest is %x instead of %x", d, t.Digest)
	}
	b.state.accounts = &b.accounts
	return b.fillLeases()
}

// fillLeases builds the lease table, free numbers included.
func (b *builder) fillLeases() error {
	var highest uint32
	for _, slot := range b.leases {
		highest = max(highest, slot.in.Lease)
	}
	if highest > maxLeases {
		return fmt.Errorf("lease %d is above the limit of %d", highest, maxLeases)
	}
	table := leases{slots: make([]leaseSlot, highest)}
	for _, slot := range b.leases {
		at := &table.slots[slot.in.Lease-1]
		if at.in != nil {
			return fmt.Errorf("lease %d keeps both %s and %s", slot.in.Lease,
				at.in.Address.In(at.key), slot.in.Address.In(slot.key))
		}
		*at = slot
	}
	// Ascending numbers are a heap.
	for i := range table.slots {
		if table.slots[i].in == nil {
			table.free = append(table.free, uint32(i+1))
		}
	}
	b.state.leases, b.leases = table, nil
	return nil
}

// closeService publishes the service whose instances have all been read.
func (b *builder) closeService() error {
	if b.service == nil {
		return nil
	}
	svc := registry.Assemble(*b.service, slices.Clone(b.instances))
	if svc == nil {
		return fmt.Errorf("instances of %s are not in order", b.service.Key)
	}
	b.state.publish(svc)
	b.service = nil
	clear(b.instances)
	b.instances = b.instances[:0]
	return nil
}
