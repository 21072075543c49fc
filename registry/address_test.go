package registry

import (
	"errors"
	"testing"
)

func TestValidateIP_Spellings(t *testing.T) {
	t.Parallel()
	for ip, good := range map[string]bool{
		"10.1.0.1": true, "host-a.internal": true, "localhost": true, "0x": false, "0xcafe.example": true,
		"2001:db8::1": true, "fe80::1%eth0": true, "::ffff:10.1.0.1": true, "::": true, "unknown_host": true,
		"999.1.1.1": false, "1.2.3": false, "10.1.0.1:8080": false, "host:80": false, "[2001:db8::1]": false,
		"0x0a010001": false, "12345": false, "%ZZ": false, "": false, "a b": false, "10.01.0.1": false,
	} {
		if err := ValidateIP(ip); (err == nil) != good || (err != nil && !errors.Is(err, ErrInvalid)) {
			t.Errorf("ValidateIP(%q) = %v, want accepted: %v", ip, err, good)
		}
	}
}
