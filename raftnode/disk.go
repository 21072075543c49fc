package raftnode

import (
	"context"
	"sync/atomic"
	"time"
)

const diskInterval = 3 * time.Second

// disk watches the free space of the data directory.
type disk struct {
	minWrites uint64
	free      atomic.Uint64
	full      atomic.Bool
}

func (d *disk) refusesWrites() bool { return d.full.Load() }

// look measures once.
func (d *disk) look(free uint64) {
	d.free.Store(free)
	d.full.Store(free < d.minWrites)
}

// runDisk measures every few seconds. A leader whose disk is nearly full hands over:
// what fails next is the vote, and with it the process.
func (n *Node) runDisk(ctx context.Context) {
	tick := time.NewTicker(diskInterval)
	defer tick.Stop()
	for {
		free, err := n.freeSpace(n.opts.DataDir)
		if err != nil {
			n.warnOnce("free disk space is not known", "err", err)
		} else {
			was := n.disk.refusesWrites()
			n.disk.look(free)
			if now := n.disk.refusesWrites(); now != was {
				n.log.Warn("free disk space", "bytes", free, "min", n.opts.MinFreeWrites, "writes_refused", now)
			}
			if free < n.opts.MinFreeLead && n.leads() != 0 && len(n.servers()) > 1 {
				n.log.Warn("disk is nearly full, handing leadership over", "bytes", free)
				if err := n.transfer(ctx); err != nil {
					n.log.Warn("leadership stays", "err", err)
				}
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
