package store

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

func open(t testing.TB, dir string, change func(*Options)) (*Store, error) {
	t.Helper()
	o := Options{Dir: dir, Retain: 2, CacheEntries: 64, LockTimeout: 200 * time.Millisecond, Log: hclog.NewNullLogger()}
	if change != nil {
		change(&o)
	}
	return Open(o)
}

func fill(t testing.TB, s *Store, n int) {
	t.Helper()
	entries := make([]*raft.Log, n)
	for i := range entries {
		entries[i] = &raft.Log{Index: uint64(i + 1), Term: 1, Data: []byte("0123456789")}
	}
	if err := s.Log.StoreLogs(entries); err != nil {
		t.Fatal(err)
	}
}

func TestStore_SecondProcessIsToldTheDirectory(t *testing.T) {
	dir := t.TempDir()
	s, err := open(t, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := open(t, dir, nil); !errors.Is(err, ErrLocked) {
		t.Fatalf("error %v", err)
	}
}

func TestStore_DeletesAHeadInPieces(t *testing.T) {
	var mu sync.Mutex
	ops := make(map[string]int)
	s, err := open(t, t.TempDir(), func(o *Options) {
		o.Observe = func(op string, _ time.Duration, _ error) {
			mu.Lock()
			ops[op]++
			mu.Unlock()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const n = 2*deleteChunk + 10
	fill(t, s, n)
	if err := s.Log.DeleteRange(1, n-5); err != nil {
		t.Fatal(err)
	}
	if first, _ := s.Log.FirstIndex(); first != n-4 {
		t.Errorf("first index %d, want %d", first, n-4)
	}
	if ops["delete"] != 3 {
		t.Errorf("%d transactions, want 3", ops["delete"])
	}
	if err := s.Log.DeleteRange(n-2, n); err != nil {
		t.Fatal(err)
	}
	if last, _ := s.Log.LastIndex(); last != n-3 || ops["delete"] != 4 {
		t.Errorf("last index %d after %d transactions, want %d after 4", last, ops["delete"], n-3)
	}
	if bytes := s.Appended(); bytes != 10*n {
		t.Errorf("appended %d bytes", bytes)
	}
}

func TestStore_FailedVoteIsFatal(t *testing.T) {
	var fatal error
	s, err := open(t, t.TempDir(), func(o *Options) { o.Fatal = func(err error) { fatal = err } })
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if err := s.Stable.SetUint64([]byte("CurrentTerm"), 2); err == nil || fatal == nil {
		t.Fatalf("error %v, fatal %v", err, fatal)
	}
}

func TestStore_DropsUnfinishedSnapshots(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, "snapshots", "2-10-1.tmp")
	if err := os.MkdirAll(left, 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := open(t, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Fatalf("left over: %v", err)
	}
}

func TestStore_MarksIncarnationBesideTheState(t *testing.T) {
	dir := t.TempDir()
	s, err := open(t, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Incarnation(); got != "" || err != nil {
		t.Fatalf("fresh store: %q, %v", got, err)
	}
	if err := s.SetIncarnation("abc"); err != nil {
		t.Fatal(err)
	}
	if has, err := s.HasState(); has || err != nil {
		t.Fatalf("a mark is no raft state: %v, %v", has, err)
	}
	s.Close()
	if s, err = open(t, dir, nil); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got, _ := s.Incarnation(); got != "abc" {
		t.Fatalf("incarnation %q", got)
	}
}

func TestTimer_KnowsTheOldestCall(t *testing.T) {
	tm := newTimer(nil)
	if got := tm.oldest(); got != 0 {
		t.Fatalf("idle: %v", got)
	}
	done := tm.start("append")
	tm.mu.Lock()
	for call := range tm.running {
		tm.running[call] = time.Now().Add(-time.Minute)
	}
	tm.mu.Unlock()
	other := tm.start("get")
	if got := tm.oldest(); got < time.Minute {
		t.Errorf("oldest %v", got)
	}
	done(nil)
	other(nil)
	if got := tm.oldest(); got != 0 {
		t.Errorf("after the end: %v", got)
	}
}
