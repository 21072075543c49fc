package wire

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rollcall-io/rollcall/registry"
)

// serviceSettings is the body of ServiceCreate and ServiceUpdate.
func (e *encoder) serviceSettings(k registry.ServiceKey, s *registry.ServiceSpec) {
	e.serviceKey(k)
	e.serviceSpec(s)
}

// serviceSpec writes the fields 3 to 6 that describe a service.
func (e *encoder) serviceSpec(s *registry.ServiceSpec) {
	e.double(3, s.ProtectThreshold)
	e.metadata(4, s.Metadata)
	e.str(5, s.Selector.Type)
	e.str(6, s.Selector.Expression)
}

func (d *decoder) serviceSpec() registry.ServiceSpec {
	return registry.ServiceSpec{
		ProtectThreshold: d.double(3),
		Metadata:         d.metadata(4),
		Selector:         registry.Selector{Type: d.str(5), Expression: d.str(6)},
	}
}

func decodeServiceCreate(d *decoder) registry.Command {
	return registry.ServiceCreate{Key: d.serviceKey(), Spec: d.serviceSpec()}
}

func decodeServiceUpdate(d *decoder) registry.Command {
	return registry.ServiceUpdate{Key: d.serviceKey(), Spec: d.serviceSpec()}
}

func decodeServiceDelete(d *decoder) registry.Command {
	return registry.ServiceDelete{Key: d.serviceKey(), IfRevision: d.uint64(3)}
}

func (e *encoder) clusterUpdate(c *registry.ClusterUpdate) {
	e.serviceKey(c.Key)
	e.cluster(3, &c.Cluster)
}

func decodeClusterUpdate(d *decoder) registry.Command {
	c := registry.ClusterUpdate{Key: d.serviceKey()}
	outer, found := d.begin(3)
	if !found {
		d.fail("Cluster", 3, "is missing")
		return c
	}
	c.Cluster = d.cluster()
	d.finish("Cluster", outer)
	return c
}

// cluster writes a cluster's settings as a message field.
func (e *encoder) cluster(num protowire.Number, c *registry.Cluster) {
	if c.Checker.ExpectedCode < 0 || int64(c.Checker.ExpectedCode) > math.MaxInt32 {
		e.err = unencodable("expectedCode", "", "is negative or above 31 bits")
		return
	}
	mark := e.begin(num)
	e.str(1, c.Name)
	e.str(2, c.Checker.Type)
	e.str(3, c.Checker.Path)
	e.str(4, c.Checker.Headers)
	e.uint(5, uint64(c.Checker.ExpectedCode))
	e.str(6, c.Checker.User)
	e.str(7, c.Checker.Password)
	e.str(8, c.Checker.Command)
	e.uint(9, uint64(c.CheckPort))
	e.bool(10, c.UseInstancePort)
	e.metadata(11, c.Metadata)
	e.end(mark)
}

// cluster reads the inside of the message.
func (d *decoder) cluster() registry.Cluster {
	return registry.Cluster{
		Name: d.str(1),
		Checker: registry.Checker{
			Type: d.str(2), Path: d.str(3), Headers: d.str(4), ExpectedCode: int(d.uint(5, math.MaxInt32)),
			User: d.str(6), Password: d.str(7), Command: d.str(8),
		},
		CheckPort:       d.uint16(9),
		UseInstancePort: d.bool(10),
		Metadata:        d.metadata(11),
	}
}

func floatOf(bits uint64) float64 { return math.Float64frombits(bits) }
