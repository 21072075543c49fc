package httpapi

import (
	"fmt"
	"strings"

	"github.com/rollcall-io/rollcall/registry"
)

// serviceList is GET /service/list: the names of a group's services, page by page in the
// order of grouped names. count is the number of all that match.
func (s *Server) serviceList(r *request) error {
	pageNo, pageSize, err := r.page()
	if err != nil {
		return err
	}
	filter, err := parseMetadataFilter(r.optional("selector", ""))
	if err != nil {
		return err
	}
	group := r.optional("groupName", registry.DefaultGroup)
	services := matching(s.opts.Reader.Services(r.namespace()), group, filter)
	from, to, err := pageOf(len(services), pageNo, pageSize)
	if err != nil {
		return err
	}
	b := append(r.buffer(), `{"doms":[`...)
	for i, service := range services[from:to] {
		if i > 0 {
			b = append(b, ',')
		}
		name := service.Key.Grouped
		if group != "*" {
			name = service.Key.Name()
		}
		b = appendString(b, name)
	}
	b = appendInt(append(b, `],"count":`...), int64(len(services)))
	return r.json(append(b, '}'))
}

// page reads pageNo and pageSize, both needed; what is no number is 0.
func (r *request) page() (pageNo, pageSize int, err error) {
	no, err := r.required("pageNo")
	if err != nil {
		return 0, 0, err
	}
	size, err := r.required("pageSize")
	if err != nil {
		return 0, 0, err
	}
	return lenientInteger(no), lenientInteger(size), nil
}

// matching are the services of a group, `*` for all groups, that pass the filter.
func matching(all []*registry.Service, group string, filter metadataFilter) []*registry.Service {
	kept := make([]*registry.Service, 0, len(all))
	prefix := group + "@@"
	for _, service := range all {
		if (group == "*" || strings.HasPrefix(service.Key.Grouped, prefix)) && filter.matches(service) {
			kept = append(kept, service)
		}
	}
	return kept
}

// pageOf are the bounds of a page, counted from 1; a page before the first is the first
// and one beyond the last is empty. A negative size is refused with Java's own text.
func pageOf(count, pageNo, pageSize int) (from, to int, err error) {
	if pageSize < 0 {
		return 0, 0, illegal(fmt.Sprintf("fromIndex(0) > toIndex(%d)", pageSize))
	}
	start := int64(max(0, pageNo-1)) * int64(pageSize)
	if start >= int64(count) {
		return count, count, nil
	}
	return int(start), int(min(start+int64(pageSize), int64(count))), nil
}
