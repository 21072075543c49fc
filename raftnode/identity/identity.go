// Package identity keeps who a node is in its data directory: its id, the id of its
// cluster, the format of the directory and the incarnation, a random number that a
// wiped disk loses. It reads and writes one small file and starts no goroutine.
package identity

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Format is the newest format of a data directory that this build reads and the one
// that it writes.
const Format = 1

const fileName = "node.json"

// Identity is the content of the file.
type Identity struct {
	Format int    `json:"format"`
	Node   string `json:"node"`
	// Incarnation is made when the directory is first used and whenever its Raft state
	// was lost: a node never votes twice under one incarnation.
	Incarnation string `json:"incarnation"`
	// Cluster is empty until the node has applied the command that names the cluster.
	Cluster string `json:"cluster,omitempty"`
	// Started is set before Raft runs for the first time under this incarnation.
	Started bool `json:"started,omitempty"`
}

// Load reads the identity of a data directory. With none there, found is false. A file
// of a newer format, or one that cannot be understood, is an error that names it.
func Load(dir string) (id Identity, found bool, err error) {
	path := filepath.Join(dir, fileName)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Identity{}, false, nil
	}
	if err != nil {
		return Identity{}, false, fmt.Errorf("read identity: %w", err)
	}
	// The format is read first: a newer one may have fields that are unknown here.
	var version struct{ Format int }
	if err := json.Unmarshal(b, &version); err != nil {
		return Identity{}, false, fmt.Errorf("read identity %s: %w", path, err)
	}
	if version.Format != Format {
		return Identity{}, false, fmt.Errorf("data directory %s has format %d, this version reads %d", dir, version.Format, Format)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&id); err != nil {
		return Identity{}, false, fmt.Errorf("read identity %s: %w", path, err)
	}
	if id.Node == "" || id.Incarnation == "" {
		return Identity{}, false, fmt.Errorf("identity %s lacks node or incarnation", path)
	}
	return id, true, nil
}

// Save writes the identity so that after a crash the file holds either the old or the
// new one, whole.
func Save(dir string, id Identity) error {
	b, err := json.MarshalIndent(id, "", "  ")
	if err != nil {
		return fmt.Errorf("write identity: %w", err)
	}
	path := filepath.Join(dir, fileName)
	if err := writeSynced(path+".tmp", append(b, '\n')); err != nil {
		return fmt.Errorf("write identity: %w", err)
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		return fmt.Errorf("write identity: %w", err)
	}
	if err := syncDir(dir); err != nil {
		return fmt.Errorf("write identity: %w", err)
	}
	return nil
}

// NewIncarnation is a fresh random incarnation.
func NewIncarnation() string { return randomHex(6) }

// NewNode is a random node id, for a node that was given none.
func NewNode() string { return "node-" + randomHex(5) }

// NewCluster is a random cluster id.
func NewCluster() string { return randomHex(16) }

func randomHex(n int) string {
	b := make([]byte, n)
	rand.Read(b)
	return hex.EncodeToString(b)
}

func writeSynced(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.Write(b); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Sync(); err != nil {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
