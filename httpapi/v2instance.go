package httpapi

import (
	"errors"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/rollcall-io/rollcall/registry"
)

var v2InstanceRoutes = []route{
	{http.MethodPost, v2NsPrefix + "/instance", write, (*Server).v2Register},
	{http.MethodPut, v2NsPrefix + "/instance", write, (*Server).v2Update},
	{http.MethodDelete, v2NsPrefix + "/instance", write, (*Server).v2Deregister},
	{http.MethodPatch, v2NsPrefix + "/instance", write, (*Server).v2Patch},
	{http.MethodGet, v2NsPrefix + "/instance", reads, (*Server).v2Detail},
	{http.MethodGet, v2NsPrefix + "/instance/list", reads, (*Server).v2List},
	{http.MethodPut, v2NsPrefix + "/instance/beat", write, (*Server).v2Beat},
	{http.MethodGet, v2NsPrefix + "/instance/statuses/:key", statusReads, (*Server).v2Statuses},
	{http.MethodPut, v2NsPrefix + "/instance/metadata/batch", write, (*Server).v2MergeMetadata},
	{http.MethodDelete, v2NsPrefix + "/instance/metadata/batch", write, (*Server).v2DropMetadata},
}

// v2Service is the service that a request of the open API names. The name goes without
// its group; dom is no alias here. absent is the refusal of a request without a name.
func (r *request) v2Service(absent error) (registry.ServiceKey, error) {
	name := r.optional("serviceName", "")
	if name == "" {
		return registry.ServiceKey{}, absent
	}
	if strings.Contains(name, "@@") {
		return registry.ServiceKey{}, registry.Invalid("serviceName", name, "must be without its group, which groupName names")
	}
	key := registry.NewServiceKey(r.namespace(), r.optional("groupName", ""), name)
	return key, registry.ValidateServiceKey(key)
}

// v2Instance reads the instance that a form describes, in the order of Nacos' checks.
func (r *request) v2Instance() (key registry.ServiceKey, spec registry.Spec, err error) {
	if key, err = r.v2Service(v2Missing("serviceName", "String")); err != nil {
		return key, spec, err
	}
	if spec.Address, err = r.v2Address(); err != nil {
		return key, spec, err
	}
	spec.Weight = 1
	if v := r.optional("weight", ""); v != "" {
		if spec.Weight, err = double(v); err != nil {
			return key, spec, v2Error(http.StatusBadRequest, codeInvalid, "weight \""+shorten(v)+"\": must be a number from 0 to 10000")
		}
	}
	if math.IsNaN(spec.Weight) || spec.Weight < 0 || spec.Weight > registry.MaxWeight {
		return key, spec, v2Error(http.StatusBadRequest, codeWeight, "instance format invalid: The weights range from 0.0 to 10000.0")
	}
	if spec.Healthy, err = r.v2Flag("healthy", true); err != nil {
		return key, spec, err
	}
	if spec.Enabled, err = r.v2Flag("enabled", true); err != nil {
		return key, spec, err
	}
	if spec.Ephemeral, err = r.v2Flag("ephemeral", r.srv.opts.Reader.Switches().DefaultInstanceEphemeral); err != nil {
		return key, spec, err
	}
	if spec.Metadata, err = r.v2Metadata(); err != nil {
		return key, spec, err
	}
	bad, err := registry.ValidateSpec(spec)
	r.srv.warnTimeouts(key, spec, bad)
	return key, spec, err
}

// v2Address reads ip, port and cluster of a form.
func (r *request) v2Address() (a registry.Address, err error) {
	if a.IP = r.optional("ip", ""); a.IP == "" {
		return a, v2Missing("ip", "String")
	}
	text := r.optional("port", "")
	if text == "" {
		return a, v2Missing("port", "Integer")
	}
	if a.Port, err = port(text); err != nil {
		return a, err
	}
	a.Cluster = r.optional("clusterName", registry.DefaultCluster)
	if !allBytes(a.Cluster, "-") {
		return a, v2Error(http.StatusBadRequest, codeInstance,
			"Instance 'clusterName' should be characters with only 0-9a-zA-Z-. (current: "+a.Cluster+")")
	}
	return a, registry.ValidateIP(a.IP)
}

// v2Metadata reads the metadata of a form.
func (r *request) v2Metadata() (registry.Metadata, error) {
	text, _ := r.params.get("metadata")
	m, err := parseMetadata(text)
	if err != nil {
		return nil, v2Error(http.StatusBadRequest, codeMetadata, err.Error())
	}
	return m, registry.ValidateMetadata(m)
}

func (s *Server) v2Register(r *request) error {
	key, spec, err := r.v2Instance()
	if err != nil {
		return err
	}
	return r.v2Commit(registry.Register{Service: key, Spec: spec})
}

// v2Update is PUT: weight and enabled are set, to their defaults when they are left out;
// metadata is merged into what is there. An instance that is not there is `ok`.
func (s *Server) v2Update(r *request) error {
	key, spec, err := r.v2Instance()
	if err != nil {
		return err
	}
	p := registry.Patch{Key: spec.Address.In(key), Weight: &spec.Weight, Enabled: &spec.Enabled, Merge: true}
	if r.optional("metadata", "") != "" {
		p.Metadata = &spec.Metadata
	}
	err = r.v2Commit(p)
	switch {
	case errors.Is(err, registry.ErrInstanceNotFound) && s.opts.Reader.Service(key) != nil:
		return r.v2OK()
	case errors.Is(err, registry.ErrServiceNotFound), errors.Is(err, registry.ErrInstanceNotFound):
		return v2Error(http.StatusBadRequest, codeInstance, "service not found, namespace: "+key.Namespace+
			", service: Service{namespace='"+key.Namespace+"', group='"+key.Group()+"', name='"+key.Name()+"', ephemeral=true, revision=0}")
	}
	return err
}

