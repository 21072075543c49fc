// Package netns gives a cluster of real processes a network of its own and takes it apart:
// a network namespace for each node, joined by a bridge in one more, packets dropped in one
// direction or both, links slowed down, addresses changed. What is cut is silent, as in a
// real partition: nothing is refused or reset. Clients are where the bridge is, and reach
// each node whatever happens between nodes.
//
// Nothing is added to the host's own network, so that networks of several tests and
// processes have the same addresses and never meet. It needs Linux, root, and the commands
// `ip` and `iptables`; a test without these is skipped with the reason. What a test that was
// killed left behind is removed by the next one.
package netns
