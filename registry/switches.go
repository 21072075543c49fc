package registry

import (
	"strconv"
)

// Switches are the replicated settings of the whole cluster, named as Nacos names its
// switch entries. A Switches value is immutable.
type Switches struct {
	// ClientBeatInterval is told to clients whose instance sets none, in milliseconds.
	ClientBeatInterval uint32
	// DefaultCacheMillis is how long a list answer may be used, in milliseconds.
	DefaultCacheMillis uint32
	// DefaultPushCacheMillis is the same for subscribers that get pushes.
	DefaultPushCacheMillis uint32
	// HealthCheckEnabled gates flips, evictions and probes. Entry "check".
	HealthCheckEnabled bool
	// ExpireInstance gates evictions alone.
	ExpireInstance bool
	// LightBeatEnabled is told to clients in beat answers.
	LightBeatEnabled bool
	// PushEnabled gates UDP pushes.
	PushEnabled bool
	// DefaultInstanceEphemeral is the kind of an instance that names none.
	DefaultInstanceEphemeral bool
	// CheckTimes is how many equal probe results in a row change health. Entry
	// "healthCheckTimes".
	CheckTimes uint32
}

// DefaultSwitches are those of Nacos 1.4.7.
func DefaultSwitches() Switches {
	return Switches{
		ClientBeatInterval: DefaultBeatInterval, DefaultCacheMillis: 3_000, DefaultPushCacheMillis: 10_000,
		HealthCheckEnabled: true, ExpireInstance: true, LightBeatEnabled: true, PushEnabled: true,
		DefaultInstanceEphemeral: true, CheckTimes: 3,
	}
}

// With is s with one entry set from its text. An unknown entry or a bad value is an
// ErrInvalid that names it, and s is returned as it was.
func (s Switches) With(entry, value string) (Switches, error) {
	next := s
	if flag := next.flag(entry); flag != nil {
		b, err := strconv.ParseBool(value)
		if err != nil {
			return s, Invalid(entry, value, "must be true or false")
		}
		*flag = b
		return next, nil
	}
	number, low := next.number(entry)
	if number == nil {
		return s, Invalid("entry", entry, "is not a switch")
	}
	n, err := strconv.ParseUint(value, 10, 32)
	if err != nil || uint32(n) < low || n > MaxTimeout {
		return s, Invalid(entry, value, "must be a number of at least "+strconv.Itoa(int(low)))
	}
	*number = uint32(n)
	return next, nil
}

// switchEntries are the names that Pairs lists and With takes, sorted.
var switchEntries = []string{
	"check", "clientBeatInterval", "defaultCacheMillis", "defaultInstanceEphemeral",
	"defaultPushCacheMillis", "expireInstance", "healthCheckTimes", "lightBeatEnabled", "pushEnabled",
}

// Pairs are all entries with their values as text, sorted by name: the form that
// snapshots and digests use.
func (s Switches) Pairs() []Pair {
	pairs := make([]Pair, 0, len(switchEntries))
	for _, entry := range switchEntries {
		if flag := s.flag(entry); flag != nil {
			pairs = append(pairs, Pair{entry, strconv.FormatBool(*flag)})
		} else if number, _ := s.number(entry); number != nil {
			pairs = append(pairs, Pair{entry, strconv.FormatUint(uint64(*number), 10)})
		}
	}
	return pairs
}

func (s *Switches) flag(entry string) *bool {
	switch entry {
	case "check":
		return &s.HealthCheckEnabled
	case "expireInstance":
		return &s.ExpireInstance
	case "lightBeatEnabled":
		return &s.LightBeatEnabled
	case "pushEnabled":
		return &s.PushEnabled
	case "defaultInstanceEphemeral":
		return &s.DefaultInstanceEphemeral
	}
	return nil
}

// number is the field of a numeric entry and its smallest value (Nacos 1.4.7).
func (s *Switches) number(entry string) (field *uint32, low uint32) {
	switch entry {
	case "clientBeatInterval":
		return &s.ClientBeatInterval, 500
	case "defaultCacheMillis":
		return &s.DefaultCacheMillis, 1_000
	case "defaultPushCacheMillis":
		return &s.DefaultPushCacheMillis, 10_000
	case "healthCheckTimes":
		return &s.CheckTimes, 1
	}
	return nil, 0
}
