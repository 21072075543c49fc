package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"go.etcd.io/bbolt"
)

// written is what a test expects in a store: entries 1 to n, a term and a vote.
const (
	writtenEntries = 120
	writtenTerm    = 7
	writtenVote    = "127.0.0.1:7848"
)

func entry(index uint64) *raft.Log {
	return &raft.Log{Index: index, Term: 1 + index/30, Type: raft.LogCommand, Data: fmt.Appendf(nil, "entry %d %s", index, strings.Repeat("x", 60))}
}

// populate makes a store and returns the bytes of its file.
func populate(t testing.TB, dir string) []byte {
	t.Helper()
	s, err := Open(Options{Dir: dir, Retain: 2, CacheEntries: 1, Log: hclog.NewNullLogger()})
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(s.Stable.SetUint64(keyTerm, writtenTerm), s.Stable.SetUint64(keyVoteTerm, writtenTerm),
		s.Stable.Set(keyVoteCandidate, []byte(writtenVote)), s.SetIncarnation("abc"))
	for i := uint64(1); i <= writtenEntries; i += 10 {
		var some []*raft.Log
		for k := i; k < i+10; k++ {
			some = append(some, entry(k))
		}
		err = errors.Join(err, s.Log.StoreLogs(some))
	}
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, fileName))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// readAll opens a store and reads all that is in it. The error is what a node would refuse
// to start with; without one everything must be as it was written.
func readAll(t testing.TB, dir string) error {
	s, err := open(t, dir, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.Check(); err != nil {
		return err
	}
	term, errTerm := s.Stable.GetUint64(keyTerm)
	voteTerm, errVote := s.Stable.GetUint64(keyVoteTerm)
	vote, errCandidate := s.Stable.Get(keyVoteCandidate)
	mark, errMark := s.Incarnation()
	if err := errors.Join(errTerm, errVote, errCandidate, errMark); err != nil {
		return err
	}
	if term != writtenTerm || voteTerm != writtenTerm || string(vote) != writtenVote {
		t.Errorf("term %d, vote %q in %d", term, vote, voteTerm)
	}
	if mark != "abc" {
		return &damage{dir, "incarnation"} // is compared with the identity file
	}
	for i := uint64(1); i <= writtenEntries; i++ {
		var got raft.Log
		want := entry(i)
		if err := s.Log.GetLog(i, &got); err != nil {
			return err
		}
		if got.Index != i || got.Term != want.Term || got.Type != want.Type || !bytes.Equal(got.Data, want.Data) {
			t.Errorf("entry %d is %+v", i, got)
		}
	}
	if last, err := s.Log.LastIndex(); err != nil || last != writtenEntries {
		t.Errorf("last index %d, %v", last, err)
	}
	return nil
}

// wantDamage fails the test unless an error is about damage and names the directory.
func wantDamage(t *testing.T, err error, dir string) {
	t.Helper()
	if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), dir) || strings.Contains(err.Error(), "goroutine") {
		t.Errorf("error %v", err)
	}
}

