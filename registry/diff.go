package registry

// Change is the difference between two instance lists of one service, each part in
// the order of addresses. Applying it to the one list gives the other.
type Change struct {
	Added    []*Instance
	Removed  []*Instance
	Modified []Modification
}

// Modification is an instance that is in both lists with different content.
type Modification struct {
	Before *Instance
	After  *Instance
}

// Empty tells whether the lists are the same.
func (c Change) Empty() bool {
	return len(c.Added) == 0 && len(c.Removed) == 0 && len(c.Modified) == 0
}

// Diff compares two states of one service, either of which may be nil, in one walk
// over both lists. An instance is modified when its generation or anything that a
// client can see differs; a new grant of its lease alone is no change.
func Diff(before, after *Service) Change {
	var c Change
	b, a := listOf(before), listOf(after)
	for len(b) > 0 && len(a) > 0 {
		if b[0] == a[0] {
			b, a = b[1:], a[1:]
			continue
		}
		switch order := b[0].Address.Compare(a[0].Address); {
		case order < 0:
			c.Removed = append(c.Removed, b[0])
			b = b[1:]
		case order > 0:
			c.Added = append(c.Added, a[0])
			a = a[1:]
		default:
			if !sameInstance(b[0], a[0]) {
				c.Modified = append(c.Modified, Modification{b[0], a[0]})
			}
			b, a = b[1:], a[1:]
		}
	}
	c.Removed = append(c.Removed, b...)
	c.Added = append(c.Added, a...)
	return c
}

func listOf(s *Service) []*Instance {
	if s == nil {
		return nil
	}
	return s.instances
}

func sameInstance(a, b *Instance) bool {
	return a.Generation == b.Generation && a.SnowflakeID == b.SnowflakeID && a.Spec.Equal(b.Spec)
}
