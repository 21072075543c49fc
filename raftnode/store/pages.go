package store

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// The parts of bbolt's file format that are looked at, all in the machine's byte order. A
// page begins with its id (8 bytes), kind (2), number of elements (2) and of further pages
// that belong to it (4).
const (
	pageHead  = 16
	elemLen   = 16
	branchTag = 1
	leafTag   = 2
	bucketTag = 1 // of an element of a leaf: its value is a bucket
	bucketLen = 16

	metaLen    = 64
	metaTxid   = 48 // where the number of the transaction is
	metaSum    = 56 // where the checksum is
	treeLevels = 32
)

var native = binary.NativeEndian

// pages looks at every page of a bbolt file that its trees reach. bbolt does the same when
// it opens a file, but panics over what it finds, in a goroutine of its own. The file is
// read, not mapped: one that was cut off ends too early, and nothing worse.
type pages struct {
	file io.ReaderAt
	size uint64 // of a page
	high uint64 // the first page behind all that are in use
	seen []bool // by id
	leaf []byte // of the last leaf read
}

// checkHeads looks at the two heads of the file, of which bbolt takes the newest that
// matches its checksum. When that is not the newest that was written, the last
// transaction is missing, and with it an entry or a vote that others were told of.
func (p *pages) checkHeads() error {
	var heads [2][]byte
	for i := range heads {
		heads[i] = make([]byte, metaLen)
		if err := p.read(heads[i], uint64(i)*p.size+pageHead); err != nil {
			return fmt.Errorf("head %d %w", i, err)
		}
	}
	for i, head := range heads {
		newer := native.Uint64(heads[1-i][metaTxid:]) + 1
		if matches(head) {
			continue
		}
		older := native.Uint64(head[metaTxid:])+2 == newer
		// Its number itself may be what is damaged.
		native.PutUint64(head[metaTxid:], newer)
		if !older || matches(head) {
			return fmt.Errorf("head %d does not match its checksum, the last transaction may be missing", i)
		}
	}
	return nil
}

func matches(head []byte) bool {
	sum := fnv.New64a()
	sum.Write(head[:metaSum])
	return sum.Sum64() == native.Uint64(head[metaSum:])
}

func (p *pages) read(b []byte, at uint64) error {
	n, err := p.file.ReadAt(b, int64(at))
	if n == len(b) {
		return nil
	}
	if err == io.EOF {
		return fmt.Errorf("lies behind the end of the file")
	}
	return err
}

// page reads a page with all that belongs to it.
func (p *pages) page(id uint64, into []byte) ([]byte, error) {
	if id < 2 || id >= p.high {
		return nil, fmt.Errorf("page %d is none of the %d in use", id, p.high)
	}
	head := make([]byte, pageHead)
	if err := p.read(head, id*p.size); err != nil {
		return nil, fmt.Errorf("page %d %w", id, err)
	}
	if named := native.Uint64(head); named != id {
		return nil, fmt.Errorf("page %d calls itself %d", id, named)
	}
	more := uint64(native.Uint32(head[12:]))
	if id+more >= p.high {
		return nil, fmt.Errorf("page %d reaches behind the %d in use", id, p.high)
	}
	for i := range more + 1 {
		if p.seen[id+i] {
			return nil, fmt.Errorf("page %d is in use twice", id+i)
		}
		p.seen[id+i] = true
	}
	length := (more + 1) * p.size
	if uint64(cap(into)) < length {
		into = make([]byte, length)
	}
	into = into[:length]
	if err := p.read(into, id*p.size); err != nil {
		return nil, fmt.Errorf("page %d %w", id, err)
	}
	return into, nil
}

// tree looks at a page and all below it. Keys must be at least low and below high, nil is
// without bound. It returns the highest key.
func (p *pages) tree(id uint64, low, high []byte, level int) (highest []byte, err error) {
	if level > treeLevels {
		return nil, fmt.Errorf("page %d is too deep in its tree", id)
	}
	page, err := p.page(id, p.leaf)
	if err != nil {
		return nil, err
	}
	switch kind := native.Uint16(page[8:]); kind {
	case leafTag:
		p.leaf = page
		return p.elements(id, page, low, high, level)
	case branchTag:
		p.leaf = nil // stays with the branch
		return p.branch(id, page, low, high, level)
	default:
		return nil, fmt.Errorf("page %d is of the unknown kind %#x", id, kind)
	}
}

