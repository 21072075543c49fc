package store

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	boltdb "github.com/hashicorp/raft-boltdb/v2"
)

func TestChecksum_GoesToTheCacheAndToFollowers(t *testing.T) {
	s, err := open(t, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	e := entry(1)
	if err := s.Log.StoreLog(e); err != nil {
		t.Fatal(err)
	}
	var cached, stored raft.Log
	if err := errors.Join(s.Log.GetLog(1, &cached), s.log.GetLog(1, &stored)); err != nil {
		t.Fatal(err)
	}
	if !isChecksum(cached.Extensions) || string(cached.Extensions) != string(stored.Extensions) {
		t.Errorf("cached %x, stored %x", cached.Extensions, stored.Extensions)
	}
}

// TestChecksum_OfTheLeaderIsComparedAndKept: an entry that was damaged on its way, or in the
// leader's memory, is refused; one of an older or a newer version gets a checksum here.
func TestChecksum_OfTheLeaderIsComparedAndKept(t *testing.T) {
	s, err := open(t, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	sent := entry(1)
	if err := stamp([]*raft.Log{sent}); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*raft.Log){
		"data": func(e *raft.Log) { e.Data = append([]byte("X"), e.Data[1:]...) },
		"term": func(e *raft.Log) { e.Term++ },
		"type": func(e *raft.Log) { e.Type = raft.LogNoop },
	} {
		got := *sent
		change(&got)
		if err := s.Log.StoreLogs([]*raft.Log{&got}); err == nil || errors.Is(err, ErrDamaged) {
			t.Errorf("%s: error %v, want one that is not about this node's disk", name, err)
		}
	}
	if last, _ := s.Log.LastIndex(); last != 0 {
		t.Errorf("last index %d", last)
	}
	if err := s.Log.StoreLogs([]*raft.Log{sent}); err != nil {
		t.Error(err)
	}
	newer := entry(2)
	newer.Extensions = []byte{2, 1, 2, 3, 4, 5, 6, 7, 8}
	if err := s.Log.StoreLogs([]*raft.Log{newer}); err != nil || !isChecksum(newer.Extensions) {
		t.Errorf("%x, %v", newer.Extensions, err)
	}
}

// TestChecksum_DirectoriesOfOlderVersionsAreRead: neither entries nor votes had checksums.
// What is written back is read by the older version too: numbers begin with their bytes.
func TestChecksum_DirectoriesOfOlderVersionsAreRead(t *testing.T) {
	dir := t.TempDir()
	old, err := boltdb.New(boltdb.Options{Path: filepath.Join(dir, fileName), MsgpackUseNewTimeFormat: true})
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(old.SetUint64(keyTerm, writtenTerm), old.SetUint64(keyVoteTerm, writtenTerm),
		old.Set(keyVoteCandidate, []byte(writtenVote)), old.Set(keyIncarnation, []byte("abc")))
	for i := uint64(1); i <= writtenEntries; i++ {
		err = errors.Join(err, old.StoreLog(entry(i)))
	}
	if err := errors.Join(err, old.Close()); err != nil {
		t.Fatal(err)
	}
	if err := readAll(t, dir); err != nil {
		t.Fatal(err)
	}
	s, err := open(t, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(s.Stable.SetUint64(keyTerm, 300), s.Log.StoreLog(entry(writtenEntries+1)), s.Close())
	if err != nil {
		t.Fatal(err)
	}
	if old, err = boltdb.NewBoltStore(filepath.Join(dir, fileName)); err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	if term, err := old.GetUint64(keyTerm); err != nil || term != 300 {
		t.Errorf("term %d, %v", term, err)
	}
	var got raft.Log
	if err := old.GetLog(writtenEntries+1, &got); err != nil || string(got.Data) != string(entry(writtenEntries+1).Data) {
		t.Errorf("%+v, %v", got, err)
	}
}

// BenchmarkAppend measures appends with every fsync, and how much of that is the checksum's.
func BenchmarkAppend(b *testing.B) {
	for name, n := range map[string]int{"1": 1, "64": 64} {
		b.Run(name, func(b *testing.B) {
			s, err := Open(Options{Dir: b.TempDir(), Retain: 2, CacheEntries: 256, Log: hclog.NewNullLogger()})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			data := make([]byte, 256)
			next := uint64(1)
			entries := make([]*raft.Log, n)
			b.ResetTimer()
			for range b.N {
				for i := range entries {
					entries[i] = &raft.Log{Index: next, Term: 1, Data: data}
					next++
				}
				if err := s.Log.StoreLogs(entries); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkChecksum is the part of an append that is new.
func BenchmarkChecksum(b *testing.B) {
	s, err := Open(Options{Dir: b.TempDir(), Retain: 2, CacheEntries: 256, Log: hclog.NewNullLogger()})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	e := &raft.Log{Index: 1, Term: 1, Data: make([]byte, 256)}
	for range b.N {
		e.Extensions = nil
		if err := stamp([]*raft.Log{e}); err != nil {
			b.Fatal(err)
		}
		if _, err := s.log.LastIndex(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCheck reads 60,000 entries, as many as are kept behind a snapshot.
func BenchmarkCheck(b *testing.B) {
	dir := b.TempDir()
	s, err := Open(Options{Dir: dir, Retain: 2, CacheEntries: 256, Log: hclog.NewNullLogger()})
	if err != nil {
		b.Fatal(err)
	}
	for i := uint64(1); i < 60_000; i += 500 {
		var some []*raft.Log
		for k := i; k < i+500; k++ {
			some = append(some, &raft.Log{Index: k, Term: 1, Data: make([]byte, 256)})
		}
		if err := s.Log.StoreLogs(some); err != nil {
			b.Fatal(err)
		}
	}
	if err := errors.Join(s.Stable.SetUint64(keyTerm, 1), s.Close()); err != nil {
		b.Fatal(err)
	}
	for range b.N {
		began := time.Now()
		if s, err = Open(Options{Dir: dir, Retain: 2, CacheEntries: 256, Log: hclog.NewNullLogger()}); err != nil {
			b.Fatal(err)
		}
		opened := time.Since(began)
		if err := s.Check(); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(opened.Milliseconds()), "ms-open")
		b.ReportMetric(float64((time.Since(began) - opened).Milliseconds()), "ms-check")
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
