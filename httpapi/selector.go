package httpapi

import (
	"strings"

	"github.com/rollcall-io/rollcall/registry"
)

const (
	consumerLabel = "CONSUMER.label."
	providerLabel = "PROVIDER.label."
)

// parseSelector reads the selector of a service: JSON, which Nacos decodes once more
// than the parameter itself. No text is the selector that lets all through.
func parseSelector(text string) (registry.Selector, error) {
	none := registry.Selector{Type: registry.SelectorNone}
	if text = javaTrim(unescape(text, true)); text == "" {
		return none, nil
	}
	var sel registry.Selector
	if _, ok := scanObject(text, func(key string, v jsonValue) bool {
		scalar, _ := v.scalar()
		switch key {
		case "type":
			sel.Type = scalar
		case "expression":
			sel.Expression = scalar
		}
		return true
	}); !ok {
		return none, registry.Invalid("selector", text, "must be a JSON object")
	}
	switch sel.Type {
	case registry.SelectorNone:
		return none, nil
	case registry.SelectorLabel:
		if len(sel.Expression) > registry.MaxMetadata {
			return none, registry.Invalid("selector", sel.Expression, "expression is too long")
		}
		if _, ok := selectorLabels(sel.Expression); !ok {
			return none, failed("parse expression failed!")
		}
		return sel, nil
	}
	return none, registry.Invalid("selector", text, "type must be none or label")
}

// selectorLabels are the labels of an expression such as
// `CONSUMER.label.A = PROVIDER.label.A & CONSUMER.label.B = PROVIDER.label.B`.
func selectorLabels(expression string) (labels []string, ok bool) {
	expression = strings.Join(strings.Fields(expression), "")
	if expression == "" {
		return nil, true
	}
	for _, term := range strings.Split(expression, "&") {
		left, right, _ := strings.Cut(term, "=")
		label, isConsumer := strings.CutPrefix(left, consumerLabel)
		other, isProvider := strings.CutPrefix(right, providerLabel)
		if !isConsumer || !isProvider || label == "" || label != other {
			return nil, false
		}
		labels = append(labels, label)
	}
	return labels, true
}

func appendSelector(b []byte, s registry.Selector) []byte {
	if s.Type != registry.SelectorLabel {
		return append(b, `{"type":"none"}`...)
	}
	b = appendString(append(b, `{"type":"label","expression":`...), s.Expression)
	b = append(b, `,"labels":[`...)
	labels, _ := selectorLabels(s.Expression) // it was parsed before it was stored
	for i, label := range labels {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, label)
	}
	return append(b, "]}"...)
}

// metadataFilter is the selector of a service list: `INSTANCE.metadata.k = 'v'` or
// `SERVICE.metadata.k = 'v'`. The zero value lets every service through.
type metadataFilter struct {
	ofService bool
	key       string
	value     string
}

// parseMetadataFilter reads it. Expressions of other forms do not filter, as in Nacos.
func parseMetadataFilter(text string) (metadataFilter, error) {
	var f metadataFilter
	if text == "" {
		return f, nil
	}
	kind, expression := "", ""
	if _, ok := scanObject(text, func(key string, v jsonValue) bool {
		scalar, _ := v.scalar()
		switch key {
		case "type":
			kind = scalar
		case "expression":
			expression = scalar
		}
		return true
	}); !ok {
		return f, registry.Invalid("selector", text, "must be a JSON object")
	}
	if kind != registry.SelectorLabel || expression == "" {
		return f, nil
	}
	left, right, found := strings.Cut(expression, "=")
	if !found {
		return f, registry.Invalid("selector", expression, "expression must be <scope>.metadata.<key> = '<value>'")
	}
	left, right = javaTrim(left), strings.Trim(javaTrim(right), "'")
	switch {
	case strings.HasPrefix(left, "INSTANCE.metadata."):
	case strings.HasPrefix(left, "SERVICE.metadata."):
		f.ofService = true
	default:
		return metadataFilter{}, nil
	}
	f.key, f.value = left[strings.LastIndexByte(left, '.')+1:], right
	return f, nil
}

// matches tells whether the service, or one of its instances, has the value.
func (f metadataFilter) matches(s *registry.Service) bool {
	if f.key == "" {
		return true
	}
	if f.ofService {
		v, found := s.Metadata.Get(f.key)
		return found && v == f.value
	}
	for _, in := range s.Instances() {
		if v, found := in.Metadata.Get(f.key); found && v == f.value {
			return true
		}
	}
	return false
}
