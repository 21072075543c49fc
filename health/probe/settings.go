package probe

import (
	"errors"
	"fmt"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

// Settings tune the probes.
type Settings struct {
	// Concurrency bounds the probes under way at once.
	Concurrency int
	// Timeout bounds one probe, save for the types that Timeouts gives another.
	Timeout  time.Duration
	Timeouts map[string]time.Duration
	// MinInterval and MaxInterval bound the time from one probe of an instance to the next:
	// quick answers bring it down, slow ones and a backlog of ours bring it up.
	MinInterval time.Duration
	MaxInterval time.Duration
	// FirstWithin is the time over which the first probes are spread.
	FirstWithin time.Duration
	// Checkers make the probes, by type as cluster settings name it in capitals. An
	// instance whose type is not among them is not probed.
	Checkers map[string]Checker
}

// DefaultSettings probe by TCP and HTTP, with 500 ms as in Nacos, and MySQL, with 500 ms for
// the connection and a second for the command. 256 at once
// carry 5,000 instances also when a good part of them does not answer.
func DefaultSettings() Settings {
	return Settings{
		Concurrency: 256,
		Timeout:     500 * time.Millisecond,
		MinInterval: 2 * time.Second,
		MaxInterval: 5 * time.Second,
		FirstWithin: 2 * time.Second,
		Timeouts:    map[string]time.Duration{registry.CheckMySQL: mysqlTimeout},
		Checkers:    map[string]Checker{registry.CheckTCP: TCP{}, registry.CheckHTTP: NewHTTP(), registry.CheckMySQL: MySQL{}},
	}
}

// timeout bounds a probe of one type, named in capitals.
func (s *Settings) timeout(kind string) time.Duration {
	if d, found := s.Timeouts[kind]; found {
		return d
	}
	return s.Timeout
}

// Validate reports every setting that cannot work, joined.
func (s Settings) Validate() error {
	var bad []error
	if s.Concurrency < 1 {
		bad = append(bad, fmt.Errorf("probe: concurrency %d: must be at least 1", s.Concurrency))
	}
	if s.Timeout <= 0 || s.MinInterval <= 0 || s.FirstWithin <= 0 {
		bad = append(bad, errors.New("probe: timeout, interval and spread must be above 0"))
	}
	for kind, d := range s.Timeouts {
		if d <= 0 {
			bad = append(bad, fmt.Errorf("probe: timeout %s of %s: must be above 0", d, kind))
		}
	}
	if s.MaxInterval < s.MinInterval {
		bad = append(bad, fmt.Errorf("probe: interval from %s to %s: the second must not be smaller",
			s.MinInterval, s.MaxInterval))
	}
	return errors.Join(bad...)
}
