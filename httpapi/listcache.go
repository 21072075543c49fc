package httpapi

import (
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rollcall-io/rollcall/registry"
)

const (
	// maxViews bounds the views that are kept of one service state.
	maxViews = 16
	// cacheShards keep writers of the cache out of each other's way.
	cacheShards = 16
	// entryOverhead is counted for each service and view beside the rendered bytes.
	entryOverhead = 256
)

// listCache keeps rendered instance lists. A service's views belong to one published
// state of it: the first reader of the next state starts anew. It is bounded by bytes;
// over the bound some entry of the same shard goes, whichever comes first. All methods
// are safe for concurrent use.
type listCache struct {
	metrics  *metrics
	perShard int64
	shards   [cacheShards]cacheShard
}

type cacheShard struct {
	mu      sync.RWMutex
	entries map[registry.ServiceKey]*serviceViews
	bytes   int64
}

// serviceViews are the rendered views of one published service.
type serviceViews struct {
	service *registry.Service
	views   atomic.Pointer[[]renderedView]

	mu    sync.Mutex // held while rendering, so that each view is built once
	sum   string
	bytes int64 // guarded by the shard's lock
}

type renderedView struct {
	view listView
	body *sharedBody
}

func newListCache(bytes int64, m *metrics) *listCache {
	c := &listCache{metrics: m, perShard: bytes / cacheShards}
	for i := range c.shards {
		c.shards[i].entries = make(map[registry.ServiceKey]*serviceViews)
	}
	return c
}

// rendered is the list of a service in a view.
func (c *listCache) rendered(s *registry.Service, v listView) *sharedBody {
	shard := &c.shards[shardOf(s.Key)]
	entry := shard.entry(c, s)
	if rv := entry.find(v); rv != nil {
		c.metrics.listHits.Inc()
		return rv.body
	}
	c.metrics.listMisses.Inc()
	entry.mu.Lock()
	defer entry.mu.Unlock()
	if rv := entry.find(v); rv != nil {
		return rv.body
	}
	body := appendList(make([]byte, 0, 256+256*s.Len()), s, v, entry.checksum())
	v.clusters = strings.Clone(v.clusters) // the request that it is a part of may be large
	rv := renderedView{v, &sharedBody{bytes: body, length: []string{strconv.Itoa(len(body))}}}
	old := entry.views.Load()
	if old == nil {
		entry.views.Store(&[]renderedView{rv})
	} else if len(*old) < maxViews {
		next := append(append(make([]renderedView, 0, len(*old)+1), *old...), rv)
		entry.views.Store(&next)
	} else {
		return rv.body
	}
	shard.grow(c, entry, int64(cap(body)+entryOverhead))
	return rv.body
}

// checksum is the service's checksum, worked out once per published state.
func (c *listCache) checksum(s *registry.Service) string {
	entry := c.shards[shardOf(s.Key)].entry(c, s)
	entry.mu.Lock()
	defer entry.mu.Unlock()
	return entry.checksum()
}

// checksum needs mu.
func (e *serviceViews) checksum() string {
	if e.sum == "" {
		e.sum = checksumOf(e.service)
	}
	return e.sum
}

func (e *serviceViews) find(v listView) *renderedView {
	views := e.views.Load()
	if views == nil {
		return nil
	}
	for i := range *views {
		if (*views)[i].view == v {
			return &(*views)[i]
		}
	}
	return nil
}

// entry is the views of exactly this state of a service. A state that is older than the
// one that is kept, as a slow reader may hold, gets views of its own that nobody keeps.
func (sh *cacheShard) entry(c *listCache, s *registry.Service) *serviceViews {
	sh.mu.RLock()
	e := sh.entries[s.Key]
	sh.mu.RUnlock()
	if e != nil && e.service == s {
		return e
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	e = sh.entries[s.Key]
	if e != nil && e.service == s {
		return e
	}
	fresh := &serviceViews{service: s}
	if e != nil {
		if e.service.Revision > s.Revision {
			return fresh
		}
		sh.drop(c, e)
	}
	sh.entries[s.Key] = fresh
	sh.charge(c, fresh, entryOverhead)
	return fresh
}

// grow counts bytes for an entry that is still kept and makes room for them.
func (sh *cacheShard) grow(c *listCache, e *serviceViews, bytes int64) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.entries[e.service.Key] == e {
		sh.charge(c, e, bytes)
	}
}

// charge and drop need mu.
func (sh *cacheShard) charge(c *listCache, e *serviceViews, bytes int64) {
	e.bytes += bytes
	sh.bytes += bytes
	c.metrics.listBytes.Add(float64(bytes))
	for _, other := range sh.entries {
		if sh.bytes <= c.perShard {
			return
		}
		sh.drop(c, other)
	}
}

func (sh *cacheShard) drop(c *listCache, e *serviceViews) {
	delete(sh.entries, e.service.Key)
	sh.bytes -= e.bytes
	c.metrics.listBytes.Sub(float64(e.bytes))
}

func shardOf(k registry.ServiceKey) int {
	h := uint32(2166136261)
	for i := 0; i < len(k.Grouped); i++ {
		h = (h ^ uint32(k.Grouped[i])) * 16777619
	}
	return int(h % cacheShards)
}
