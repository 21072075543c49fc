package push

import "github.com/prometheus/client_golang/prometheus"

// metrics are the package's series, all named rollcall_push_….
type metrics struct {
	sent, acked, unacked, superseded, retries, refused prometheus.Counter
	dropTooLong, dropSocket, dropEncode, dropStranger  prometheus.Counter
	ackBad, ackUnknown                                 prometheus.Counter
	commitToSent, sentToAcked                          prometheus.Observer
}

// delayBuckets reach from an idle node to a retry, with one at 50 ms beyond the longest
// merge window.
var delayBuckets = []float64{.001, .002, .005, .01, .02, .05, .1, .2, .3, .4, .5, .55, .6, .75, 1, 2, 5, 10, 20}

const subsystem = "rollcall_push_"

func counters(reg prometheus.Registerer, name, help, label string) *prometheus.CounterVec {
	return register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{Name: subsystem + name, Help: help}, []string{label}))
}

func counter(reg prometheus.Registerer, name, help string) prometheus.Counter {
	return register(reg, prometheus.NewCounter(prometheus.CounterOpts{Name: subsystem + name, Help: help}))
}

func gauge(reg prometheus.Registerer, name, help string, read func() int) {
	register(reg, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: subsystem + name, Help: help},
		func() float64 { return float64(read()) }))
}

// register adds a collector, or finds the one that another part of the package added
// under the same name.
func register[C prometheus.Collector](reg prometheus.Registerer, c C) C {
	if reg == nil {
		return c
	}
	if err := reg.Register(c); err != nil {
		if known, ok := err.(prometheus.AlreadyRegisteredError); ok {
			return known.ExistingCollector.(C)
		}
		panic(err) // two metrics of one name: a fault of this package
	}
	return c
}

func commitToSent(reg prometheus.Registerer, transport string) prometheus.Observer {
	return register(reg, prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: subsystem + "commit_to_sent_seconds", Buckets: delayBuckets,
		Help: "Time from applying the oldest change in a push on this node to handing it to the network.",
	}, []string{"transport"})).WithLabelValues(transport)
}

func newMetrics(reg prometheus.Registerer, p *Pusher) *metrics {
	packets := counters(reg, "packets_total", "UDP pushes by outcome: sent; acked, unacked after the retry, superseded by a newer one before their acknowledgement.", "outcome")
	drops := counters(reg, "drops_total", "UDP pushes that were not sent: too long for a datagram, refused by the socket, not encodable, to an address that a client named and that acknowledges nothing.", "reason")
	strays := counters(reg, "stray_acks_total", "Datagrams that acknowledge nothing: not in the form of one, or of no packet that waits.", "reason")
	m := &metrics{
		sent: packets.WithLabelValues("sent"), acked: packets.WithLabelValues("acked"),
		unacked: packets.WithLabelValues("unacked"), superseded: packets.WithLabelValues("superseded"),
		dropTooLong: drops.WithLabelValues("too_long"), dropSocket: drops.WithLabelValues("socket"),
		dropEncode: drops.WithLabelValues("encode"), dropStranger: drops.WithLabelValues("stranger"),
		ackBad: strays.WithLabelValues("malformed"), ackUnknown: strays.WithLabelValues("unknown"),
		retries:      counter(reg, "retries_total", "UDP pushes sent again because no acknowledgement came."),
		refused:      counter(reg, "subscribers_refused_total", "Subscriptions refused because the table was full."),
		commitToSent: commitToSent(reg, "udp"),
		sentToAcked: register(reg, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: subsystem + "sent_to_acked_seconds", Buckets: delayBuckets,
			Help: "Time from sending a push to its acknowledgement.",
		}, []string{"transport"})).WithLabelValues("udp"),
	}
	gauge(reg, "subscribers", "UDP subscribers of this node.", p.size)
	gauge(reg, "queue_depth", "Services that wait to be pushed.", p.queueDepth)
	return m
}

// size is the number of subscribers.
func (p *Pusher) size() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.subs)
}

// watchMetrics are the series of the streams.
type watchMetrics struct {
	batches, resets, overruns, refused prometheus.Counter
	commitToSent                       prometheus.Observer
}

func newWatchMetrics(reg prometheus.Registerer, w *Watches) watchMetrics {
	gauge(reg, "watches", "Open streams and long polls.", w.streams)
	gauge(reg, "ring_events", "Events kept for watchers that come back.", func() int { n, _ := w.ring.size(); return n })
	gauge(reg, "ring_bytes", "About how much memory these events keep.", func() int { _, n := w.ring.size(); return int(n) })
	return watchMetrics{
		batches:      counter(reg, "watch_batches_total", "Batches of events handed to watchers."),
		resets:       counter(reg, "watch_resets_total", "Full states given to watchers: new ones, those who came back too late, those who were overrun."),
		overruns:     counter(reg, "watch_overruns_total", "Watchers that were too slow and lost the events that waited for them."),
		refused:      counter(reg, "watches_refused_total", "Watches refused because there were too many."),
		commitToSent: commitToSent(reg, "http"),
	}
}
