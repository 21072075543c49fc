package httpapi

import (
	"errors"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/rollcall-io/rollcall/auth"
)

type metrics struct {
	requests   *prometheus.CounterVec
	seconds    *prometheus.HistogramVec
	panics     prometheus.Counter
	listHits   prometheus.Counter
	listMisses prometheus.Counter
	listBytes  prometheus.Gauge
	refusals   *prometheus.CounterVec
	handler    http.Handler // shows the whole registry
}

// latencyBuckets reach from an answer out of memory to the deadline of a write.
var latencyBuckets = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}

// newMetrics registers the metrics. Without a registry they are kept and shown nowhere
// else than on /metrics.
func newMetrics(reg *prometheus.Registry) (*metrics, error) {
	if reg == nil {
		reg = prometheus.NewRegistry()
	}
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rollcall_http_requests_total", Help: "Requests by route and status code."},
			[]string{"method", "route", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "rollcall_http_request_seconds", Help: "Time that requests took to answer once their header was read, by route.",
			Buckets: latencyBuckets}, []string{"method", "route"}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "rollcall_http_panics_total", Help: "Requests whose handler panicked."}),
		listHits: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "rollcall_http_list_cache_hits_total", Help: "Instance lists answered from rendered bytes."}),
		listMisses: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "rollcall_http_list_cache_misses_total", Help: "Instance lists that were rendered."}),
		listBytes: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "rollcall_http_list_cache_bytes", Help: "Bytes of rendered instance lists held."}),
	}
	m.refusals = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "rollcall_http_auth_refusals_total", Help: "Requests refused for want of a permission, by reason."}, []string{"reason"})
	m.handler = promhttp.HandlerFor(reg, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
	for _, c := range []prometheus.Collector{m.refusals, m.requests, m.seconds, m.panics, m.listHits, m.listMisses, m.listBytes} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// refused counts a refusal of authorize or of a login.
func (m *metrics) refused(err error) {
	reason := "other"
	var locked *auth.LockedError
	switch {
	case errors.Is(err, auth.ErrUnknownUser):
		reason = "unknown user"
	case errors.Is(err, auth.ErrTokenInvalid):
		reason = "token invalid"
	case errors.Is(err, auth.ErrTokenExpired):
		reason = "token expired"
	case errors.Is(err, auth.ErrDenied):
		reason = "denied"
	case errors.As(err, &locked):
		reason = "locked out"
	}
	m.refusals.WithLabelValues(reason).Inc()
}

// routeMetrics are the metrics of one route, looked up once. A route has none before its
// first request: there are many routes, and most clients use a handful.
type routeMetrics struct {
	all     *prometheus.CounterVec
	seconds func() prometheus.Observer
	// byCode holds the counters of codes seen so far, from 100 on.
	byCode [500]atomic.Pointer[prometheus.Counter]
}

func (m *metrics) route(rt route) *routeMetrics {
	method := rt.method
	if method == "" {
		method = "any" // a client may send any word as its verb: no label of its own
	}
	labels := prometheus.Labels{"method": method, "route": rt.path}
	return &routeMetrics{all: m.requests.MustCurryWith(labels), seconds: sync.OnceValue(func() prometheus.Observer {
		return m.seconds.With(labels)
	})}
}

func (rm *routeMetrics) observe(code int, took time.Duration) {
	rm.seconds().Observe(took.Seconds())
	rm.counter(code).Inc()
}

func (rm *routeMetrics) counter(code int) prometheus.Counter {
	i := code - 100
	if i < 0 || i >= len(rm.byCode) {
		return rm.all.WithLabelValues(strconv.Itoa(code))
	}
	if c := rm.byCode[i].Load(); c != nil {
		return *c
	}
	c := rm.all.WithLabelValues(strconv.Itoa(code))
	rm.byCode[i].Store(&c)
	return c
}
