package wire

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rollcall-io/rollcall/registry"
)

func (e *encoder) register(c *registry.Register) {
	e.serviceKey(c.Service)
	mark := e.begin(3)
	e.spec(&c.Spec)
	e.end(mark)
	e.bool(4, c.FromBeat)
}

func decodeRegister(d *decoder) registry.Command {
	var c registry.Register
	c.Service = d.serviceKey()
	d.nestedSpec(&c.Spec)
	c.FromBeat = d.bool(4)
	return c
}

// nestedSpec reads the message field 3, which must be there.
func (d *decoder) nestedSpec(s *registry.Spec) {
	outer, found := d.begin(3)
	if !found {
		d.fail("Spec", 3, "is missing")
		return
	}
	d.spec(s)
	d.finish("Spec", outer)
}

func (e *encoder) update(c *registry.Update) {
	e.serviceKey(c.Service)
	mark := e.begin(3)
	e.spec(&c.Spec)
	e.end(mark)
}

func decodeUpdate(d *decoder) registry.Command {
	var c registry.Update
	c.Service = d.serviceKey()
	d.nestedSpec(&c.Spec)
	return c
}

func (e *encoder) deregister(c *registry.Deregister) {
	e.instanceKey(c.Key)
	e.kind(6, c.Kind)
}

func decodeDeregister(d *decoder) registry.Command {
	return registry.Deregister{Key: d.instanceKey(), Kind: d.kind(6)}
}

func (e *encoder) kind(num protowire.Number, k registry.Kind) {
	if k > registry.KindPersistent && e.err == nil {
		e.err = unencodable("kind", "", "is not a kind of instance")
	}
	e.uint(num, uint64(k))
}

func (d *decoder) kind(num protowire.Number) registry.Kind {
	return registry.Kind(d.uint(num, uint64(registry.KindPersistent)))
}

// patch writes the optional fields 6 to 10 only when they are given, defaults included.
func (e *encoder) patch(c *registry.Patch) {
	e.instanceKey(c.Key)
	if c.Weight != nil {
		e.optionalDouble(6, *c.Weight)
	}
	e.optionalBool(7, c.Enabled)
	e.optionalBool(8, c.Healthy)
	if c.App != nil {
		mark := e.begin(9)
		e.str(1, *c.App)
		e.end(mark)
	}
	if c.Metadata != nil {
		mark := e.begin(10)
		e.metadata(1, *c.Metadata)
		e.end(mark)
	}
	e.bool(11, c.Merge)
}

func decodePatch(d *decoder) registry.Command {
	c := registry.Patch{Key: d.instanceKey(), Weight: d.optionalDouble(6)}
	c.Enabled = d.optionalBool(7)
	c.Healthy = d.optionalBool(8)
	if outer, found := d.begin(9); found {
		app := d.str(1)
		c.App = &app
		d.finish("Text", outer)
	}
	if outer, found := d.begin(10); found {
		m := d.metadata(1)
		c.Metadata = &m
		d.finish("MetadataSet", outer)
	}
	c.Merge = d.bool(11)
	return c
}

func (e *encoder) optionalBool(num protowire.Number, v *bool) {
	if v == nil {
		return
	}
	e.tag(num, protowire.VarintType)
	e.b = append(e.b, byte(protowire.EncodeBool(*v)))
}

func (d *decoder) optionalBool(num protowire.Number) *bool {
	if !d.has(num, protowire.VarintType) {
		return nil
	}
	v := d.varint()
	if d.err == nil && v > 1 {
		d.fail("bool", uint64(num), "is neither 0 nor 1")
	}
	b := v == 1
	return &b
}

func (d *decoder) optionalDouble(num protowire.Number) *float64 {
	bits, found := d.fixed64(num)
	if !found {
		return nil
	}
	v := floatOf(bits)
	return &v
}

func (e *encoder) metadataBatch(c *registry.MetadataBatch) {
	e.serviceKey(c.Service)
	e.bool(3, c.Delete)
	e.kind(4, c.Kind)
	for _, t := range c.Targets {
		mark := e.begin(5)
		e.str(1, t.Cluster)
		e.str(2, t.IP)
		e.uint(3, uint64(t.Port))
		e.bool(4, t.Ephemeral)
		e.end(mark)
	}
	e.metadata(6, c.Metadata)
}

func decodeMetadataBatch(d *decoder) registry.Command {
	c := registry.MetadataBatch{Service: d.serviceKey(), Delete: d.bool(3), Kind: d.kind(4)}
	if n := d.count(5); n > 0 {
		c.Targets = make([]registry.Target, 0, n)
		for range n {
			outer, _ := d.begin(5)
			t := registry.Target{Address: registry.Address{Cluster: d.str(1), IP: d.str(2), Port: d.uint16(3)}}
			t.Ephemeral = d.bool(4)
			d.finish("Target", outer)
			c.Targets = append(c.Targets, t)
		}
	}
	c.Metadata = d.metadata(6)
	return c
}
