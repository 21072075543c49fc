package registry

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits of what a request may carry. Names are counted in bytes.
const (
	MaxNamespace = 128
	MaxGroup     = 128
	MaxName      = 512
	MaxCluster   = 64
	MaxIP        = 255
	MaxMetadata  = 16 << 10
	MaxApp       = 256
	// MaxInstances bounds the instances of one service.
	MaxInstances = 20_000
	// MaxClusters bounds the clusters of one service.
	MaxClusters = 1_000
	// MaxSetting bounds a free text among the settings of a service, a cluster or a
	// namespace.
	MaxSetting = 2_048
)

// ValidateServiceKey checks namespace, group and name. Characters of the grouped
// name are those of Nacos 1.4.7: letters, digits, `@ . : _ -`.
func ValidateServiceKey(k ServiceKey) error {
	if len(k.Namespace) > MaxNamespace {
		return tooLong("namespaceId", k.Namespace, MaxNamespace)
	}
	if !plain(k.Namespace) {
		return Invalid("namespaceId", k.Namespace, "holds control characters or is not UTF-8")
	}
	if len(k.Group()) > MaxGroup {
		return tooLong("groupName", k.Group(), MaxGroup)
	}
	if len(k.Grouped)-len(k.Group())-len(groupSeparator) > MaxName {
		return tooLong("serviceName", k.Name(), MaxName)
	}
	if !strings.Contains(k.Grouped, groupSeparator) || k.Group() == "" || k.Name() == "" {
		return Invalid("serviceName", k.Grouped, "must be group@@name, both not empty")
	}
	if !onlyRunes(k.Grouped, "@.:_-") {
		return Invalid("serviceName", k.Grouped, "may only have letters, digits and @ . : _ -")
	}
	return nil
}

// ValidateCluster checks a cluster name: letters, digits and `-`, as Nacos 1.4.7.
func ValidateCluster(name string) error {
	if len(name) > MaxCluster {
		return tooLong("clusterName", name, MaxCluster)
	}
	if name == "" || !onlyRunes(name, "-") {
		return Invalid("clusterName", name, "may only have letters, digits and -")
	}
	return nil
}

// ValidateIP checks an address or host name: not empty, bounded, one printable word.
// Nacos accepts host names and bare IPv6 here, and so do we; unlike it we refuse what
// was meant as an address and is none, since every consumer would fail on it.
func ValidateIP(ip string) error {
	if ip == "" {
		return Invalid("ip", ip, "must not be empty")
	}
	if len(ip) > MaxIP {
		return tooLong("ip", ip, MaxIP)
	}
	for i := 0; i < len(ip); i++ {
		if ip[i] <= ' ' || ip[i] == 0x7f || ip[i] == '#' || ip[i] == ',' {
			return Invalid("ip", ip, "must be an address or a host name")
		}
	}
	if !utf8.ValidString(ip) {
		return Invalid("ip", ip, "is not UTF-8")
	}
	if reason := malformed(ip); reason != "" {
		return Invalid("ip", ip, reason)
	}
	return nil
}

// ValidateWeight checks a weight as it comes from a request: 0 to 10000.
func ValidateWeight(w float64) error {
	if math.IsNaN(w) || w < 0 || w > MaxWeight {
		return Invalid("weight", strconv.FormatFloat(w, 'g', -1, 64), "must be a number from 0 to 10000")
	}
	return nil
}

// ValidateMetadata checks the size of a metadata set and that it is UTF-8.
func ValidateMetadata(m Metadata) error {
	if n := m.Size(); n > MaxMetadata {
		return Invalid("metadata", fmt.Sprintf("%d bytes", n), fmt.Sprintf("keys and values must not exceed %d bytes", MaxMetadata))
	}
	for _, p := range m {
		if !utf8.ValidString(p.Key) || !utf8.ValidString(p.Value) {
			return Invalid("metadata", p.Key, "is not UTF-8")
		}
	}
	return nil
}

// ValidateApp checks the name of the application that an instance belongs to: bounded,
// UTF-8 and without control characters; empty is fine.
func ValidateApp(app string) error {
	if len(app) > MaxApp {
		return tooLong("app", app, MaxApp)
	}
	if !plain(app) {
		return Invalid("app", app, "holds control characters or is not UTF-8")
	}
	return nil
}

// ValidateProtectThreshold checks a service's threshold: 0 to 1.
func ValidateProtectThreshold(t float64) error {
	if math.IsNaN(t) || t < 0 || t > 1 {
		return Invalid("protectThreshold", strconv.FormatFloat(t, 'g', -1, 64), "must be a number from 0 to 1")
	}
	return nil
}

// ValidateSpec checks everything that a registration says of an instance. bad names
// the timeout keys whose values were no numbers and fell back to their defaults.
func ValidateSpec(s Spec) (bad []string, err error) {
	if err := ValidateIP(s.IP); err != nil {
		return nil, err
	}
	if err := ValidateWeight(s.Weight); err != nil {
		return nil, err
	}
	if err := ValidateMetadata(s.Metadata); err != nil {
		return nil, err
	}
	if err := ValidateApp(s.App); err != nil {
		return nil, err
	}
	if err := ValidateCluster(s.Cluster); err != nil {
		return nil, err
	}
	_, bad, err = ParseTimeouts(s.Metadata)
	return bad, err
}

func tooLong(field, value string, limit int) error {
	return Invalid(field, value, fmt.Sprintf("has %d bytes, the limit is %d", len(value), limit))
}

// onlyRunes tells whether s holds ASCII letters, digits and the bytes of also.
func onlyRunes(s, also string) bool {
next:
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
			continue
		}
		for j := 0; j < len(also); j++ {
			if also[j] == c {
				continue next
			}
		}
		return false
	}
	return true
}

// plain tells whether s is UTF-8 without control characters.
func plain(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' || s[i] == 0x7f {
			return false
		}
	}
	return utf8.ValidString(s)
}
