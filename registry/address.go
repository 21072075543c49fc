package registry

import (
	"net/netip"
	"strings"
)

// malformed says why a text that was meant as an address is none, or "". With a colon
// it is meant as IPv6 (a zone may follow), with digits and dots alone, or as one
// hexadecimal number, as IPv4; all else is a host name.
func malformed(ip string) string {
	switch {
	case strings.ContainsAny(ip, "[]"):
		return "must be without brackets"
	case strings.Contains(ip, ":"):
		if a, err := netip.ParseAddr(ip); err != nil || !a.Is6() {
			return "is neither an IPv6 address nor a host name; a port does not belong here"
		}
	case strings.Contains(ip, "%"):
		return "must be an address or a host name"
	case strings.HasPrefix(ip, "0x") && onlyRunes(ip, ""), strings.Trim(ip, "0123456789.") == "":
		if a, err := netip.ParseAddr(ip); err != nil || !a.Is4() {
			return "is not an IPv4 address"
		}
	}
	return ""
}
