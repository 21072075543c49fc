package httpapi

import (
	"strconv"

	"github.com/rollcall-io/rollcall/registry"
)

// switches is GET /operator/switches: the whole object of Nacos 1.4.7. The entries that
// this registry has show their values, all others Nacos' defaults.
func (s *Server) switches(r *request) error { return r.json(s.appendSwitches(r.buffer())) }

func (s *Server) appendSwitches(b []byte) []byte {
	sw := s.opts.Reader.Switches()
	b = appendInt(append(b, `{"masters":null,"adWeightMap":{},"defaultPushCacheMillis":`...), int64(sw.DefaultPushCacheMillis))
	b = appendInt(append(b, `,"clientBeatInterval":`...), int64(sw.ClientBeatInterval))
	b = appendInt(append(b, `,"defaultCacheMillis":`...), int64(sw.DefaultCacheMillis))
	b = strconv.AppendBool(append(b, `,"distroThreshold":0.7,"healthCheckEnabled":`...), sw.HealthCheckEnabled)
	b = strconv.AppendBool(append(b, `,"autoChangeHealthCheckEnabled":true,"distroEnabled":true,"enableStandalone":true,"pushEnabled":`...), sw.PushEnabled)
	b = appendInt(append(b, `,"checkTimes":`...), int64(sw.CheckTimes))
	b = append(b, `,"httpHealthParams":{"max":5000,"min":500,"factor":0.85},"tcpHealthParams":{"max":5000,"min":1000,"factor":0.75},`...)
	b = append(b, `"mysqlHealthParams":{"max":3000,"min":2000,"factor":0.65},"incrementalList":[],"serverStatusSynchronizationPeriodMillis":2000,`...)
	b = append(b, `"serviceStatusSynchronizationPeriodMillis":5000,"disableAddIP":false,"sendBeatOnly":false,"lightBeatEnabled":`...)
	b = strconv.AppendBool(b, sw.LightBeatEnabled)
	b = append(b, `,"limitedUrlMap":{},"distroServerExpiredMillis":10000,"pushGoVersion":"0.1.0","pushJavaVersion":"0.1.0",`...)
	b = append(b, `"pushPythonVersion":"0.4.3","pushCVersion":"1.0.12","pushCSharpVersion":"0.9.0","enableAuthentication":false,`...)
	b = strconv.AppendBool(append(b, `"overriddenServerStatus":null,"defaultInstanceEphemeral":`...), sw.DefaultInstanceEphemeral)
	return append(b, `,"healthCheckWhiteList":[],"name":"00-00---000-NACOS_SWITCH_DOMAIN-000---00-00","checksum":null}`...)
}

// setSwitch is PUT /operator/switches. An entry that this registry does not have is
// refused by name, where Nacos answers ok without effect.
func (s *Server) setSwitch(r *request) error {
	entry, err := r.bound("entry")
	if err != nil {
		return err
	}
	value, err := r.bound("value")
	if err != nil {
		return err
	}
	c, err := s.switchCommand(entry, value)
	if err != nil {
		return err
	}
	return r.commit(c)
}

// switchCommand is the command that sets an entry, checked.
func (s *Server) switchCommand(entry, value string) (registry.SwitchSet, error) {
	if entry == "pushCacheMillis" { // Nacos' name for it
		entry = "defaultPushCacheMillis"
	}
	_, err := s.opts.Reader.Switches().With(entry, value)
	return registry.SwitchSet{Entry: entry, Value: value}, err
}
