package httpapi

import (
	"strings"

	"github.com/rollcall-io/rollcall/registry"
)

// parseMetadata reads a metadata parameter in one of its two forms: a JSON object of
// scalars, of which numbers and booleans count as their source text and nulls as absent,
// or `k=v,k2=v2`. Blank text and JSON's null are no metadata. Text after a complete
// object is ignored and of a repeated key the last value wins, as in Nacos.
func parseMetadata(text string) (registry.Metadata, error) {
	trimmed := javaTrim(text)
	if trimmed == "" || trimmed == "null" {
		return nil, nil
	}
	if pairs, ok := objectPairs(trimmed); ok {
		return registry.NewMetadata(pairs), nil
	}
	pairs, ok := listPairs(text)
	if !ok {
		return nil, failed("metadata format incorrect:" + shorten(text))
	}
	return registry.NewMetadata(pairs), nil
}

// objectPairs are the members of a JSON object whose values are scalars or null.
func objectPairs(text string) (pairs []registry.Pair, ok bool) {
	_, ok = scanObject(text, func(key string, v jsonValue) bool {
		if v.isNull() {
			return true
		}
		value, scalar := v.scalar()
		pairs = append(pairs, registry.Pair{Key: key, Value: value})
		return scalar
	})
	return pairs, ok
}

// listPairs reads `k=v,k2=v2` by the rules of Java's split: empty parts at the end do
// not count, so `a=1,` is one pair and `a=` is none; nothing is trimmed.
func listPairs(text string) (pairs []registry.Pair, ok bool) {
	for _, part := range javaSplit(text, ",") {
		kv := javaSplit(part, "=")
		if len(kv) != 2 {
			return nil, false
		}
		pairs = append(pairs, registry.Pair{Key: kv[0], Value: kv[1]})
	}
	return pairs, true
}

func javaSplit(s, sep string) []string {
	parts := strings.Split(s, sep)
	for len(parts) > 0 && parts[len(parts)-1] == "" {
		parts = parts[:len(parts)-1]
	}
	return parts
}
