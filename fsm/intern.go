package fsm

import (
	"strings"

	"github.com/rollcall-io/rollcall/registry"
)

const (
	// maxInterned bounds the table, maxInternedLen the texts in it: cluster names,
	// application names, namespace ids and metadata keys, of which there are few.
	maxInterned    = 4096
	maxInternedLen = 64
)

// interner makes instances share the texts that many of them have, and frees what they
// keep from the log entry that it came in. It changes what the state costs, never what
// it says.
type interner struct{ texts map[string]string }

func newInterner() interner { return interner{make(map[string]string)} }

// get is a copy of s, the same one for the same text as far as the table reaches.
func (i interner) get(s string) string {
	if s == "" {
		return ""
	}
	if known, found := i.texts[s]; found {
		return known
	}
	s = strings.Clone(s)
	if len(s) <= maxInternedLen {
		if len(i.texts) >= maxInterned {
			clear(i.texts)
		}
		i.texts[s] = s
	}
	return s
}

// spec is a copy of s that keeps nothing of the texts that s was made of: ip and
// metadata values go into one new text.
func (i interner) spec(s *registry.Spec) registry.Spec {
	kept := *s
	kept.Cluster = i.get(s.Cluster)
	kept.App = i.get(s.App)
	size := len(s.IP)
	for _, p := range s.Metadata {
		size += len(p.Value)
	}
	var own strings.Builder
	own.Grow(size)
	own.WriteString(s.IP)
	for _, p := range s.Metadata {
		own.WriteString(p.Value)
	}
	text := own.String()
	kept.IP, text = text[:len(s.IP)], text[len(s.IP):]
	kept.Metadata = nil
	if len(s.Metadata) > 0 {
		kept.Metadata = make(registry.Metadata, len(s.Metadata))
		for n, p := range s.Metadata {
			kept.Metadata[n].Key = i.get(p.Key)
			kept.Metadata[n].Value, text = text[:len(p.Value)], text[len(p.Value):]
		}
	}
	return kept
}

// metadata is a copy of m with texts of its own.
func (i interner) metadata(m registry.Metadata) registry.Metadata {
	if len(m) == 0 {
		return nil
	}
	kept := make(registry.Metadata, len(m))
	for n, p := range m {
		kept[n] = registry.Pair{Key: i.get(p.Key), Value: strings.Clone(p.Value)}
	}
	return kept
}

// cluster is a copy of a cluster's settings with texts of its own.
func (i interner) cluster(c registry.Cluster) registry.Cluster {
	c.Name = i.get(c.Name)
	for _, text := range []*string{
		&c.Checker.Type, &c.Checker.Path, &c.Checker.Headers,
		&c.Checker.User, &c.Checker.Password, &c.Checker.Command,
	} {
		*text = i.get(*text)
	}
	c.Metadata = i.metadata(c.Metadata)
	return c
}
