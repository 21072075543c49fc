package httpapi

import (
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/rollcall-io/rollcall/registry"
)

// operatorRoutes exist under two names each.
var operatorRoutes = slices.Concat(operatorRoutesUnder(nsPrefix+"/operator"), operatorRoutesUnder(nsPrefix+"/ops"),
	nodeRoutesUnder(nsPrefix+"/operator"), nodeRoutesUnder(nsPrefix+"/ops"))

func operatorRoutesUnder(prefix string) []route {
	return []route{
		{http.MethodGet, prefix + "/metrics", shared, (*Server).operatorMetrics},
		{http.MethodGet, prefix + "/servers", shared, (*Server).operatorServers},
		{http.MethodGet, prefix + "/switches", shared, (*Server).switches},
		{http.MethodPut, prefix + "/switches", adminWrite, (*Server).setSwitch},
	}
}

// operatorMetrics is GET /operator/metrics. Clients look at status alone: UP on every
// node that can serve reads, leader or not. cpu is not measured: -1, as Java says it.
func (s *Server) operatorMetrics(r *request) error {
	services, instances := s.opts.Reader.Counts()
	b := appendInt(append(r.buffer(), `{"status":"UP","serviceCount":`...), int64(services))
	b = appendInt(append(b, `,"instanceCount":`...), int64(instances))
	b = appendInt(append(b, `,"raftNotifyTaskCount":0,"responsibleServiceCount":`...), int64(services))
	b = appendInt(append(b, `,"responsibleInstanceCount":`...), int64(instances))
	b = appendDouble(append(b, `,"cpu":-1.0,"load":`...), loadAverage())
	b = appendDouble(append(b, `,"mem":`...), memoryUsed())
	return r.json(append(b, '}'))
}

// loadAverage is the machine's load of the last minute, -1 where it cannot be read.
func loadAverage() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return -1
	}
	first, _, _ := strings.Cut(string(text), " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return -1
	}
	return load
}

// memoryUsed is the share of the machine's memory that is in use, -1 where it cannot be read.
func memoryUsed() float64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return -1
	}
	kilobytes := map[string]float64{}
	for _, line := range strings.Split(string(text), "\n") {
		if fields := strings.Fields(line); len(fields) >= 2 {
			kilobytes[fields[0]], _ = strconv.ParseFloat(fields[1], 64)
		}
	}
	total := kilobytes["MemTotal:"]
	if total <= 0 {
		return -1
	}
	return 1 - kilobytes["MemAvailable:"]/total
}

// operatorServers is GET /operator/servers: the members of the cluster in Nacos' shape;
// healthy=true leaves out those that are not UP. A member whose client address is not
// known yet is left out too: clients take their server list from here, and a peer port
// in it would cost them a request for each visit.
func (s *Server) operatorServers(r *request) error {
	healthy, err := r.boundFlag("healthy")
	if err != nil {
		return err
	}
	b := append(r.buffer(), `{"servers":[`...)
	first := true
	for _, m := range s.opts.Cluster.Members() {
		if m.Address == "" || healthy && m.State != registry.MemberUp {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = appendMember(b, m)
	}
	return r.json(append(b, "]}"...))
}

func appendMember(b []byte, m registry.Member) []byte {
	host, portText, err := net.SplitHostPort(m.Address)
	if err != nil {
		host, portText = m.Address, ""
	}
	_, raftPort, _ := net.SplitHostPort(m.PeerAddress)
	b = appendString(append(b, `{"ip":`...), host)
	b = appendInt(append(b, `,"port":`...), int64(lenientInteger(portText)))
	b = appendString(append(b, `,"state":`...), m.State)
	b = appendString(append(b, `,"extendInfo":{"nodeId":`...), m.ID)
	b = appendString(append(b, `,"raftPort":`...), raftPort)
	b = strconv.AppendBool(append(b, `,"leader":`...), m.Leader)
	b = strconv.AppendBool(append(b, `,"voter":`...), m.Voter)
	b = appendString(append(b, `},"address":`...), m.Address)
	return append(b, `,"failAccessCnt":0}`...)
}
