package registry

import (
	"fmt"
	"strconv"
)

// Metadata keys that Nacos clients use to set the life of an ephemeral instance,
// in milliseconds, and to choose how its id is made.
const (
	KeyBeatInterval  = "preserved.heart.beat.interval"
	KeyBeatTimeout   = "preserved.heart.beat.timeout"
	KeyDeleteTimeout = "preserved.ip.delete.timeout"
	KeyIDGenerator   = "preserved.instance.id.generator"
)

// Defaults of an instance's timeouts, in milliseconds, and the largest value kept
// (a larger one is lowered to it): 24 days.
const (
	DefaultBeatInterval  = 5_000
	DefaultBeatTimeout   = 15_000
	DefaultDeleteTimeout = 30_000
	MaxTimeout           = 24 * 24 * 3600 * 1000
)

// Timeouts are an ephemeral instance's beat interval, beat timeout and delete
// timeout in milliseconds. Strictly more than Beat without a beat makes it
// unhealthy, strictly more than Delete removes it.
type Timeouts struct {
	Interval uint32
	Beat     uint32
	Delete   uint32
}

// DefaultTimeouts are those of an instance whose metadata says nothing.
func DefaultTimeouts() Timeouts {
	return Timeouts{DefaultBeatInterval, DefaultBeatTimeout, DefaultDeleteTimeout}
}

// ParseTimeouts reads the timeouts out of an instance's metadata. A value that is no
// number of milliseconds means the default, as in Nacos; its key is returned in bad
// so that the caller can log it. An interval of 0 means the default too, since a
// client must be told to wait. The error, an ErrInvalid that names the key, says that
// a timeout lies below the interval (refused by Nacos since 2.0).
func ParseTimeouts(m Metadata) (t Timeouts, bad []string, err error) {
	t = DefaultTimeouts()
	if len(m) == 0 {
		return t, nil, nil
	}
	for _, f := range []struct {
		key  string
		into *uint32
	}{{KeyBeatInterval, &t.Interval}, {KeyBeatTimeout, &t.Beat}, {KeyDeleteTimeout, &t.Delete}} {
		text, found := m.Get(f.key)
		if !found {
			continue
		}
		ms, ok := parseMillis(text)
		if !ok || (ms == 0 && f.key == KeyBeatInterval) {
			bad = append(bad, f.key)
			continue
		}
		*f.into = ms
	}
	if t.Beat < t.Interval {
		return t, bad, invalidTimeout(KeyBeatTimeout, t.Beat, t.Interval)
	}
	if t.Delete < t.Interval {
		return t, bad, invalidTimeout(KeyDeleteTimeout, t.Delete, t.Interval)
	}
	return t, bad, nil
}

func invalidTimeout(key string, ms, interval uint32) error {
	return Invalid(key, strconv.Itoa(int(ms)),
		fmt.Sprintf("must not be below %s (%d ms)", KeyBeatInterval, interval))
}

// parseMillis reads digits only, as Nacos does: no sign, no blank, no fraction.
func parseMillis(text string) (uint32, bool) {
	if text == "" {
		return 0, false
	}
	var n uint64
	for i := 0; i < len(text); i++ {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
		if n <= MaxTimeout {
			n = n*10 + uint64(text[i]-'0')
		}
	}
	return uint32(min(n, MaxTimeout)), true
}
