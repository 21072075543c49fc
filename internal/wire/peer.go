package wire

import (
	"errors"
	"fmt"
	"math"

	"github.com/rollcall-io/rollcall/internal/wire/peerpb"
	"github.com/rollcall-io/rollcall/registry"
)

// Outcome is what became of one proposed command: the result of Apply, or the fault
// that kept it from having one. Result.Err is part of the result, not of Err.
type Outcome struct {
	Result registry.Result
	Err    *registry.Error
	// Term is that of the entry that held the command, 0 when there was none. An answer
	// carries it for the last of its entries only.
	Term uint64
}

// EncodeOutcomes writes outcomes into an answer. What is a plain success costs a few
// bytes and no message of its own.
func EncodeOutcomes(outcomes []Outcome) *peerpb.ProposeResponse {
	m := &peerpb.ProposeResponse{Index: make([]uint64, len(outcomes))}
	for i := range outcomes {
		o := &outcomes[i]
		at := uint32(i)
		if o.Err != nil {
			m.Details = append(m.Details, &peerpb.Detail{At: at, Fault: encodeFault(o.Err)})
			continue
		}
		m.Index[i] = o.Result.Index
		if o.Term != 0 && o.Result.Index > m.Last.GetIndex() {
			m.Last = &peerpb.Entry{Index: o.Result.Index, Term: o.Term}
		}
		if o.Result.Changed {
			m.Changed = append(m.Changed, at)
		}
		if o.Result.Err != nil || o.Result.Skipped != 0 || o.Result.Touched != nil {
			m.Details = append(m.Details, encodeDetail(at, &o.Result))
		}
	}
	return m
}

func encodeDetail(at uint32, r *registry.Result) *peerpb.Detail {
	d := &peerpb.Detail{At: at, Fault: encodeFault(r.Err), Skipped: uint32(r.Skipped)}
	for _, t := range r.Touched {
		d.Touched = append(d.Touched, &peerpb.Touched{
			Cluster: t.Cluster, Ip: t.IP, Port: uint32(t.Port), Ephemeral: t.Ephemeral,
		})
	}
	return d
}

// DecodeOutcomes reads an answer to n commands. An answer that does not fit them is an
// error: its outcomes are unknown then.
func DecodeOutcomes(m *peerpb.ProposeResponse, n int) ([]Outcome, error) {
	if len(m.Index) != n {
		return nil, fmt.Errorf("answer holds %d results for %d commands", len(m.Index), n)
	}
	outcomes := make([]Outcome, n)
	for i, index := range m.Index {
		outcomes[i].Result.Index = index
	}
	for _, at := range m.Changed {
		if int(at) >= n {
			return nil, fmt.Errorf("answer names command %d of %d", at, n)
		}
		outcomes[at].Result.Changed = true
	}
	for _, d := range m.Details {
		if int(d.At) >= n {
			return nil, fmt.Errorf("answer names command %d of %d", d.At, n)
		}
		if err := decodeDetail(d, &outcomes[d.At]); err != nil {
			return nil, err
		}
	}
	for i := range outcomes {
		if outcomes[i].Err == nil && outcomes[i].Result.Index == 0 {
			return nil, fmt.Errorf("answer holds neither index nor fault for command %d", i)
		}
	}
	return outcomes, nil
}

func decodeDetail(d *peerpb.Detail, o *Outcome) error {
	fault, err := decodeFault(d.Fault)
	if err != nil {
		return err
	}
	if o.Result.Index == 0 {
		o.Err = fault
		return nil
	}
	o.Result.Err = fault
	o.Result.Skipped = int(d.Skipped)
	for _, t := range d.Touched {
		if t.Port > math.MaxUint16 {
			return fmt.Errorf("answer names port %d", t.Port)
		}
		o.Result.Touched = append(o.Result.Touched, registry.Target{
			Address:   registry.Address{Cluster: t.Cluster, IP: t.Ip, Port: uint16(t.Port)},
			Ephemeral: t.Ephemeral,
		})
	}
	return nil
}

// EncodeFault writes an error as it crosses to another node. What is no registry.Error
// becomes one of unknown outcome: the other side cannot know better.
func EncodeFault(err error) *peerpb.Fault {
	if err == nil {
		return nil
	}
	var e *registry.Error
	if !errors.As(err, &e) {
		e = registry.ErrUncertain.Because(err.Error())
	}
	return encodeFault(e)
}

// DecodeFault reads an error of another node; nil for nil.
func DecodeFault(m *peerpb.Fault) error {
	e, err := decodeFault(m)
	if err != nil {
		return err
	}
	if e == nil {
		return nil
	}
	return e
}

func encodeFault(e *registry.Error) *peerpb.Fault {
	if e == nil {
		return nil
	}
	return &peerpb.Fault{Code: uint32(e.Code), Field: e.Field, Value: e.Value, Reason: e.Reason}
}

func decodeFault(m *peerpb.Fault) (*registry.Error, error) {
	if m == nil {
		return nil, nil
	}
	if m.Code == 0 || m.Code > math.MaxUint8 {
		return nil, fmt.Errorf("answer holds error code %d", m.Code)
	}
	return &registry.Error{Code: registry.Code(m.Code), Field: m.Field, Value: m.Value, Reason: m.Reason}, nil
}
