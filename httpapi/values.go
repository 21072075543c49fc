package httpapi

import (
	"math"
	"strconv"
	"strings"

	"github.com/rollcall-io/rollcall/registry"
)

// required is a parameter that must be there and not empty (Nacos,
// WebUtils.required). It is trimmed, and blanks alone pass as "".
func (r *request) required(name string) (string, error) {
	v, _ := r.params.get(name)
	if v == "" {
		return "", missing(name)
	}
	return javaTrim(v), nil
}

// optional is a parameter or, when it is missing or blank, the fallback; trimmed.
func (r *request) optional(name, fallback string) string {
	if v, _ := r.params.get(name); v != "" {
		if v = javaTrim(v); v != "" {
			return v
		}
	}
	return fallback
}

// bound is a parameter that Nacos binds by annotation: it must be there, may be empty
// and is not trimmed.
func (r *request) bound(name string) (string, error) {
	v, found := r.params.get(name)
	if !found {
		return "", failed("Required request parameter '" + name + "' for method parameter type String is not present")
	}
	return v, nil
}

// isTrue is a boolean that Nacos reads with its converter: true, on, yes, t and y in any
// case are true, every other text is false, `1` included.
func isTrue(v string) bool {
	switch len(v) {
	case 1:
		return v == "t" || v == "y" || v == "T" || v == "Y"
	case 2:
		return strings.EqualFold(v, "on")
	case 3:
		return strings.EqualFold(v, "yes")
	case 4:
		return strings.EqualFold(v, "true")
	}
	return false
}

// boundFlag is a boolean that Nacos binds by annotation, false when missing or empty.
func (r *request) boundFlag(name string) (bool, error) {
	v := r.optional(name, "")
	switch strings.ToLower(v) {
	case "true", "on", "yes", "1":
		return true, nil
	case "", "false", "off", "no", "0":
		return false, nil
	}
	return false, registry.Invalid(name, v, "must be true or false")
}

// integer is Java's Integer.parseInt: an optional sign and digits, within 32 bits.
func integer(v string) (int, error) {
	n, err := strconv.ParseInt(v, 10, 32)
	if err != nil {
		return 0, notNumber(v)
	}
	return int(n), nil
}

// lenientInteger is integer with 0 for every text that is no number.
func lenientInteger(v string) int {
	n, err := integer(javaTrim(v))
	if err != nil {
		return 0
	}
	return n
}

// port reads a port: a Java integer from 0 to 65535. Nacos 1.4.7 accepts any integer.
func port(v string) (uint16, error) {
	n, err := integer(v)
	if err != nil {
		return 0, err
	}
	if n < 0 || n > math.MaxUint16 {
		return 0, registry.Invalid("port", v, "must be a number from 0 to 65535")
	}
	return uint16(n), nil
}

// double is Java's Double.parseDouble: decimal or hexadecimal, blanks around it and a
// type suffix allowed; NaN and Infinity are numbers, and too large is Infinity.
func double(v string) (float64, error) {
	s := javaTrim(v)
	if n := len(s); n > 1 && strings.IndexByte("fFdD", s[n-1]) >= 0 {
		s = s[:n-1]
	}
	switch unsigned := strings.TrimLeft(s, "+-"); {
	case unsigned == "NaN" || unsigned == "Infinity":
	case unsigned == "" || strings.IndexByte(".0123456789", unsigned[0]) < 0 || strings.IndexByte(s, '_') >= 0:
		return 0, notNumber(v)
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !math.IsInf(f, 0) {
		return 0, notNumber(v)
	}
	return f, nil
}

// weight reads a weight. Out of range is Nacos' own refusal; what is no number at all
// (NaN passes there) is refused by name.
func weight(v string) (float64, error) {
	w, err := double(v)
	if err != nil {
		return 0, err
	}
	if math.IsNaN(w) {
		return 0, registry.Invalid("weight", v, "must be a number from 0 to 10000")
	}
	return w, nil
}

func checkWeight(w float64) error {
	if w < 0 || w > registry.MaxWeight {
		return failed("instance format invalid: The weights range from 0.0 to 10000.0")
	}
	return nil
}

// threshold reads a protect threshold, 0 to 1.
func threshold(v string) (float64, error) {
	f, err := double(v)
	if err != nil || registry.ValidateProtectThreshold(f) != nil {
		return 0, registry.Invalid("protectThreshold", v, "must be a number from 0 to 1")
	}
	return f, nil
}

// javaTrim is String.trim: everything up to the blank goes, at both ends.
func javaTrim(s string) string {
	for s != "" && s[0] <= ' ' {
		s = s[1:]
	}
	for s != "" && s[len(s)-1] <= ' ' {
		s = s[:len(s)-1]
	}
	return s
}
