package httpapi

import (
	"slices"
	"strings"
)

// agent is the kind and version of a client library, told by its User-Agent.
type agent struct {
	kind    agentKind
	version [3]int
}

type agentKind uint8

const (
	agentUnknown agentKind = iota
	agentJava
	agentGo
	agentC
	agentCSharp
	agentDNS
	agentPython
)

// agentPrefixes are matched case by case, as in Nacos; the version follows `:v`.
var agentPrefixes = [...]struct {
	prefix string
	kind   agentKind
}{
	{"Nacos-Java-Client", agentJava},
	{"Nacos-Go-Client", agentGo},
	{"Nacos-go-Client", agentGo}, // the first release; Nacos does not know it
	{"Nacos-Python-Client", agentPython},
	{"Nacos-CSharp-Client", agentCSharp},
	{"Nacos-C-Client", agentC},
	{"vip-client4cpp", agentC},
	{"Nacos-DNS", agentDNS},
}

// agent tells what kind of client sends the request. The 0.x Java clients name
// themselves in Client-Version alone and leave the JDK's User-Agent, so of both headers
// the one with a known prefix counts, User-Agent first.
func (r *request) agent() agent {
	_, a := r.agentHeader()
	return a
}

// agentHeader is agent with the header that told it, else the first there is.
func (r *request) agentHeader() (header string, a agent) {
	h := r.gin.Request.Header
	if v := h["User-Agent"]; len(v) > 0 {
		header = v[0]
		if a := parseAgent(header); a.kind != agentUnknown {
			return header, a
		}
	}
	if v := h["Client-Version"]; len(v) > 0 {
		if a := parseAgent(v[0]); a.kind != agentUnknown || header == "" {
			return v[0], a
		}
	}
	return header, agent{}
}

func parseAgent(header string) agent {
	for _, p := range agentPrefixes {
		if !strings.HasPrefix(header, p.prefix) {
			continue
		}
		version, ok := parseVersion(header[len(p.prefix):])
		if !ok {
			return agent{}
		}
		return agent{p.kind, version}
	}
	return agent{}
}

// parseVersion reads `:v1.4.7`, of which each part may be followed by other text. No
// `:v` at all is version 0; `:v` without a number is no version.
func parseVersion(s string) (v [3]int, ok bool) {
	_, s, found := strings.Cut(s, ":v")
	if !found {
		return v, true
	}
	for i := range v {
		n := digits(s, 0)
		if n == 0 || n > 6 {
			return v, i > 0
		}
		v[i], _ = integer(s[:n])
		if s = s[n:]; s == "" || s[0] != '.' {
			return v, true
		}
		s = s[1:]
	}
	return v, true
}

// grouped tells whether the client expects `group@@name` where older ones and those in
// other languages expect the bare name: the Java client since 1.0.0.
func (a agent) grouped() bool { return a.kind == agentJava && a.version[0] >= 1 }

// pushFrom are the kinds that understand UDP pushes, from a version on (Nacos 1.4.7).
var pushFrom = map[agentKind][3]int{
	agentJava: {0, 1, 0}, agentGo: {0, 1, 0}, agentC: {1, 0, 12}, agentCSharp: {0, 9, 0}, agentDNS: {0, 4, 3},
}

// pushable tells whether the client listens for UDP pushes.
func (a agent) pushable() bool {
	from, known := pushFrom[a.kind]
	return known && slices.Compare(a.version[:], from[:]) >= 0
}
