package wire

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rollcall-io/rollcall/registry"
)

// position writes a position as two fields, num and num+1.
func (e *encoder) position(num protowire.Number, p registry.Position) {
	e.uint(num, p.Index)
	e.uint(num+1, uint64(p.Seq))
}

func (d *decoder) position(num protowire.Number) registry.Position {
	return registry.Position{Index: d.uint64(num), Seq: d.uint32(num + 1)}
}

func (e *encoder) healthBatch(c *registry.HealthBatch) {
	e.uint(1, c.Term)
	for _, item := range c.Items {
		mark := e.begin(2)
		e.uint(1, uint64(item.Lease))
		e.position(2, item.Grant)
		e.bool(4, item.Healthy)
		e.end(mark)
	}
}

func decodeHealthBatch(d *decoder) registry.Command {
	c := registry.HealthBatch{Term: d.uint64(1)}
	if n := d.count(2); n > 0 {
		c.Items = make([]registry.HealthItem, 0, n)
		for range n {
			outer, _ := d.begin(2)
			c.Items = append(c.Items, registry.HealthItem{Lease: d.uint32(1), Grant: d.position(2), Healthy: d.bool(4)})
			d.finish("HealthItem", outer)
		}
	}
	return c
}

func (e *encoder) probeBatch(c *registry.ProbeBatch) {
	e.uint(1, c.Term)
	for _, item := range c.Items {
		mark := e.begin(2)
		e.instanceKey(item.Key)
		e.position(6, item.Generation)
		e.bool(8, item.Healthy)
		e.end(mark)
	}
}

func decodeProbeBatch(d *decoder) registry.Command {
	c := registry.ProbeBatch{Term: d.uint64(1)}
	if n := d.count(2); n > 0 {
		c.Items = make([]registry.ProbeItem, 0, n)
		for range n {
			outer, _ := d.begin(2)
			item := registry.ProbeItem{Key: d.instanceKey(), Generation: d.position(6), Healthy: d.bool(8)}
			c.Items = append(c.Items, item)
			d.finish("ProbeItem", outer)
		}
	}
	return c
}

func (e *encoder) evictBatch(c *registry.EvictBatch) {
	e.uint(1, c.Term)
	for _, item := range c.Items {
		mark := e.begin(2)
		e.uint(1, uint64(item.Number))
		e.position(2, item.Grant)
		e.end(mark)
	}
}

func decodeEvictBatch(d *decoder) registry.Command {
	c := registry.EvictBatch{Term: d.uint64(1)}
	if n := d.count(2); n > 0 {
		c.Items = make([]registry.LeaseRef, 0, n)
		for range n {
			outer, _ := d.begin(2)
			c.Items = append(c.Items, registry.LeaseRef{Number: d.uint32(1), Grant: d.position(2)})
			d.finish("LeaseRef", outer)
		}
	}
	return c
}