func (p *pages) branch(id uint64, page, low, high []byte, level int) (highest []byte, err error) {
	all, err := layout(page, func(e []byte) (uint32, uint64) { return native.Uint32(e), uint64(native.Uint32(e[4:])) })
	if err != nil || len(all) == 0 {
		return nil, fmt.Errorf("branch page %d is not laid out as one: %w", id, cmp.Or(err, errEmpty))
	}
	for i, key := range all {
		if !ordered(i, low, key, high) {
			return nil, fmt.Errorf("element %d of page %d is out of order", i, id)
		}
		below := high
		if i+1 < len(all) {
			below = all[i+1]
		}
		if highest, err = p.tree(native.Uint64(page[pageHead+i*elemLen+8:]), key, below, level+1); err != nil {
			return nil, err
		}
		low = highest
	}
	return highest, nil
}

// elements looks at a leaf, and at the buckets that are its values. Only a tree without
// keys has an empty one.
func (p *pages) elements(id uint64, page, low, high []byte, level int) (highest []byte, err error) {
	all, err := layout(page, func(e []byte) (uint32, uint64) {
		return native.Uint32(e[4:]), uint64(native.Uint32(e[8:])) + uint64(native.Uint32(e[12:]))
	})
	if err != nil || len(all) == 0 && low != nil {
		return nil, fmt.Errorf("leaf page %d is not laid out as one: %w", id, cmp.Or(err, errEmpty))
	}
	var buckets [][]byte
	for i, both := range all {
		e := page[pageHead+i*elemLen:]
		flags, keyLen := native.Uint32(e), native.Uint32(e[8:])
		if !ordered(i, low, both[:keyLen], high) {
			return nil, fmt.Errorf("element %d of page %d is out of order", i, id)
		}
		if low = both[:keyLen]; flags > bucketTag {
			return nil, fmt.Errorf("element %d of page %d is of the unknown kind %#x", i, id, flags)
		}
		if flags == bucketTag {
			buckets = append(buckets, bytes.Clone(both[keyLen:]))
		}
	}
	highest = bytes.Clone(low)
	for _, b := range buckets {
		if err := p.bucket(id, b, level+1); err != nil {
			return nil, err
		}
	}
	return highest, nil
}

// bucket looks at a bucket, which has a tree of its own or, when it is small, is a leaf
// inside of the value.
func (p *pages) bucket(id uint64, value []byte, level int) error {
	if len(value) < bucketLen {
		return fmt.Errorf("a bucket in page %d is cut off", id)
	}
	if root := native.Uint64(value); root != 0 {
		_, err := p.tree(root, nil, nil, level)
		return err
	}
	inline := value[bucketLen:]
	if len(inline) < pageHead || native.Uint16(inline[8:]) != leafTag {
		return fmt.Errorf("a bucket in page %d is no leaf", id)
	}
	_, err := p.elements(id, inline, nil, nil, level)
	return err
}

var errEmpty = errors.New("it has no elements")

// layout returns what the elements of a page point to: their contents follow the last of
// them, one right after the other, and nothing but zeros is behind. So a number or a length
// that lost a bit, which would be entries that were forgotten, is seen. at reads the
// distance of an element to its content, and the length of that.
func layout(page []byte, at func(element []byte) (uint32, uint64)) ([][]byte, error) {
	count := int(native.Uint16(page[10:]))
	end := uint64(pageHead + count*elemLen)
	if end > uint64(len(page)) {
		return nil, fmt.Errorf("it has no room for %d elements", count)
	}
	all := make([][]byte, count)
	for i := range all {
		begin := uint64(pageHead + i*elemLen)
		pos, n := at(page[begin:])
		if begin+uint64(pos) != end || n > uint64(len(page))-end {
			return nil, fmt.Errorf("element %d is not where it should be", i)
		}
		all[i] = page[end : end+n]
		end += n
	}
	for _, b := range page[end:] {
		if b != 0 {
			return nil, fmt.Errorf("there is something behind its %d elements", count)
		}
	}
	return all, nil
}

// ordered is bbolt's rule: the first key of a page may be the one that leads to it.
func ordered(i int, low, key, high []byte) bool {
	if high != nil && bytes.Compare(key, high) >= 0 {
		return false
	}
	c := bytes.Compare(low, key)
	return c < 0 || i == 0 && (c == 0 || low == nil)
}
