package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

const (
	// maxFiles and maxFile bound what is read of a directory.
	maxFiles = 10_000
	maxFile  = 64 << 20
	// maxFileName is below what file systems allow.
	maxFileName = 200
)

// disk is the cache directory of one namespace.
type disk struct {
	dir    string
	atOpen map[followKey]wireList // never changed
}

// openDisk makes the directory and loads what is in it. A file that cannot be read is as
// one that is not there.
func openDisk(root, namespace string) (*disk, error) {
	d := &disk{dir: namespaceDir(root, namespace)}
	if err := os.MkdirAll(d.dir, 0o755); err != nil {
		return nil, fmt.Errorf("cache directory: %w", err)
	}
	d.atOpen = readLists(d.dir)
	return d, nil
}

func namespaceDir(root, namespace string) string { return filepath.Join(root, fileName(namespace)) }

// fileName is a text as part of a path.
func fileName(text string) string {
	name := strings.ReplaceAll(url.PathEscape(text), ".", "%2E")
	if len(name) > maxFileName {
		name = fmt.Sprintf("%s-%016x", name[:maxFileName-20], hashText(text))
	}
	return name
}

func (k followKey) file() string {
	text := k.name.String()
	if k.clusters != "" {
		text += "@@" + k.clusters
	}
	return fileName(text) + ".json"
}

func (d *disk) load(k followKey) (wireList, bool) {
	l, known := d.atOpen[k]
	return l, known
}

// save replaces the file as a whole: whoever reads it sees the old or the new list.
func (d *disk) save(k followKey, l wireList) (err error) {
	b, err := json.Marshal(l)
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(d.dir, ".new-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(tmp.Name()))
		}
	}()
	_, err = tmp.Write(b)
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), filepath.Join(d.dir, k.file()))
}

// readLists are the lists of a directory by what they say of themselves.
func readLists(dir string) map[followKey]wireList {
	lists := map[followKey]wireList{}
	entries, _ := os.ReadDir(dir) // what cannot be read is not there
	for _, e := range entries {
		if len(lists) == maxFiles {
			break
		}
		if l, err := readList(dir, e); err == nil {
			if name, err := (ServiceName{Name: l.Name}).normal(); err == nil {
				lists[followKey{name, l.Clusters}] = l
			}
		}
	}
	return lists
}

func readList(dir string, e fs.DirEntry) (wireList, error) {
	info, err := e.Info()
	switch {
	case err != nil:
		return wireList{}, err
	case !strings.HasSuffix(e.Name(), ".json") || !info.Mode().IsRegular() || info.Size() > maxFile:
		return wireList{}, fs.ErrInvalid
	}
	b, err := os.ReadFile(filepath.Join(dir, e.Name()))
	if err != nil {
		return wireList{}, err
	}
	return parseList(b)
}