// TestDamage_NoBitOfTheFileIsBelieved flips one bit after another of raft.db: the store is
// refused with a message, or the bit was in no use and everything is as it was.
func TestDamage_NoBitOfTheFileIsBelieved(t *testing.T) {
	dir := t.TempDir()
	whole := populate(t, dir)
	random := rand.New(rand.NewPCG(1, 2))
	var places []int
	for page := 0; page < len(whole); page += os.Getpagesize() {
		for range 15 { // the head of each page and its first elements, then anywhere
			places = append(places, page*8+random.IntN(160*8), page*8+random.IntN(os.Getpagesize()*8))
		}
	}
	refused := 0
	for _, place := range places {
		b := bytes.Clone(whole)
		b[place/8] ^= 1 << (place % 8)
		if err := os.WriteFile(filepath.Join(dir, fileName), b, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := readAll(t, dir); err != nil {
			wantDamage(t, err, dir)
			refused++
		}
		if t.Failed() {
			t.Fatalf("bit %d of byte %#x", place%8, place/8)
		}
	}
	if t.Logf("%d of %d bits refused", refused, len(places)); refused == 0 {
		t.Error("nothing was refused")
	}
}

// TestDamage_NoBitOfAnEntryIsBelieved flips in each of many entries another bit of what is
// stored for it.
func TestDamage_NoBitOfAnEntryIsBelieved(t *testing.T) {
	dir := t.TempDir()
	populate(t, dir)
	s, err := open(t, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	const first, bits = writtenEntries + 1, 8 * 180
	var some []*raft.Log
	for i := range uint64(bits) {
		some = append(some, entry(first+i))
	}
	if err := errors.Join(s.Log.StoreLogs(some), s.Close()); err != nil {
		t.Fatal(err)
	}
	change(t, dir, func(b *bbolt.Bucket) error {
		for i := range uint64(bits) {
			key := binary.BigEndian.AppendUint64(nil, first+i)
			value := bytes.Clone(b.Get(key))
			if int(i/8) >= len(value) {
				break
			}
			value[i/8] ^= 1 << (i % 8)
			if err := b.Put(key, value); err != nil {
				return err
			}
		}
		return nil
	})
	if s, err = open(t, dir, nil); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	wantDamage(t, s.Check(), dir)
	refused := 0
	for i := range uint64(bits) {
		var got raft.Log
		want := entry(first + i)
		if err := s.Log.GetLog(first+i, &got); err != nil {
			wantDamage(t, err, dir)
			refused++
		} else if got.Index != want.Index || got.Term != want.Term || got.Type != want.Type || !bytes.Equal(got.Data, want.Data) {
			t.Fatalf("bit %d: %+v", i, got)
		}
	}
	// The rest are the time of append, which nobody reads, and the checksum's own name.
	if t.Logf("%d of %d bits refused", refused, bits); refused < bits/2 {
		t.Error("too few were refused")
	}
}

func TestDamage_FileCutOff(t *testing.T) {
	dir := t.TempDir()
	whole := populate(t, dir)
	inUse := 0
	for size := len(whole) - 1; size > 0; size -= 1000 {
		if err := os.WriteFile(filepath.Join(dir, fileName), whole[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		if err := readAll(t, dir); err != nil {
			wantDamage(t, err, dir)
			inUse++
		}
	}
	if inUse < 20 {
		t.Errorf("%d lengths refused", inUse)
	}
}

// TestDamage_WhileTheNodeRuns: what happens to the file under a running store ends the
// process by way of Fatal, whatever call meets it.
func TestDamage_WhileTheNodeRuns(t *testing.T) {
	harm := map[string]func(path string) error{
		"cut off": func(path string) error { return os.Truncate(path, 2*int64(os.Getpagesize())) },
		"pages without a kind": func(path string) error {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			info, err := f.Stat()
			for at := 2 * int64(os.Getpagesize()); err == nil && at < info.Size(); at += int64(os.Getpagesize()) {
				_, err = f.WriteAt([]byte{0, 0}, at+8)
			}
			return errors.Join(err, f.Close())
		},
	}
	calls := map[string]func(*Store) error{
		"read":   func(s *Store) error { return s.Log.GetLog(1, &raft.Log{}) },
		"first":  func(s *Store) error { _, err := s.Log.FirstIndex(); return err },
		"append": func(s *Store) error { return s.log.StoreLog(entry(writtenEntries + 1)) },
		"delete": func(s *Store) error { return s.Log.DeleteRange(1, 10) },
		"vote":   func(s *Store) error { return s.Stable.SetUint64(keyTerm, 8) },
		"term":   func(s *Store) error { _, err := s.Stable.GetUint64(keyTerm); return err },
	}
	for what, damage := range harm {
		for name, call := range calls {
			t.Run(what+"/"+name, func(t *testing.T) {
				dir := t.TempDir()
				populate(t, dir)
				var fatal error
				s, err := open(t, dir, func(o *Options) { o.Fatal = func(err error) { fatal = err } })
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				s.Guard()
				if err := damage(filepath.Join(dir, fileName)); err != nil {
					t.Fatal(err)
				}
				wantDamage(t, call(s), dir)
				wantDamage(t, fatal, dir)
			})
		}
	}
}

// TestCheck_EntryMissing: an entry behind the newest snapshot must be there.
func TestCheck_EntryMissing(t *testing.T) {
	dir := t.TempDir()
	populate(t, dir)
	change(t, dir, func(b *bbolt.Bucket) error { return b.Delete(binary.BigEndian.AppendUint64(nil, 77)) })
	s, err := open(t, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	wantDamage(t, s.Check(), dir)
	// A snapshot that the leader sent makes up for all before it.
	sink, err := s.Snapshots.Create(raft.SnapshotVersionMax, 90, 3, raft.Configuration{}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	if err := s.Log.GetLog(77, &raft.Log{}); err != raft.ErrLogNotFound { // Raft compares so, and sends a snapshot
		t.Errorf("error %v", err)
	}
}

// change does something to the bucket of entries of a store that is closed.
func change(t *testing.T, dir string, f func(*bbolt.Bucket) error) {
	t.Helper()
	db, err := bbolt.Open(filepath.Join(dir, fileName), 0o600, &bbolt.Options{NoFreelistSync: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(func(tx *bbolt.Tx) error { return f(tx.Bucket([]byte("logs"))) }), db.Close()); err != nil {
		t.Fatal(err)
	}
}