// v2Deregister is DELETE: `ok` for what is not there; naming the other kind is refused.
func (s *Server) v2Deregister(r *request) error {
	key, err := r.v2Service(v2Missing("serviceName", "String"))
	if err != nil {
		return err
	}
	address, err := r.v2Address()
	if err != nil {
		return err
	}
	kind := registry.AnyKind
	if r.optional("ephemeral", "") != "" {
		ephemeral, err := r.boundFlag("ephemeral")
		if err != nil {
			return err
		}
		if kind = registry.KindPersistent; ephemeral {
			kind = registry.KindEphemeral
		}
	}
	return r.v2Commit(registry.Deregister{Key: address.In(key), Kind: kind})
}

// v2Grouped is the service of the three routes that take the name with its group.
func (r *request) v2Grouped() (registry.ServiceKey, error) {
	name := r.optional("serviceName", "")
	if name == "" {
		return registry.ServiceKey{}, v2Unbound("serviceName")
	}
	key := registry.ServiceKey{Namespace: r.namespace(), Grouped: name}
	if err := checkGrouped(name); err != nil {
		return key, v2Error(http.StatusBadRequest, codeInvalid, err.Error())
	}
	return key, registry.ValidateServiceKey(key)
}

// v2Patch is PATCH, which answers a bare `ok` and wants all of its parameters; metadata is
// merged into what is there.
func (s *Server) v2Patch(r *request) error {
	key, err := r.v2Grouped()
	if err != nil {
		return err
	}
	for _, name := range []string{"ip", "port", "weight", "enabled", "metadata"} {
		if r.optional(name, "") == "" {
			return v2Unbound(name)
		}
	}
	address, err := r.address(r.cluster())
	if err != nil {
		return err
	}
	p := registry.Patch{Key: address.In(key), Merge: true}
	if err := r.patchFields(&p); err != nil {
		var e *reply
		if errors.As(err, &e) { // v1's own refusals are 500
			return v2Error(http.StatusBadRequest, codeInvalid, e.text)
		}
		return err
	}
	p.Healthy = nil // not settable here
	if err := r.commit(p); !errors.Is(err, registry.ErrServiceNotFound) && !errors.Is(err, registry.ErrInstanceNotFound) {
		return err
	}
	return s.v2NoInstance(key, address.Cluster)
}

// v2NoInstance is the error of an instance that is not there.
func (s *Server) v2NoInstance(key registry.ServiceKey, cluster string) error {
	if s.opts.Reader.Service(key) == nil {
		return v2Error(http.StatusNotFound, codeNotFound, "no ips found for cluster "+shorten(cluster)+" in service "+key.Grouped)
	}
	return v2Error(http.StatusNotFound, codeNotFound, "no matched ip found!")
}

// v2Beat is PUT /instance/beat. It has no envelope, and its answer for an unknown
// instance says lightBeatEnabled too.
func (s *Server) v2Beat(r *request) error {
	key, err := r.v2Grouped()
	if err != nil {
		return err
	}
	beat, nameless, err := r.readBeat(key)
	if err != nil {
		return err
	}
	sw := s.opts.Reader.Switches()
	answer := registry.BeatReply{Interval: sw.ClientBeatInterval, LightEnabled: sw.LightBeatEnabled}
	if !nameless {
		if answer, err = s.opts.Beater.Beat(r.gin.Request.Context(), beat); err != nil {
			return err
		}
	}
	code := beatUnknown
	if answer.Known {
		code = beatOK
	}
	b := appendInt(append(r.buffer(), `{"clientBeatInterval":`...), int64(answer.Interval))
	b = appendInt(append(b, `,"code":`...), int64(code))
	b = appendBool(append(b, `,"lightBeatEnabled":`...), sw.LightBeatEnabled)
	return r.json(append(b, '}'))
}

// v2MergeMetadata and v2DropMetadata are PUT and DELETE /instance/metadata/batch.
func (s *Server) v2MergeMetadata(r *request) error { return s.v2MetadataBatch(r, false) }

func (s *Server) v2DropMetadata(r *request) error { return s.v2MetadataBatch(r, true) }

// v2MetadataBatch works on the instances that are listed, else on all of a kind.
func (s *Server) v2MetadataBatch(r *request, drop bool) error {
	batch := registry.MetadataBatch{Delete: drop, Kind: registry.KindEphemeral}
	var err error
	if batch.Service, err = r.v2Service(v2Missing("serviceName", "String")); err != nil {
		return err
	}
	if r.optional("metadata", "") == "" {
		return v2Missing("metadata", "String")
	}
	if batch.Metadata, err = r.v2Metadata(); err != nil {
		return err
	}
	if r.optional("consistencyType", "") == "persist" {
		batch.Kind = registry.KindPersistent
	}
	if text := r.optional("instances", ""); text != "" {
		if batch.Targets, err = parseTargets(text); err != nil {
			return err
		}
	}
	result, err := r.propose(batch)
	if err != nil && !errors.Is(err, registry.ErrServiceNotFound) {
		return err
	}
	b := appendUpdated(append(r.v2Begin(), `{"updated":`...), slices.Clip(result.Touched))
	return r.json(append(b, "}}"...))
}
