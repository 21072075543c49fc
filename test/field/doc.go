// Package field holds tests named after faults that people met in service registries:
// each shows the right outcome on a cluster of three nodes in one process. A comment
// names the public project and the number of the report or change that tells of the
// fault.
//
// What can be said with requests alone is a script in testdata, played once through the
// leader and once through a follower; see TestScripts for its form. What needs time,
// faults or many clients is a test in Go. Faults that need real processes (kills, full
// disks) are shown in test/e2e.
//
// Elections are short here and the machine may be busy: what is refused with a 503 is sent
// again, bounds on how long something may take are generous, those on how long it must take
// are not.
package field
