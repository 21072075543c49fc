package fake

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

func grouped(name string) string {
	if strings.Contains(name, "@@") {
		return name
	}
	return "DEFAULT_GROUP@@" + name
}

func (i Instance) key() string { return fmt.Sprintf("%s#%s#%d", i.Cluster, i.IP, i.Port) }

// Put registers an instance as if another process had, or replaces the one of the same
// service, cluster, IP and port. Values are taken as they are, unchecked. Followers are
// told.
func (s *Server) Put(i Instance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(i)
}

func (s *Server) put(i Instance) {
	i.Service, i.Cluster = grouped(i.Service), cmp.Or(i.Cluster, "DEFAULT")
	at := s.services[i.Service]
	if at == nil {
		at = &service{instances: map[string]*held{}}
		s.services[i.Service] = at
	}
	at.instances[i.key()] = &held{i, time.Now()}
	s.touch(i.Service)
}

// Remove takes the instance of that service, cluster, IP and port out, and tells followers;
// false when it is not there.
func (s *Server) Remove(i Instance) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.remove(i)
}

func (s *Server) remove(i Instance) bool {
	i.Service, i.Cluster = grouped(i.Service), cmp.Or(i.Cluster, "DEFAULT")
	at := s.services[i.Service]
	if at == nil || at.instances[i.key()] == nil {
		return false
	}
	delete(at.instances, i.key())
	s.touch(i.Service)
	return true
}

// touch notes a change of a service and tells of it; the mutex is held.
func (s *Server) touch(name string) {
	at := s.services[name]
	s.index++
	at.index, at.stamp = s.index, max(at.stamp+1, time.Now().UnixMilli())
	close(s.changed)
	s.changed = make(chan struct{})
	s.push(name)
}

// Forget drops all instances without telling anybody, as a server does that lost its
// memory: followers see it when they ask.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.services {
		clear(at.instances)
		at.stamp++
	}
}

// Expire removes the ephemeral instances that have not beaten for longer than this, and
// tells followers. An instance counts as beating when it is put or registered.
func (s *Server) Expire(silence time.Duration) (removed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.services {
		for _, h := range at.instances {
			if h.Ephemeral && time.Since(h.beaten) > silence && s.remove(h.Instance) {
				removed++
			}
		}
	}
	return removed
}

// Silent counts the ephemeral instances that have not beaten for longer than this.
func (s *Server) Silent(silence time.Duration) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.services {
		for _, h := range at.instances {
			if h.Ephemeral && time.Since(h.beaten) > silence {
				n++
			}
		}
	}
	return n
}

// Instances are those of a service, which may go without its group, by cluster, IP and
// port; disabled ones too. The slice is the caller's, nil when there is none.
func (s *Server) Instances(name string) []Instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.instances(grouped(name))
}

func (s *Server) instances(name string) []Instance {
	at := s.services[name]
	if at == nil {
		return nil
	}
	var all []Instance
	for _, h := range at.instances {
		all = append(all, h.Instance)
	}
	slices.SortFunc(all, func(a, b Instance) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.IP, b.IP), a.Port-b.Port)
	})
	return all
}
