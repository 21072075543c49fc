package httpapi

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/rollcall-io/rollcall/registry"
)

var clusterRoutes = []route{
	{http.MethodPut, nsPrefix + "/cluster", write, (*Server).updateCluster},
	{http.MethodPut, nsPrefix + "/health", write, (*Server).setHealth},
	{http.MethodPut, nsPrefix + "/health/instance", write, (*Server).setHealth},
	{http.MethodGet, nsPrefix + "/health/server", shared, (*Server).healthServer},
}

// updateCluster is PUT /cluster: the probe and metadata of a cluster, made when missing.
func (s *Server) updateCluster(r *request) error {
	key, err := r.requiredServiceUnchecked()
	if err != nil {
		return err
	}
	name, err := r.required("clusterName")
	if err != nil {
		return err
	}
	c := registry.Cluster{Name: name}
	if c.CheckPort, err = r.checkPort(); err != nil {
		return err
	}
	useInstancePort, err := r.required("useInstancePort4Check")
	if err != nil {
		return err
	}
	c.UseInstancePort = isTrue(useInstancePort)
	checker, err := r.required("healthChecker")
	if err != nil {
		return err
	}
	if c.Checker, err = parseChecker(checker); err != nil {
		return err
	}
	text, _ := r.params.get("metadata")
	if c.Metadata, err = parseMetadata(text); err != nil {
		return err
	}
	return r.commitCluster(key, c)
}

func (r *request) commitCluster(key registry.ServiceKey, c registry.Cluster) error {
	if err := checkServiceKey(key); err != nil {
		return err
	}
	if err := checkCluster(c.Name); err != nil {
		return err
	}
	if err := registry.ValidateClusterSettings(c); err != nil {
		return err
	}
	err := r.commit(registry.ClusterUpdate{Key: key, Cluster: c})
	if errors.Is(err, registry.ErrServiceNotFound) {
		return failed("service not found:" + key.Grouped)
	}
	return err
}

// checkPort reads the port that probes go to. Nacos answers 500 to 0 and to a text, and
// changes the cluster all the same.
func (r *request) checkPort() (uint16, error) {
	text, err := r.required("checkPort")
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return 0, registry.Invalid("checkPort", text, "must be a number from 1 to 65535")
	}
	return uint16(n), nil
}

// parseChecker reads a healthChecker parameter. An unknown type is refused: Nacos takes
// it for NONE and so switches the checks off.
func parseChecker(text string) (registry.Checker, error) {
	c := registry.Checker{ExpectedCode: http.StatusOK}
	var bad error
	if _, ok := scanObject(text, func(key string, v jsonValue) bool {
		scalar, _ := v.scalar()
		switch key {
		case "type":
			c.Type = scalar
		case "path":
			c.Path = scalar
		case "headers":
			c.Headers = scalar
		case "expectedResponseCode":
			if c.ExpectedCode, bad = integer(scalar); bad != nil {
				bad = registry.Invalid(key, scalar, "must be a status code")
			}
		case "user":
			c.User = scalar
		case "pwd":
			c.Password = scalar
		case "cmd":
			c.Command = scalar
		}
		return bad == nil
	}); bad == nil && !ok {
		bad = registry.Invalid("healthChecker", text, "must be a JSON object")
	}
	if c.Type != registry.CheckHTTP {
		c.ExpectedCode = 0
	}
	return c, bad
}

// setHealth is PUT /health: the health of an instance by hand, where nothing checks it.
// It is `ok` for an instance that is not there.
func (s *Server) setHealth(r *request) error {
	key, err := r.requiredService()
	if err != nil {
		return err
	}
	address, err := r.address(r.optional("clusterName", registry.DefaultCluster))
	if err != nil {
		return err
	}
	text := r.optional("healthy", r.optional("valid", ""))
	if text == "" {
		return missing("healthy")
	}
	if err := checkTarget(key, address); err != nil {
		return err
	}
	if !s.unchecked(key, address.Cluster) {
		if err := s.catchUp(r); err != nil {
			return err
		}
	}
	if !s.unchecked(key, address.Cluster) {
		return s.checked(key, address.Cluster)
	}
	healthy := isTrue(text)
	err = r.commit(registry.Patch{Key: address.In(key), Healthy: &healthy})
	if errors.Is(err, registry.ErrInstanceNotFound) {
		return r.ok()
	}
	return err
}

// unchecked tells whether nothing probes the instances of a cluster.
func (s *Server) unchecked(key registry.ServiceKey, cluster string) bool {
	service := s.opts.Reader.Service(key)
	if service == nil {
		return false
	}
	c, found := service.Cluster(cluster)
	return found && c.Checker.Type == registry.CheckNone
}

// checked is why health cannot be set by hand.
func (s *Server) checked(key registry.ServiceKey, cluster string) error {
	service := s.opts.Reader.Service(key)
	if service == nil {
		return registry.Invalid("serviceName", key.Grouped, "no such service")
	}
	if _, found := service.Cluster(cluster); !found {
		return registry.Invalid("clusterName", cluster, "no such cluster")
	}
	return illegal("health check is still working, service: " + key.Grouped)
}

// healthServer is GET /health/server, a greeting with the number of services.
func (s *Server) healthServer(r *request) error {
	services, _ := s.opts.Reader.Counts()
	b := append(r.buffer(), `{"msg":"Hello! I am Nacos-Naming and healthy! total services: raft `...)
	b = appendInt(b, int64(services))
	b = append(b, ", local port:"...)
	b = appendInt(b, int64(r.localPort()))
	return r.json(append(b, `"}`...))
}
