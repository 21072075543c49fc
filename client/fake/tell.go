package fake

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// subscribe notes where to push; false when the request does not ask for that. The mutex
// is held.
func (s *Server) subscribe(r *http.Request, name string) bool {
	port, err := strconv.ParseUint(f(r, "udpPort"), 10, 16)
	if err != nil || port == 0 || !strings.HasPrefix(r.UserAgent(), "Nacos-") {
		return false
	}
	if s.subscribers[name] == nil {
		s.subscribers[name] = map[string]bool{}
	}
	s.subscribers[name][net.JoinHostPort(f(r, "clientIP"), strconv.FormatUint(port, 10))] = true
	return true
}

// push sends what changed to the subscribers of a service; the mutex is held.
func (s *Server) push(name string) {
	if len(s.subscribers[name]) == 0 {
		return
	}
	at := s.services[name]
	data, err := json.Marshal(map[string]any{"name": name, "clusters": "", "cacheMillis": 10_000, "lastRefTime": at.stamp, "hosts": []any{}})
	if err != nil {
		return // texts and numbers only: it cannot fail
	}
	packet, err := json.Marshal(map[string]any{"type": "dom", "data": string(data), "lastRefTime": at.stamp})
	if err != nil {
		return
	}
	for address := range s.subscribers[name] {
		if to, err := netip.ParseAddrPort(address); err == nil {
			_, _ = s.udp.WriteToUDPAddrPort(packet, to) // a push may get lost
		}
	}
}

// watch is rollcall's stream of events, for one service, without the instances.
func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	name := f(r, "group") + "@@" + f(r, "service")
	s.mu.Lock()
	plain := s.plain
	s.mu.Unlock()
	if plain {
		http.NotFound(w, r)
		return
	}
	told, _ := strconv.ParseUint(f(r, "index"), 10, 64) // none is 0
	w.Header().Set("Content-Type", "text/event-stream")
	rc := http.NewResponseController(w)
	keep := time.NewTicker(time.Second)
	defer keep.Stop()
	for {
		s.mu.Lock()
		index, changed, running := uint64(0), s.changed, s.http != nil
		if at := s.services[name]; at != nil {
			index = at.index
		}
		s.mu.Unlock()
		if !running {
			return
		}
		text := ": idle\n\n"
		if index > told {
			text = fmt.Sprintf("id: %d\ndata: {\"index\":%d}\n\n", index, index)
			told = index
		}
		if _, err := fmt.Fprint(w, text); err != nil || rc.Flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-changed:
		case <-keep.C:
		}
	}
}
