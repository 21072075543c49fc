package push

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"sync"
)

const (
	// zipFrom is the length from which a packet is zipped (Nacos 1.4.7).
	zipFrom = 1024
	// maxDatagram is the most that UDP over IPv4 carries.
	maxDatagram = 65507
)

// packet is one datagram, shared by all subscribers with the same view.
type packet struct{ bytes []byte }

// body is the JSON of a packet. Data is the list as a text, which clients parse a second
// time. LastRefTime is in milliseconds: one client reads it as a double.
type body struct {
	Type        string `json:"type"`
	Data        string `json:"data"`
	LastRefTime int64  `json:"lastRefTime"`
}

// zippers are kept, since each brings most of a megabyte.
var zippers = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

// newPacket builds the datagram of a list with a change stamp.
func newPacket(list []byte, stamp int64) (packet, error) {
	var plain bytes.Buffer
	e := json.NewEncoder(&plain)
	e.SetEscapeHTML(false)
	if err := e.Encode(body{"dom", string(list), stamp}); err != nil {
		return packet{}, fmt.Errorf("encode push: %w", err)
	}
	b := bytes.TrimSuffix(plain.Bytes(), []byte("\n"))
	if len(b) < zipFrom {
		return packet{b}, nil
	}
	var zipped bytes.Buffer
	z := zippers.Get().(*gzip.Writer)
	defer zippers.Put(z)
	z.Reset(&zipped)
	if _, err := z.Write(b); err != nil {
		return packet{}, fmt.Errorf("zip push: %w", err)
	}
	if err := z.Close(); err != nil {
		return packet{}, fmt.Errorf("zip push: %w", err)
	}
	return packet{zipped.Bytes()}, nil
}

// ack is what a client sends back. LastRefTime is a text from some and a number from
// others.
type ack struct {
	Type        string          `json:"type"`
	LastRefTime json.RawMessage `json:"lastRefTime"`
}

// parseAck is the stamp of an acknowledgement, false for anything else.
func parseAck(b []byte) (stamp int64, ok bool) {
	var a ack
	if json.Unmarshal(b, &a) != nil || a.Type != "push-ack" {
		return 0, false
	}
	digits := bytes.Trim(a.LastRefTime, `"`)
	if len(digits) == 0 || len(digits) > 18 {
		return 0, false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		stamp = stamp*10 + int64(c-'0')
	}
	return stamp, true
}
