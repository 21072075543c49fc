package httpapi

import (
	"errors"
	"net/http"

	"github.com/rollcall-io/rollcall/registry"
)

var serviceRoutes = []route{
	{http.MethodPost, nsPrefix + "/service", write, (*Server).createService},
	{http.MethodPut, nsPrefix + "/service", write, (*Server).updateService},
	{http.MethodDelete, nsPrefix + "/service", write, (*Server).deleteService},
	{http.MethodGet, nsPrefix + "/service", reads, (*Server).service},
	{http.MethodGet, nsPrefix + "/service/list", scans, (*Server).serviceList},
	{http.MethodGet, nsPrefix + "/service/names", everywhere, (*Server).serviceNames},
	{http.MethodPut, nsPrefix + "/service/checksum", reads, (*Server).serviceChecksum},
}

// createService is POST /service: a service made by hand, which stays when it is empty.
func (s *Server) createService(r *request) error {
	key, err := r.boundService()
	if err != nil {
		return err
	}
	var spec registry.ServiceSpec
	if v := r.optional("protectThreshold", ""); v != "" {
		if _, err := double(v); err != nil {
			return badFloat(v)
		}
		if spec.ProtectThreshold, err = threshold(v); err != nil {
			return err
		}
	}
	if err := r.serviceSpec(key, &spec); err != nil {
		return err
	}
	err = r.commit(registry.ServiceCreate{Key: key, Spec: spec})
	if errors.Is(err, registry.ErrServiceExists) {
		return illegal("specified service already exists, serviceName : " + key.Grouped)
	}
	return err
}

// badFloat is the two-link text of a value that Spring cannot convert.
func badFloat(v string) error {
	const prefix = "Failed to convert value of type 'java.lang.String' to required type 'float'; " +
		"nested exception is java.lang.NumberFormatException: "
	cause := "For input string: \"" + shorten(v) + "\""
	return failed(prefix + cause + ";caused: " + cause)
}

// updateService is PUT /service. It replaces all settings: what is left out is reset.
func (s *Server) updateService(r *request) error {
	key, err := r.requiredServiceUnchecked()
	if err != nil {
		return err
	}
	text, err := r.required("protectThreshold")
	if err != nil {
		return err
	}
	var spec registry.ServiceSpec
	if spec.ProtectThreshold, err = threshold(text); err != nil {
		return err
	}
	if err := r.serviceSpec(key, &spec); err != nil {
		return err
	}
	err = r.commit(registry.ServiceUpdate{Key: key, Spec: spec})
	if errors.Is(err, registry.ErrServiceNotFound) {
		return failed("service " + key.Grouped + " not found!")
	}
	return err
}

// requiredServiceUnchecked is the key of a service route, on which the form of a grouped
// name is not checked apart.
func (r *request) requiredServiceUnchecked() (registry.ServiceKey, error) {
	if r.rawServiceName() == "" {
		return registry.ServiceKey{}, missing("serviceName")
	}
	return r.service(), nil
}

// serviceSpec reads metadata and selector and validates the whole.
func (r *request) serviceSpec(key registry.ServiceKey, spec *registry.ServiceSpec) (err error) {
	text, _ := r.params.get("metadata")
	if spec.Metadata, err = parseMetadata(text); err != nil {
		return err
	}
	if err := registry.ValidateMetadata(spec.Metadata); err != nil {
		return err
	}
	if spec.Selector, err = parseSelector(r.optional("selector", "")); err != nil {
		return err
	}
	return checkServiceKey(key)
}

// deleteService is DELETE /service; a service with instances stays, as in Nacos 2.
func (s *Server) deleteService(r *request) error {
	key, err := r.boundService()
	if err != nil {
		return err
	}
	if err := checkServiceKey(key); err != nil {
		return err
	}
	err = r.commit(registry.ServiceDelete{Key: key})
	switch {
	case errors.Is(err, registry.ErrServiceNotFound):
		return illegal("specified service not exist, serviceName : " + key.Grouped)
	case errors.Is(err, registry.ErrServiceNotEmpty):
		return illegal("specified service has instances, serviceName : " + key.Grouped)
	}
	return err
}

// service is GET /service: settings and clusters, no instances.
func (s *Server) service(r *request) error {
	key, err := r.boundService()
	if err != nil {
		return err
	}
	service := s.opts.Reader.Service(key)
	if service == nil {
		return failed("service " + shorten(key.Grouped) + " is not found!")
	}
	b := appendString(append(r.buffer(), `{"name":`...), key.Name())
	b = appendString(append(b, `,"namespaceId":`...), key.Namespace)
	b = appendFloat(append(b, `,"protectThreshold":`...), service.ProtectThreshold)
	b = appendMetadata(append(b, `,"metadata":`...), service.Metadata)
	b = appendSelector(append(b, `,"selector":`...), service.Selector)
	b = appendString(append(b, `,"groupName":`...), key.Group())
	b = append(b, `,"clusters":[`...)
	for i, c := range service.Clusters {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(append(b, `{"name":`...), c.Name)
		b = appendChecker(append(b, `,"healthChecker":`...), c.Checker)
		b = appendMetadata(append(b, `,"metadata":`...), c.Metadata)
		b = append(b, '}')
	}
	return r.json(append(b, "]}"...))
}

// serviceChecksum is PUT /service/checksum, a read despite its verb.
func (s *Server) serviceChecksum(r *request) error {
	key, err := r.requiredServiceUnchecked()
	if err != nil {
		return err
	}
	if err := s.catchUp(r); err != nil { // PUT: the client has just written, perhaps elsewhere
		return err
	}
	service := s.opts.Reader.Service(key)
	if service == nil {
		return failed("serviceName not found: " + shorten(key.Grouped))
	}
	b := appendString(append(r.buffer(), `{"checksum":`...), s.lists.checksum(service))
	return r.json(append(b, '}'))
}

// appendChecker appends the probe of a cluster as Nacos prints it.
func appendChecker(b []byte, c registry.Checker) []byte {
	b = appendString(append(b, `{"type":`...), c.Type)
	switch c.Type {
	case registry.CheckHTTP:
		b = appendString(append(b, `,"path":`...), c.Path)
		b = appendString(append(b, `,"headers":`...), c.Headers)
		b = appendInt(append(b, `,"expectedResponseCode":`...), int64(c.ExpectedCode))
	case registry.CheckMySQL:
		b = appendString(append(b, `,"user":`...), c.User)
		b = appendString(append(b, `,"pwd":`...), c.Password)
		b = appendString(append(b, `,"cmd":`...), c.Command)
	}
	return append(b, '}')
}
