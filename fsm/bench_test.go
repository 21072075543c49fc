package fsm

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/rollcall-io/rollcall/registry"
)

// benchInstance is the n-th instance of a fleet of services with ten instances each.
func benchInstance(n int) registry.Register {
	c := register(fmt.Sprintf("service-%d", n/10), fmt.Sprintf("10.%d.%d.%d", n>>16&255, n>>8&255, n&255), 8080)
	c.Spec.Metadata = registry.Metadata{
		{Key: "preserved.register.source", Value: "SPRING_CLOUD"}, {Key: "version", Value: "1.4.2"},
	}
	return c
}

// packed makes entries of up to 256 registrations each.
func packed(s *script, from, to int, make func(int) registry.Command) []*raft.Log {
	var logs []*raft.Log
	for from < to {
		var commands []registry.Command
		for ; from < to && len(commands) < 256; from++ {
			commands = append(commands, make(from))
		}
		logs = append(logs, s.entry(commands...))
	}
	return logs
}

// fleet is an FSM with n instances.
func fleet(tb testing.TB, n int) (*FSM, *script) {
	tb.Helper()
	f, s := newFSM(tb, Options{}), newScript(tb)
	for at := 0; at < n; at += 1 << 14 {
		f.ApplyBatch(packed(s, at, min(n, at+1<<14), func(i int) registry.Command { return benchInstance(i) }))
	}
	return f, s
}

// BenchmarkApply is the cost of one registration in packed entries: of new instances,
// of instances that are there and changed, and of services with many instances.
func BenchmarkApply(b *testing.B) {
	changed := func(n int) registry.Command {
		c := benchInstance(n % 10_000)
		c.Spec.Weight = float64(n%7 + 1)
		return c
	}
	large := func(n int) registry.Command {
		c := benchInstance(n % 10_000)
		c.Service = key(fmt.Sprintf("large-%d", n%10))
		c.Spec.Weight = float64(n%7 + 1)
		return c
	}
	for name, command := range map[string]func(int) registry.Command{
		"new":     func(n int) registry.Command { return benchInstance(n) },
		"changed": changed,
		"large":   large,
	} {
		b.Run(name, func(b *testing.B) {
			f, s := newFSM(b, Options{}), newScript(b)
			f.ApplyBatch(packed(s, 0, 10_000, command))
			logs := packed(s, 10_000, 10_000+b.N, command)
			bytes := 0
			for _, l := range logs {
				bytes += len(l.Data)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for _, l := range logs {
				f.ApplyBatch([]*raft.Log{l})
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "registrations/s")
			b.ReportMetric(float64(bytes)/float64(b.N), "logbytes/op")
		})
	}
}

var sizes = []int{10_000, 1_000_000}

// BenchmarkSnapshot writes the state of a fleet.
func BenchmarkSnapshot(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("instances=%d", n), func(b *testing.B) {
			f, _ := fleet(b, n)
			b.ResetTimer()
			for b.Loop() {
				b.ReportMetric(float64(len(save(b, f)))/float64(n), "filebytes/instance")
			}
		})
	}
}

// BenchmarkSnapshotCapture is the part of a snapshot during which Apply stands still.
func BenchmarkSnapshotCapture(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("instances=%d", n), func(b *testing.B) {
			f, _ := fleet(b, n)
			b.ResetTimer()
			for b.Loop() {
				if _, err := f.Snapshot(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRestore reads the state of a fleet.
func BenchmarkRestore(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("instances=%d", n), func(b *testing.B) {
			f, _ := fleet(b, n)
			file := save(b, f)
			b.ResetTimer()
			for b.Loop() {
				if err := f.Restore(io.NopCloser(bytes.NewReader(file))); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkHeapPerInstance reports the live heap that a fleet keeps, after Apply and
// after a restore.
func BenchmarkHeapPerInstance(b *testing.B) {
	for _, n := range sizes {
		for _, restored := range []bool{false, true} {
			b.Run(fmt.Sprintf("instances=%d/restored=%t", n, restored), func(b *testing.B) {
				for b.Loop() {
					before := liveHeap()
					f, _ := fleet(b, n)
					if restored {
						load(b, f, save(b, f))
					}
					b.ReportMetric(float64(liveHeap()-before)/float64(n), "heapbytes/instance")
					runtime.KeepAlive(f)
				}
			})
		}
	}
}

func liveHeap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkService is the cost of one look-up.
func BenchmarkService(b *testing.B) {
	f, _ := fleet(b, 10_000)
	k := key("service-77")
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if f.Service(k) == nil {
				b.Error("not there")
			}
		}
	})
}
