package raftnode

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

const diskInterval = 3 * time.Second

// disk watches the free space of the data directory.
type disk struct {
	minWrites, minLead uint64
	free               atomic.Uint64
	full               atomic.Bool // too full for client writes
	low                atomic.Bool // too full to lead
}

func (d *disk) refusesWrites() bool { return d.full.Load() }

// look measures once.
func (d *disk) look(free uint64) {
	d.free.Store(free)
	d.full.Store(free < d.minWrites)
	d.low.Store(free < d.minLead)
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
			n.handOverIfLow(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// handOverIfLow hands leadership to a voter with more room, if there is one: among nodes
// whose disks are all nearly full it would only go round.
func (n *Node) handOverIfLow(ctx context.Context) {
	if !n.disk.low.Load() || n.leads() == 0 {
		return
	}
	to, found := n.roomier()
	if !found {
		n.warnOnce("disk is nearly full, but no other node can lead", "bytes", n.disk.free.Load())
		return
	}
	n.log.Warn("disk is nearly full, handing leadership over", "bytes", n.disk.free.Load(), "to", to.ID)
	ctx, cancel := context.WithTimeout(ctx, transferWait)
	defer cancel()
	if err := n.transferTo(ctx, &to); err != nil {
		n.log.Warn("leadership stays", "err", err)
	}
}

// roomier is another voter that was ready and had room by its last word.
func (n *Node) roomier() (raft.Server, bool) {
	for _, s := range n.servers() {
		if s.ID == n.serverID() || s.Suffrage != raft.Voter {
			continue
		}
		n.progress.mu.Lock()
		p, known := n.progress.peers[nodeOf(s.ID)]
		n.progress.mu.Unlock()
		if known && p.ready && !p.diskLow && time.Since(p.heard) < 3*pollPeer {
			return s, true
		}
	}
	return raft.Server{}, false
}
