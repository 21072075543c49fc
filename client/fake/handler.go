package fake

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

const base = "/nacos/v1/ns/instance"

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+base, s.register)
	mux.HandleFunc("PUT "+base, s.register)
	mux.HandleFunc("DELETE "+base, s.deregister)
	mux.HandleFunc("PUT "+base+"/beat", s.beat)
	mux.HandleFunc("GET "+base+"/list", s.list)
	mux.HandleFunc("GET /nacos/v1/ns/service/list", s.names)
	mux.HandleFunc("GET /nacos/v1/ns/operator/metrics", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, map[string]any{"status": "UP"}) })
	mux.HandleFunc("POST /nacos/v1/auth/users/login", s.login)
	mux.HandleFunc("GET /api/v1/watch", s.watch)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.admit(w, r) {
			mux.ServeHTTP(w, r)
		}
	})
}

// admit counts the request and refuses it when a test wants that.
func (s *Server) admit(w http.ResponseWriter, r *http.Request) bool {
	body := http.MaxBytesReader(w, r.Body, 1<<20)
	r.Body = body
	if err := r.ParseForm(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests[r.Method+" "+r.URL.Path]++
	switch {
	case s.status != 0:
		http.Error(w, "made to fail", s.status)
	case s.user != "" && !strings.HasSuffix(r.URL.Path, "/login") && r.Header.Get("Authorization") != "Bearer "+s.token():
		http.Error(w, "token invalid!", http.StatusForbidden)
	default:
		if !s.plain {
			w.Header().Set("X-Rollcall-Index", strconv.FormatUint(s.index, 10))
		}
		return true
	}
	return false
}

func (s *Server) token() string { return "token-of-" + s.user + "-" + s.pass }

func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.user != "" && (r.Form.Get("username") != s.user || r.Form.Get("password") != s.pass) {
		http.Error(w, "unknown user!", http.StatusForbidden)
		return
	}
	writeJSON(w, map[string]any{"accessToken": s.token(), "tokenTtl": 18000})
}

// instance reads the parameters of a registration.
func instance(r *http.Request) (i Instance, err error) {
	f := r.Form
	i = Instance{
		Service: grouped(f.Get("serviceName")), Cluster: f.Get("clusterName"), IP: f.Get("ip"), Weight: 1,
		Enabled: f.Get("enabled") != "false" && f.Get("enable") != "false", Healthy: true, Ephemeral: f.Get("ephemeral") != "false",
	}
	if i.Cluster == "" {
		i.Cluster = "DEFAULT"
	}
	if i.Port, err = strconv.Atoi(f.Get("port")); err != nil {
		return i, fmt.Errorf("port: %w", err)
	}
	if w := f.Get("weight"); w != "" {
		if i.Weight, err = strconv.ParseFloat(w, 64); err != nil {
			return i, fmt.Errorf("weight: %w", err)
		}
	}
	if m := f.Get("metadata"); m != "" {
		err = json.Unmarshal([]byte(m), &i.Metadata)
	}
	return i, err
}

func (s *Server) register(w http.ResponseWriter, r *http.Request) {
	i, err := instance(r)
	if err != nil || i.IP == "" || f(r, "serviceName") == "" {
		http.Error(w, fmt.Sprintf("bad instance: %v", err), http.StatusBadRequest)
		return
	}
	s.Put(i)
	fmt.Fprint(w, "ok")
}

func f(r *http.Request, name string) string { return r.Form.Get(name) }

func (s *Server) deregister(w http.ResponseWriter, r *http.Request) {
	i, err := instance(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.Remove(i)
	fmt.Fprint(w, "ok")
}

func (s *Server) beat(w http.ResponseWriter, r *http.Request) {
	i, err := instance(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beats++
	answer := map[string]any{"clientBeatInterval": s.interval.Milliseconds(), "code": 10200, "lightBeatEnabled": s.light}
	at := s.services[i.Service]
	switch {
	case at != nil && at.instances[i.key()] != nil:
		at.instances[i.key()].beaten = time.Now()
	case f(r, "beat") == "":
		answer = map[string]any{"clientBeatInterval": s.interval.Milliseconds(), "code": 20404}
	default:
		if err := json.Unmarshal([]byte(f(r, "beat")), &struct {
			Weight   *float64
			Metadata *map[string]string
		}{&i.Weight, &i.Metadata}); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.put(i)
	}
	writeJSON(w, answer)
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	name, clusters := grouped(f(r, "serviceName")), f(r, "clusters")
	s.mu.Lock()
	defer s.mu.Unlock()
	cache := 3000
	if s.subscribe(r, name) {
		cache = 10_000
	}
	hosts, stamp := []any{}, int64(0)
	for _, i := range s.instances(name) {
		if i.Enabled && (clusters == "" || slices.Contains(strings.Split(clusters, ","), i.Cluster)) {
			hosts = append(hosts, host(i))
		}
	}
	if at := s.services[name]; at != nil {
		stamp = at.stamp
	}
	if s.plain {
		stamp = time.Now().UnixMilli() // of the answer, as a stock server has it
	}
	writeJSON(w, map[string]any{"name": name, "clusters": clusters, "cacheMillis": cache, "lastRefTime": stamp, "hosts": hosts})
}

func host(i Instance) map[string]any {
	m := i.Metadata
	if m == nil {
		m = map[string]string{}
	}
	return map[string]any{
		"ip": i.IP, "port": i.Port, "weight": i.Weight, "healthy": i.Healthy, "enabled": i.Enabled, "ephemeral": i.Ephemeral,
		"clusterName": i.Cluster, "serviceName": i.Service, "metadata": m, "instanceId": i.key() + "#" + i.Service,
	}
}

func (s *Server) names(w http.ResponseWriter, r *http.Request) {
	group := f(r, "groupName")
	if group == "" {
		group = "DEFAULT_GROUP"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	doms := []string{}
	for name := range s.services {
		if plain, found := strings.CutPrefix(name, group+"@@"); found {
			doms = append(doms, plain)
		}
	}
	slices.Sort(doms)
	page, _ := strconv.Atoi(f(r, "pageNo"))   // what is no number is the first page
	size, _ := strconv.Atoi(f(r, "pageSize")) // or an empty one
	from := min(max(page-1, 0)*max(size, 0), len(doms))
	writeJSON(w, map[string]any{"count": len(doms), "doms": doms[from:min(from+size, len(doms))]})
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // a failed write is a client that left
}
