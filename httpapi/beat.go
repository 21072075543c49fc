package httpapi

import (
	"github.com/rollcall-io/rollcall/registry"
)

// Codes of a beat's answer.
const (
	beatOK      = 10200
	beatUnknown = 20404
)

// beat is PUT /instance/beat, and what the oldest clients send as GET /api/clientBeat.
// With a JSON text in `beat` it is a full beat, which registers an unknown instance;
// without one it is a light beat, answered 20404 for an unknown instance.
func (s *Server) beat(r *request) error {
	key, err := r.requiredService()
	if err != nil {
		return err
	}
	beat, nameless, err := r.readBeat(key)
	if err != nil {
		return err
	}
	if nameless {
		interval := s.opts.Reader.Switches().ClientBeatInterval
		return r.beatReply(registry.BeatReply{Interval: interval})
	}
	reply, err := s.opts.Beater.Beat(r.gin.Request.Context(), beat)
	if err != nil {
		return err
	}
	return r.beatReply(reply)
}

// readBeat makes the beat of a request; nameless is a light one without an address,
// which no instance can answer to.
func (r *request) readBeat(key registry.ServiceKey) (beat registry.Beat, nameless bool, err error) {
	cluster := r.clusterName()
	if cluster == "" {
		cluster = registry.DefaultCluster
	}
	text, _ := r.params.get("beat")
	if text = javaTrim(text); text == "" || text == "null" {
		return r.lightBeat(key, cluster)
	}
	spec, err := parseBeat(text, r.optional("port", ""))
	if err != nil {
		return beat, false, err
	}
	if spec.Cluster == "" {
		spec.Cluster = cluster
	}
	if err := r.checkBeat(key, spec); err != nil {
		return beat, false, err
	}
	full := spec
	return registry.Beat{Key: spec.Address.In(key), Full: &full}, false, nil
}

func (r *request) lightBeat(key registry.ServiceKey, cluster string) (beat registry.Beat, nameless bool, err error) {
	a := registry.Address{Cluster: cluster, IP: r.optional("ip", "")}
	text := r.optional("port", "")
	if text != "" {
		if a.Port, err = port(text); err != nil {
			return beat, false, err
		}
	}
	return registry.Beat{Key: a.In(key)}, a.IP == "" || text == "", nil
}

// checkBeat validates a full beat as a registration is.
func (r *request) checkBeat(key registry.ServiceKey, spec registry.Spec) error {
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

// parseBeat reads a beat's JSON. Other members, the service name among them, do not
// count. What is not named has a registration's default: Nacos would make it weight 0
// and metadata null. port is the request's own, for a beat without one.
func parseBeat(text, fallbackPort string) (registry.Spec, error) {
	spec := registry.Spec{Ephemeral: true, Enabled: true, Healthy: true, Weight: 1}
	portText := fallbackPort
	var bad error
	_, ok := scanObject(text, func(key string, v jsonValue) bool {
		if v.isNull() {
			return true
		}
		switch key {
		case "port":
			portText, bad = beatScalar(key, v)
		default:
			bad = beatField(&spec, key, v)
		}
		return bad == nil
	})
	switch {
	case bad != nil:
		return spec, bad
	case !ok:
		return spec, registry.Invalid("beat", text, "must be a JSON object")
	case spec.IP == "":
		return spec, missing("ip")
	case portText == "":
		return spec, missing("port")
	}
	n, err := port(portText)
	spec.Port = n
	return spec, err
}

// beatField puts one member of a beat into the spec.
func beatField(spec *registry.Spec, key string, v jsonValue) error {
	if key == "metadata" {
		pairs, ok := objectPairs(v.raw)
		if !ok {
			return registry.Invalid("beat", v.raw, "metadata must be an object of texts")
		}
		spec.Metadata = registry.NewMetadata(pairs)
		return nil
	}
	switch key {
	case "ip", "cluster", "weight", "ephemeral":
	default:
		return nil
	}
	text, err := beatScalar(key, v)
	if err != nil {
		return err
	}
	switch key {
	case "ip":
		spec.IP = text
	case "cluster":
		spec.Cluster = text
	case "ephemeral":
		spec.Ephemeral = isTrue(text)
	case "weight":
		spec.Weight, err = weight(text)
	}
	return err
}

func beatScalar(key string, v jsonValue) (string, error) {
	text, ok := v.scalar()
	if !ok {
		return "", registry.Invalid("beat", v.raw, key+" must be a text or a number")
	}
	return javaTrim(text), nil
}

// beatReply answers a beat. An unknown instance's answer leaves out lightBeatEnabled, so
// that the client's next beat is a full one.
func (r *request) beatReply(reply registry.BeatReply) error {
	b := append(r.buffer(), `{"clientBeatInterval":`...)
	b = appendInt(b, int64(reply.Interval))
	b = append(b, `,"code":`...)
	if !reply.Known {
		return r.json(append(appendInt(b, beatUnknown), '}'))
	}
	b = append(appendInt(b, beatOK), `,"lightBeatEnabled":`...)
	if reply.LightEnabled {
		return r.json(append(b, "true}"...))
	}
	return r.json(append(b, "false}"...))
}
