package auth

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"sync"

	"github.com/rollcall-io/rollcall/registry"
)

// maxProven bounds the users whose password is remembered.
const maxProven = 1_000

// proven remembers passwords that were right, since some clients send theirs with every
// request and bcrypt is slow on purpose. It keeps keyed digests, under a key that lives as
// long as the process, and each counts only for the hash that it was compared with.
type proven struct {
	key  [32]byte
	mu   sync.Mutex
	last map[string]provenPassword // by user
}

type provenPassword struct {
	hash   string
	digest [sha256.Size]byte
}

func (p *proven) init() {
	_, _ = rand.Read(p.key[:]) // never fails
	p.last = make(map[string]provenPassword)
}

func (p *proven) digest(password string) (sum [sha256.Size]byte) {
	h := hmac.New(sha256.New, p.key[:])
	h.Write([]byte(password))
	h.Sum(sum[:0])
	return sum
}

// has tells whether the password was right for the hash that the user has now.
func (p *proven) has(u registry.User, password string) bool {
	sum := p.digest(password)
	p.mu.Lock()
	known, found := p.last[u.Name]
	p.mu.Unlock()
	return found && known.hash == u.Hash && hmac.Equal(known.digest[:], sum[:])
}

func (p *proven) add(u registry.User, password string) {
	sum := p.digest(password)
	p.mu.Lock()
	defer p.mu.Unlock()
	for name := range p.last {
		if len(p.last) < maxProven {
			break
		}
		delete(p.last, name)
	}
	p.last[u.Name] = provenPassword{u.Hash, sum}
}
