package mux

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// The handshake, all lengths fixed or bounded, read without buffering so that not one
// byte of what follows is swallowed:
//
//	dialling side   magic, nonce
//	accepting side  nonce
//	dialling side   length, greeting, proof
//	accepting side  length, greeting, proof
//
// A proof is HMAC-SHA256 under the secret over the side, both nonces and all greetings
// so far. The dialling side proves itself first: a stranger gets nothing to guess at.
const (
	nonceSize = 32
	proofSize = sha256.Size
)

var magic = [4]byte{'r', 'c', 'p', '1'}

var (
	errMagic  = errors.New("not a peer of this protocol")
	errSecret = errors.New("wrong cluster secret")
)

// RefusedError is the other node's refusal of a connection that proved itself.
type RefusedError struct{ Reason string }

// Error is the refusal with its reason.
func (e *RefusedError) Error() string { return "peer refuses the connection: " + e.Reason }

// transcript is what both sides have seen of one handshake.
type transcript struct {
	secret []byte
	seen   []byte
}

// proof covers the side and everything seen so far.
func (t *transcript) proof(side byte) []byte {
	m := hmac.New(sha256.New, t.secret)
	m.Write([]byte{side})
	m.Write(t.seen)
	return m.Sum(nil)
}

const (
	sideDial   = 'd'
	sideAccept = 'a'
)

// dialHandshake runs the dialling side and returns what the other side said of itself.
func dialHandshake(c io.ReadWriter, secret []byte, mine greeting) (greeting, error) {
	t := &transcript{secret: secret}
	hello := make([]byte, len(magic)+nonceSize)
	copy(hello, magic[:])
	rand.Read(hello[len(magic):])
	if _, err := c.Write(hello); err != nil {
		return greeting{}, err
	}
	nonce := make([]byte, nonceSize)
	if _, err := io.ReadFull(c, nonce); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = fmt.Errorf("closed by peer at the first word, perhaps only one side uses TLS: %w", err)
		}
		return greeting{}, err
	}
	t.seen = append(append(t.seen, hello...), nonce...)
	if err := t.send(c, sideDial, mine); err != nil {
		return greeting{}, err
	}
	theirs, err := t.receive(c, sideAccept)
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = fmt.Errorf("closed by peer, perhaps another cluster secret: %w", err)
		}
		return greeting{}, err
	}
	if theirs.refusal != "" {
		return theirs, &RefusedError{theirs.refusal}
	}
	return theirs, nil
}

// acceptHandshake runs the accepting side. judge looks at the proven greeting and
// makes the answer; an answer with a refusal is sent and then returned as an error.
func acceptHandshake(c io.ReadWriter, secret []byte, judge func(greeting) greeting) (greeting, error) {
	t := &transcript{secret: secret}
	hello := make([]byte, len(magic)+nonceSize)
	if _, err := io.ReadFull(c, hello[:len(magic)]); err != nil {
		return greeting{}, err
	}
	if [4]byte(hello) != magic {
		return greeting{}, errMagic
	}
	if _, err := io.ReadFull(c, hello[len(magic):]); err != nil {
		return greeting{}, err
	}
	nonce := make([]byte, nonceSize)
	rand.Read(nonce)
	if _, err := c.Write(nonce); err != nil {
		return greeting{}, err
	}
	t.seen = append(append(t.seen, hello...), nonce...)
	theirs, err := t.receive(c, sideDial)
	if err != nil {
		return greeting{}, err
	}
	mine := judge(theirs)
	if err := t.send(c, sideAccept, mine); err != nil {
		return greeting{}, err
	}
	if mine.refusal != "" {
		return theirs, &RefusedError{mine.refusal}
	}
	return theirs, nil
}

func (t *transcript) send(c io.Writer, side byte, g greeting) error {
	b, err := g.encode()
	if err != nil {
		return err
	}
	frame := binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(b)+proofSize), uint16(len(b)))
	frame = append(frame, b...)
	t.seen = append(t.seen, frame...)
	_, err = c.Write(append(frame, t.proof(side)...))
	return err
}

func (t *transcript) receive(c io.Reader, side byte) (greeting, error) {
	var length [2]byte
	if _, err := io.ReadFull(c, length[:]); err != nil {
		return greeting{}, err
	}
	n := int(binary.BigEndian.Uint16(length[:]))
	if n > maxGreeting {
		return greeting{}, errGreeting
	}
	b := make([]byte, n+proofSize)
	if _, err := io.ReadFull(c, b); err != nil {
		return greeting{}, err
	}
	t.seen = append(append(t.seen, length[:]...), b[:n]...)
	// The proof is checked before the greeting is looked at.
	if !hmac.Equal(b[n:], t.proof(side)) {
		return greeting{}, errSecret
	}
	return decodeGreeting(b[:n])
}
