//go:build linux

package netns

// Cut drops what node from sends to node to, without a word to either. It is dropped where
// it arrives: a sender would be told of a rule of its own.
func (w *Network) Cut(from, to int) {
	w.t.Helper()
	w.must(iptables(w.hosts[to].space, "-A", "INPUT", "-s", w.hosts[from].address, "-j", "DROP"))
}

// Part is Cut in both directions.
func (w *Network) Part(i, j int) {
	w.t.Helper()
	w.Cut(i, j)
	w.Cut(j, i)
}

// Isolate parts node i from all other nodes. Clients reach it still.
func (w *Network) Isolate(i int) {
	w.t.Helper()
	for j := range w.hosts {
		if j != i {
			w.Part(i, j)
		}
	}
}

// Heal ends all cuts.
func (w *Network) Heal() {
	w.t.Helper()
	for _, h := range w.hosts {
		w.must(iptables(h.space, "-F", "INPUT"))
	}
}
