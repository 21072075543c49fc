package store

import "testing"

func TestSizes_NewestEntriesCount(t *testing.T) {
	s := sizes{step: 10}
	if _, bounded := s.within(100); bounded {
		t.Error("an empty log is bounded")
	}
	bytes := uint64(0)
	for i := uint64(1); i <= 5000; i++ { // small ones
		bytes++
		s.note(i, bytes)
	}
	if got, bounded := s.within(1000); !bounded || got < 985 || got > 1000 {
		t.Errorf("%d small entries fit into 1000 bytes", got)
	}
	for i := uint64(5001); i <= 5100; i++ { // large ones
		bytes += 100
		s.note(i, bytes)
	}
	if got, bounded := s.within(1000); !bounded || got != 10 {
		t.Errorf("%d large entries fit into 1000 bytes, want 10", got)
	}
	if got, _ := s.within(5); got != 0 {
		t.Errorf("%d entries fit into 5 bytes", got)
	}
	if _, bounded := s.within(1 << 30); bounded {
		t.Error("everything fits, and it is bounded")
	}
}

func TestSizes_BytesAfterAnIndex(t *testing.T) {
	s := sizes{step: 10}
	if got := s.after(0); got != 0 {
		t.Errorf("%d bytes in an empty log", got)
	}
	for i := uint64(1); i <= 1000; i++ {
		s.note(i, 3*i)
	}
	for index, want := range map[uint64]uint64{0: 3000, 500: 1500, 999: 3, 1000: 0, 2000: 0} {
		if got := s.after(index); got > want || got+15 < want {
			t.Errorf("%d bytes after index %d, want %d or a step less", got, index, want)
		}
	}
}
