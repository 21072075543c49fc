package raftnode

import (
	"sync"

	"github.com/hashicorp/raft"
)

// pipeline is a pipeline of appends that ends itself at the first answer that ends its
// use. Raft stops reading answers at a failure, at a refusal and at a newer term, while
// its sender may be waiting for room in the pipeline: without readers there is never
// room again, and replication to that peer, and in the end the shutdown, would hang.
type pipeline struct {
	raft.AppendPipeline

	transport *transport
	answers   chan raft.AppendFuture
	closed    chan struct{}
	once      sync.Once
	err       error
}

// newPipeline starts the goroutine that passes answers on. It ends with Close, which
// Raft calls when it is done with a pipeline.
func newPipeline(inner raft.AppendPipeline, t *transport) *pipeline {
	p := &pipeline{AppendPipeline: inner, transport: t, answers: make(chan raft.AppendFuture), closed: make(chan struct{})}
	go p.pass()
	return p
}

func (p *pipeline) pass() {
	for {
		var answer raft.AppendFuture
		select {
		case answer = <-p.AppendPipeline.Consumer():
		case <-p.closed:
			return
		}
		select {
		case p.answers <- answer:
		case <-p.closed:
			return
		}
		// Answers in the consumer's channel are complete: Error does not wait.
		if answer.Error() != nil || !answer.Response().Success || answer.Response().Term > answer.Request().Term {
			p.Close()
			return
		}
	}
}

// AppendEntries sends entries down the pipeline; it waits while too many are on
// their way, until Close.
func (p *pipeline) AppendEntries(args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	if err := p.transport.held(); err != nil {
		return nil, err
	}
	return p.AppendPipeline.AppendEntries(args, resp)
}

// Consumer gives the answers in the order of the requests.
func (p *pipeline) Consumer() <-chan raft.AppendFuture { return p.answers }

// Close ends the pipeline and whoever waits in it.
func (p *pipeline) Close() error {
	p.once.Do(func() {
		close(p.closed)
		p.err = p.AppendPipeline.Close()
	})
	return p.err
}
