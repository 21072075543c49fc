package httpapi

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/rollcall-io/rollcall/registry"
)

var instanceRoutes = instanceRoutesUnder(nsPrefix + "/instance")

// instanceRoutesUnder are the routes of the instance controller, which Nacos has under
// two prefixes.
func instanceRoutesUnder(prefix string) []route {
	return []route{
		{http.MethodPost, prefix, write, (*Server).register},
		{http.MethodPut, prefix, write, (*Server).update},
		{http.MethodPatch, prefix, write, (*Server).patch},
		{http.MethodDelete, prefix, write, (*Server).deregister},
		{http.MethodGet, prefix, reads, (*Server).detail},
		{http.MethodGet, prefix + "/list", reads, (*Server).list},
		{http.MethodGet, prefix + "/statuses", statusReads, (*Server).statuses},
		{http.MethodPut, prefix + "/beat", write, (*Server).beat},
		{http.MethodPut, prefix + "/metadata/batch", write, (*Server).mergeMetadata},
		{http.MethodDelete, prefix + "/metadata/batch", write, (*Server).dropMetadata},
	}
}

// register is POST /instance: it puts an instance, new or not.
func (s *Server) register(r *request) error {
	key, spec, err := r.instance()
	if err != nil {
		return err
	}
	return r.commit(registry.Register{Service: key, Spec: spec})
}

// update is PUT /instance: for the Java client since 1.0.0 the instance must be there,
// all others register with it (the oldest know no other verb for that).
func (s *Server) update(r *request) error {
	key, spec, err := r.instance()
	if err != nil {
		return err
	}
	if !r.agent().grouped() {
		return r.commit(registry.Register{Service: key, Spec: spec})
	}
	err = r.commit(registry.Update{Service: key, Spec: spec})
	switch {
	case errors.Is(err, registry.ErrServiceNotFound):
		return failed("service not found, namespace: " + key.Namespace + ", service: " + key.Grouped)
	case errors.Is(err, registry.ErrInstanceNotFound):
		return failed("instance not exist: " + describe(spec))
	}
	return err
}

// describe is an instance as Nacos prints it: key_weight_healthy_marked_cluster.
func describe(spec registry.Spec) string {
	b := append([]byte(spec.DatumKey()), '_')
	b = append(appendDouble(b, spec.Weight), '_')
	b = append(strconv.AppendBool(b, spec.Healthy), "_false_"...)
	return string(append(b, spec.Cluster...))
}

// instance reads the instance that POST and PUT describe, checked in Nacos' order.
func (r *request) instance() (registry.ServiceKey, registry.Spec, error) {
	var spec registry.Spec
	key, err := r.requiredService()
	if err != nil {
		return key, spec, err
	}
	if spec.Address, err = r.address(r.cluster()); err != nil {
		return key, spec, err
	}
	spec.Weight = 1
	if v := r.optional("weight", ""); v != "" {
		if spec.Weight, err = weight(v); err != nil {
			return key, spec, err
		}
	}
	spec.Enabled = isTrue(r.optional("enabled", r.optional("enable", "true")))
	spec.Healthy = isTrue(r.optional("healthy", "true"))
	spec.App = r.optional("app", "DEFAULT")
	if v := r.optional("ephemeral", ""); v != "" {
		spec.Ephemeral = isTrue(v)
	} else {
		spec.Ephemeral = r.srv.opts.Reader.Switches().DefaultInstanceEphemeral
	}
	text, _ := r.params.get("metadata")
	if spec.Metadata, err = parseMetadata(text); err != nil {
		return key, spec, err
	}
	return key, spec, r.check(key, spec)
}

// check validates what a registration says, Nacos' own refusals first.
func (r *request) check(key registry.ServiceKey, spec registry.Spec) error {
	if err := checkWeight(spec.Weight); err != nil {
		return err
	}
	if err := checkServiceKey(key); err != nil {
		return err
	}
	if err := checkCluster(spec.Cluster); err != nil {
		return err
	}
	bad, err := registry.ValidateSpec(spec)
	if err != nil {
		return err
	}
	r.srv.warnTimeouts(key, spec, bad)
	return nil
}

// warnTimeouts says once per instance and key that a timeout was no number and counts
// as its default, since Nacos accepts it without a word.
func (s *Server) warnTimeouts(key registry.ServiceKey, spec registry.Spec, bad []string) {
	for _, name := range bad {
		instance := spec.Address.In(key).String()
		if s.once.first(instance+" "+name, time.Now()) {
			value, _ := spec.Metadata.Get(name)
			s.log.Warn("timeout is no number of milliseconds, using the default",
				"instance", instance, "key", name, "value", shorten(value))
		}
	}
}

// patch is PATCH /instance: it changes the fields that are given.
func (s *Server) patch(r *request) error {
	key, err := r.requiredService()
	if err != nil {
		return err
	}
	address, err := r.address(r.cluster())
	if err != nil {
		return err
	}
	p := registry.Patch{Key: address.In(key)}
	if err := r.patchFields(&p); err != nil {
		return err
	}
	err = r.commit(p)
	if errors.Is(err, registry.ErrServiceNotFound) || errors.Is(err, registry.ErrInstanceNotFound) {
		return illegal("instance not found")
	}
	return err
}

func (r *request) patchFields(p *registry.Patch) error {
	if v := r.optional("metadata", ""); v != "" {
		m, err := parseMetadata(v)
		if err != nil {
			return err
		}
		if err := registry.ValidateMetadata(m); err != nil {
			return err
		}
		if _, _, err := registry.ParseTimeouts(m); err != nil {
			return err
		}
		p.Metadata = &m
	}
	if v := r.optional("app", ""); v != "" {
		if err := registry.ValidateApp(v); err != nil {
			return err
		}
		p.App = &v
	}
	if v := r.optional("weight", ""); v != "" {
		w, err := weight(v)
		if err != nil {
			return err
		}
		if err := checkWeight(w); err != nil {
			return err
		}
		p.Weight = &w
	}
	if v := r.optional("healthy", ""); v != "" {
		healthy := isTrue(v)
		p.Healthy = &healthy
	}
	if v := r.optional("enabled", ""); v != "" {
		enabled := isTrue(v)
		p.Enabled = &enabled
	}
	return nil
}

// deregister is DELETE /instance. It is `ok` for what is not there; one that names the
// other kind than the instance has is refused.
func (s *Server) deregister(r *request) error {
	address, err := r.address(r.cluster())
	if err != nil {
		return err
	}
	if v := r.optional("weight", ""); v != "" {
		if _, err := weight(v); err != nil {
			return err
		}
	}
	key, err := r.requiredService()
	if err != nil {
		return err
	}
	if err := checkTarget(key, address); err != nil {
		return err
	}
	kind := registry.AnyKind
	if v := r.optional("ephemeral", ""); v != "" {
		kind = registry.KindPersistent
		if isTrue(v) {
			kind = registry.KindEphemeral
		}
	}
	err = r.commit(registry.Deregister{Key: address.In(key), Kind: kind})
	if errors.Is(err, registry.ErrKindMismatch) {
		return registry.Invalid("ephemeral", r.optional("ephemeral", ""), "the instance is registered as the other kind")
	}
	return err
}

// checkTarget validates the key of a command that makes nothing.
func checkTarget(key registry.ServiceKey, a registry.Address) error {
	if err := checkServiceKey(key); err != nil {
		return err
	}
	if err := checkCluster(a.Cluster); err != nil {
		return err
	}
	return registry.ValidateIP(a.IP)
}
