package auth

import (
	"strings"

	"github.com/rollcall-io/rollcall/registry"
)

// Any, as a part of a Resource, is all there are: a permission covers it only with a `*`.
const Any = "*"

// Resource is what a request touches: a service, a whole namespace with Any as group and
// service, or all namespaces.
type Resource struct {
	Namespace string
	Group     string
	Service   string
}

// Service is the resource of one service.
func Service(k registry.ServiceKey) Resource { return Resource{k.Namespace, k.Group(), k.Name()} }

// Namespace is the resource of a whole namespace.
func Namespace(id string) Resource { return Resource{id, Any, Any} }

// Action is reading or writing.
type Action byte

// The actions, as they are spelled in permissions.
const (
	Read  Action = 'r'
	Write Action = 'w'
)

// Admin tells whether a user may do everything.
func Admin(a *registry.Accounts, user string) bool { return a.Has(user, registry.RoleAdmin) }

// Allowed tells whether one of the user's roles permits an action on a resource.
func Allowed(a *registry.Accounts, user string, r Resource, action Action) bool {
	if Admin(a, user) {
		return true
	}
	for _, b := range a.Bindings {
		if b.User != user {
			continue
		}
		for _, p := range a.PermissionsOf(b.Role) {
			if strings.IndexByte(p.Action, byte(action)) >= 0 && Covers(p.Resource, r) {
				return true
			}
		}
	}
	return false
}

// kindPrefix stands before the service in a permission: Nacos has others for
// configurations.
const kindPrefix = "naming/"

// Covers tells whether the resource of a permission, `namespace:group:naming/service`, takes
// a resource in. It is matched part by part, since all three may hold colons in a request
// and one that names a strange namespace must not reach into another's permission. The
// default namespace is spelled `public` or left empty.
func Covers(pattern string, r Resource) bool {
	if pattern == Any {
		return true
	}
	namespace, rest, found := strings.Cut(pattern, ":")
	if !found {
		return false
	}
	at := strings.Index(rest, ":"+kindPrefix)
	if at < 0 {
		at = strings.LastIndexByte(rest, ':')
	}
	if at < 0 {
		return false
	}
	return glob(plainNamespace(namespace), plainNamespace(r.Namespace)) &&
		glob(rest[:at], r.Group) && glob(rest[at+1:], kindPrefix+r.Service)
}

func plainNamespace(id string) string {
	if id == registry.DefaultNamespace {
		return ""
	}
	return id
}

// glob matches a text with a pattern in which `*` is any text, in time linear in both for
// each star.
func glob(pattern, text string) bool {
	first, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == text
	}
	text, ok := strings.CutPrefix(text, first)
	if !ok {
		return false
	}
	for {
		part, after, more := strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(text, part)
		}
		at := strings.Index(text, part)
		if at < 0 {
			return false
		}
		text, rest = text[at+len(part):], after
	}
}
