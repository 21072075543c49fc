package httpapi

import (
	"errors"

	"github.com/rollcall-io/rollcall/registry"
)

// mergeMetadata is PUT /instance/metadata/batch, dropMetadata the DELETE.
func (s *Server) mergeMetadata(r *request) error { return s.metadataBatch(r, false) }

func (s *Server) dropMetadata(r *request) error { return s.metadataBatch(r, true) }

func (s *Server) metadataBatch(r *request, drop bool) error {
	batch := registry.MetadataBatch{Delete: drop}
	key, err := r.requiredService()
	if err != nil && r.rawServiceName() == "" {
		return err
	}
	text, missingText := r.required("metadata")
	if missingText != nil {
		return missingText
	}
	if batch.Metadata, err = parseMetadata(text); err != nil {
		return err
	}
	if err := registry.ValidateMetadata(batch.Metadata); err != nil {
		return err
	}
	batch.Service = key
	meant, err := r.targets(&batch)
	if err != nil {
		return err
	}
	// A name that cannot exist, or nothing that is meant, is an empty answer in Nacos.
	if !meant || registry.ValidateServiceKey(key) != nil {
		return r.updated(nil)
	}
	result, err := r.propose(batch)
	if errors.Is(err, registry.ErrServiceNotFound) {
		return r.updated(nil)
	}
	if err != nil {
		return err
	}
	return r.updated(result.Touched)
}

// targets reads which instances a batch is for; meant is false for none.
func (r *request) targets(batch *registry.MetadataBatch) (meant bool, err error) {
	switch r.optional("consistencyType", "") {
	case "ephemeral":
		batch.Kind = registry.KindEphemeral
		return true, nil
	case "persist":
		batch.Kind = registry.KindPersistent
		return true, nil
	case "":
	default:
		return false, nil
	}
	text := r.optional("instances", "")
	if text == "" {
		return false, nil
	}
	batch.Targets, err = parseTargets(text)
	return len(batch.Targets) > 0, err
}

// parseTargets reads the JSON array of a parameter `instances`.
func parseTargets(text string) (targets []registry.Target, err error) {
	rest, ok := scanArray(text, func(v jsonValue) bool {
		var t registry.Target
		if t, err = parseTarget(v); err != nil {
			return false
		}
		targets = append(targets, t)
		return true
	})
	if err != nil {
		return nil, err
	}
	if !ok || skipSpace(rest) != "" {
		return nil, registry.Invalid("instances", text, "must be a JSON array of objects with ip and port")
	}
	return targets, nil
}

func parseTarget(v jsonValue) (registry.Target, error) {
	t := registry.Target{Ephemeral: true, Address: registry.Address{Cluster: registry.DefaultCluster}}
	var bad error
	_, ok := scanObject(v.raw, func(key string, v jsonValue) bool {
		text, scalar := v.scalar()
		switch {
		case v.isNull():
		case key == "ip" && scalar:
			t.IP = javaTrim(text)
		case key == "port" && scalar:
			t.Port, bad = port(text)
		case key == "ephemeral" && scalar:
			t.Ephemeral = isTrue(text)
		case key == "clusterName" && scalar:
			if text = javaTrim(text); text != "" {
				t.Cluster = text
			}
		}
		return bad == nil
	})
	if bad == nil && (!ok || t.IP == "") {
		bad = registry.Invalid("instances", v.raw, "must be an object with ip and port")
	}
	return t, bad
}

// updated answers the keys of the instances that were changed.
func (r *request) updated(touched []registry.Target) error {
	b := appendUpdated(append(r.buffer(), `{"updated":`...), touched)
	return r.json(append(b, '}'))
}

func appendUpdated(b []byte, touched []registry.Target) []byte {
	b = append(b, '[')
	for i, t := range touched {
		if i > 0 {
			b = append(b, ',')
		}
		kind := ":persist"
		if t.Ephemeral {
			kind = ":ephemeral"
		}
		b = appendString(b, t.DatumKey()+kind)
	}
	return append(b, ']')
}
