package client

import "time"

// put makes a list the live one unless it is older; the mutex is held. It returns what
// became of it. Data and events go together: an event is the difference between what was
// in place and what is, so none can be lost for data that was stored.
func (f *follower) put(l wireList, index, number uint64) (outcome string) {
	old := f.live
	if !f.newer(old, l, index, number) {
		if f.olderSince.IsZero() {
			f.olderSince = time.Now()
		}
		if time.Since(f.olderSince) < insist {
			return "older"
		}
		f.c.opts.Logger.Warn("the servers only know older lists: taking one", "service", f.key.name)
	}
	f.olderSince = time.Time{}
	next := newSnapshot(f.key.name, keepEqual(old.all, l.instances(f.key.name)), &f.turn)
	next.stamp, next.index, next.ordered, next.source = l.LastRefTime, max(index, l.Index), index > 0, FromServer
	f.applied = max(f.applied, number)
	if f.c.opts.ProtectEmpty && len(next.Healthy()) == 0 && len(old.Healthy()) > 0 {
		return "protected"
	}
	outcome = "changed"
	if old.source == FromServer && next.same(old) {
		kept := *old
		kept.stamp, kept.index, kept.ordered, kept.at = next.stamp, next.index, next.ordered, next.at
		next, outcome = &kept, "same"
	}
	f.live, f.unsaved = next, f.unsaved || outcome == "changed" || old.source != FromServer
	f.publish()
	return outcome
}

// keepEqual puts instances that have not changed in the place of their equals, so that
// whoever keeps something for an instance finds it under the same pointer.
func keepEqual(old, all []*Instance) []*Instance {
	for n, i := range all {
		for len(old) > 0 && old[0].compare(i) < 0 {
			old = old[1:]
		}
		if len(old) > 0 && old[0].compare(i) == 0 && old[0].equal(i) {
			all[n] = old[0]
		}
	}
	return all
}

// newer tells whether a list counts against the one in place. Where stamps come from a
// replicated log they decide, whichever node answers in which order. A stock server
// stamps each answer with the clock of the node that gives it, so there the order in
// which the requests began decides.
func (f *follower) newer(old *Snapshot, l wireList, index, number uint64) bool {
	switch {
	case old.source != FromServer:
		return true
	case index == 0 || !old.ordered:
		return number > f.applied
	case l.LastRefTime == 0: // the server knows no such service, any more or yet
		return index > old.index || old.stamp == 0
	case old.stamp == 0:
		return index >= old.index
	}
	return l.LastRefTime >= old.stamp
}

// publish shows the snapshot that counts and wakes the listeners; the mutex is held, or
// nobody else knows the follower yet.
func (f *follower) publish() {
	now := f.live
	if f.pinned != nil {
		now = f.pinned
	}
	before := f.current.Swap(now)
	if before == now || before.source == now.source && before.same(now) {
		return
	}
	for sub := range f.subs {
		select {
		case sub.signal <- struct{}{}:
		default:
		}
	}
}

// pin puts a list of the fail-over directory in the place of the live one, nil ends that.
func (f *follower) pin(s *Snapshot) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s != nil && f.pinned != nil && s.same(f.pinned) {
		return
	}
	f.pinned = s
	f.publish()
}

// useDisk takes the list of the cache directory when there is no other.
func (f *follower) useDisk() {
	if f.c.disk == nil {
		return
	}
	l, known := f.c.disk.load(f.key)
	if !known {
		return
	}
	s := snapshotOf(l, f, FromDisk)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.live.source == FromNowhere {
		f.live = s
		f.publish()
	}
}

// snapshotOf makes a snapshot of a list that comes from a file.
func snapshotOf(l wireList, f *follower, source Source) *Snapshot {
	s := newSnapshot(f.key.name, l.instances(f.key.name), &f.turn)
	s.stamp, s.index, s.source = l.LastRefTime, l.Index, source
	return s
}

// save writes the live list to the cache directory when it changed.
func (f *follower) save() {
	if f.c.disk == nil {
		return
	}
	f.mu.Lock()
	s, unsaved := f.live, f.unsaved
	f.unsaved = false
	f.mu.Unlock()
	if !unsaved {
		return
	}
	if err := f.c.disk.save(f.key, listOf(s, f.key.clusters)); err != nil {
		f.c.opts.Logger.Warn("list not kept on disk", "service", f.key.name, "error", err)
	}
}
