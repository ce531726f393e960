package attestation

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1" //nolint:gosec // git names objects so
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"strings"

	"github.com/paddock-sandbox/paddock"
)

// Bounds of packs, which a hostile program may have written. An object is inflated only up to the first of them.
const (
	maxObject  = maxTag
	maxPacks   = 10_000
	maxDeltas  = 4095     // of deltas, as git has it
	maxInflate = 16 << 20 // bytes of all objects that one object is made of
)

// Kinds of objects in packs.
const (
	packCommit = 1
	packTree   = 2
	packBlob   = 3
	packTag    = 4
	offDelta   = 6 // against an object at an offset
	refDelta   = 7 // against an object of a name
)

// object returns the kind and the contents of an object of a repository, which have the digest. Trees and files are
// not read: of these it returns the kind.
func object(git *os.Root, digest string) (kind string, text []byte, err error) {
	kind, text, err = loose(git, digest)
	if errors.Is(err, paddock.NotFound) {
		kind, text, err = inPacks(git, digest)
	}
	if err != nil {
		return "", nil, fmt.Errorf("the object %s: %w", digest, err)
	}
	if kind == "tree" || kind == "blob" {
		return kind, nil, nil
	}
	h := hashOf(len(digest) / 2)
	fmt.Fprintf(h, "%s %d\x00", kind, len(text))
	h.Write(text)
	if hex.EncodeToString(h.Sum(nil)) != digest {
		return "", nil, fmt.Errorf("the object %s has another digest: %w", digest, paddock.Invalid)
	}
	return kind, text, nil
}

// hashOf returns the hash that names objects with digests of a size, which is 20 or 32.
func hashOf(size int) hash.Hash {
	if size == sha1.Size {
		return sha1.New() //nolint:gosec // as above
	}
	return sha256.New()
}

// loose reads an object that is a file of its own.
func loose(git *os.Root, digest string) (kind string, text []byte, err error) {
	data, err := readFile(git, "objects/"+digest[:2]+"/"+digest[2:], maxObject)
	if err != nil {
		return "", nil, err
	}
	z, err := zlib.NewReader(bytes.NewReader(data))
	if err != nil {
		return "", nil, fmt.Errorf("%w: %w", err, paddock.Invalid)
	}
	head := make([]byte, 0, 64)
	for one := make([]byte, 1); ; head = append(head, one[0]) {
		if _, err := io.ReadFull(z, one); err != nil || len(head) == cap(head) {
			return "", nil, fmt.Errorf("it has no head: %w", paddock.Invalid)
		}
		if one[0] == 0 {
			break
		}
	}
	kind, _, _ = strings.Cut(string(head), " ")
	if kind != "commit" && kind != "tag" {
		return kind, nil, nil
	}
	text, err = io.ReadAll(io.LimitReader(z, maxObject+1))
	if err != nil {
		return "", nil, fmt.Errorf("%w: %w", err, paddock.Invalid)
	}
	if len(text) > maxObject {
		return "", nil, tooLarge()
	}
	return kind, text, nil
}

func tooLarge() error {
	return fmt.Errorf("it has more than %d bytes: %w", maxObject, paddock.Exhausted)
}

// inPacks looks an object up in the packs of a repository.
func inPacks(git *os.Root, digest string) (kind string, text []byte, err error) {
	name, err := hex.DecodeString(digest)
	if err != nil {
		return "", nil, fmt.Errorf("%w: %w", err, paddock.Invalid)
	}
	names, err := packNames(git)
	if err != nil {
		return "", nil, err
	}
	for _, base := range names {
		kind, text, err := inPack(git, base, name)
		if !errors.Is(err, paddock.NotFound) {
			return kind, text, err
		}
	}
	if _, err := git.Lstat("objects/info/alternates"); err == nil {
		return "", nil, fmt.Errorf("it may be in another repository, which objects/info/alternates names and which is not read: %w", paddock.Unsupported)
	}
	return "", nil, fmt.Errorf("it is not there: %w", paddock.NotFound)
}

// packNames lists the packs of a repository, without the ends of their names.
func packNames(git *os.Root) ([]string, error) {
	dir, err := git.Open("objects/pack")
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, paddock.Denied)
	}
	defer dir.Close()
	all, err := dir.Readdirnames(4*maxPacks + 1) // a pack may have some files beside it
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: %w", err, paddock.Denied)
	}
	if len(all) > 4*maxPacks {
		return nil, fmt.Errorf("the repository has too many packs: run git gc: %w", paddock.Exhausted)
	}
	var list []string
	for _, name := range all {
		if base, ok := strings.CutSuffix(name, ".idx"); ok {
			list = append(list, "objects/pack/"+base)
		}
	}
	return list, nil
}

// A pack is an open pack and its index.
type pack struct {
	git         *os.Root
	name        string
	index, data *os.File
	indexSize   int64
	dataSize    int64
	width       int // bytes of a digest
	left        int // bytes that may still be inflated
}

// inPack looks an object up in one pack.
func inPack(git *os.Root, base string, name []byte) (kind string, text []byte, err error) {
	index, size, err := openPlain(git, base+".idx")
	if err != nil {
		return "", nil, err
	}
	defer index.Close()
	p := &pack{git: git, name: base, index: index, indexSize: size, width: len(name), left: maxInflate}
	at, err := p.find(name)
	if err != nil {
		return "", nil, fmt.Errorf("%s.idx: %w", base, err)
	}
	if p.data, p.dataSize, err = openPlain(git, base+".pack"); err != nil {
		return "", nil, err
	}
	defer p.data.Close()
	number, text, err := p.read(at)
	if err != nil {
		return "", nil, fmt.Errorf("%s.pack: %w", base, err)
	}
	return map[int]string{packCommit: "commit", packTree: "tree", packBlob: "blob", packTag: "tag"}[number], text, nil
}

// damaged is the error of a pack or an index that is none.
func damaged(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, paddock.Invalid)...)
}

// Parts of an index of version 2.
const (
	indexHead   = 8
	indexFanout = 256 * 4
)

// find returns the offset of an object in the pack, by the index. It reads what it needs, and trusts nothing of it.
func (p *pack) find(name []byte) (int64, error) {
	head := make([]byte, indexHead+indexFanout)
	if _, err := p.index.ReadAt(head, 0); err != nil {
		return 0, damaged("it is cut off")
	}
	if string(head[:indexHead]) != "\xfftOc\x00\x00\x00\x02" {
		return 0, fmt.Errorf("it is no index of version 2: %w", paddock.Unsupported)
	}
	fan := func(i int) int64 { return int64(binary.BigEndian.Uint32(head[indexHead+4*i:])) }
	width, count, low, high := int64(p.width), fan(255), int64(0), fan(int(name[0]))
	if name[0] > 0 {
		low = fan(int(name[0]) - 1)
	}
	names := int64(indexHead + indexFanout)
	offsets := names + count*(width+4) // behind the checksums
	large := offsets + count*4
	if low > high || high > count || large+2*width > p.indexSize {
		return 0, damaged("its numbers do not fit its size")
	}
	got := make([]byte, width)
	for low < high {
		middle := low + (high-low)/2
		if _, err := p.index.ReadAt(got, names+middle*width); err != nil {
			return 0, damaged("it is cut off")
		}
		switch c := bytes.Compare(got, name); {
		case c < 0:
			low = middle + 1
		case c > 0:
			high = middle
		default:
			return p.offset(offsets+4*middle, large)
		}
	}
	return 0, fmt.Errorf("the pack does not have it: %w", paddock.NotFound)
}

// offset reads an entry of the table of offsets. Offsets that need more bits are in another table, at large.
func (p *pack) offset(at, large int64) (int64, error) {
	b := make([]byte, 8)
	if _, err := p.index.ReadAt(b[:4], at); err != nil {
		return 0, damaged("it is cut off")
	}
	n := binary.BigEndian.Uint32(b)
	if n < 1<<31 {
		return int64(n), nil
	}
	where := large + 8*int64(n&(1<<31-1))
	if where+8+2*int64(p.width) > p.indexSize {
		return 0, damaged("an offset is beyond its end")
	}
	if _, err := p.index.ReadAt(b, where); err != nil {
		return 0, damaged("it is cut off")
	}
	long := binary.BigEndian.Uint64(b)
	if long >= 1<<63 {
		return 0, damaged("an offset is beyond every file")
	}
	return int64(long), nil
}

// read returns the kind and contents of the object at an offset: it follows deltas to their base, and applies them.
func (p *pack) read(at int64) (kind int, text []byte, err error) {
	var deltas [][]byte
	for {
		e, err := p.entry(at)
		if err != nil {
			return 0, nil, err
		}
		switch e.kind {
		case packTree, packBlob:
			return e.kind, nil, nil
		case packCommit, packTag:
			text, err := p.inflate(e)
			for i := len(deltas) - 1; i >= 0 && err == nil; i-- {
				if text, err = patch(text, deltas[i]); err == nil {
					if p.left -= len(text); p.left < 0 {
						err = tooLarge()
					}
				}
			}
			return e.kind, text, err
		}
		if len(deltas) == maxDeltas {
			return 0, nil, damaged("an object is made of too many others")
		}
		delta, err := p.inflate(e)
		if err != nil {
			return 0, nil, err
		}
		deltas = append(deltas, delta)
		at = e.base
	}
}

// A packEntry is the head of an object in a pack.
type packEntry struct {
	kind int
	size int64 // of the inflated bytes
	data int64 // offset of the deflated bytes
	base int64 // offset of the base of a delta
}

// entry reads the head of the object at an offset.
func (p *pack) entry(at int64) (packEntry, error) {
	if at < 12 || at >= p.dataSize {
		return packEntry{}, damaged("an object is beyond its end")
	}
	b := make([]byte, 64) // two numbers of at most 10 bytes, and a digest
	n, err := p.data.ReadAt(b, at)
	if err != nil && !errors.Is(err, io.EOF) {
		return packEntry{}, fmt.Errorf("%w: %w", err, paddock.Denied)
	}
	r := bytes.NewReader(b[:n])
	first, err := r.ReadByte()
	if err != nil {
		return packEntry{}, damaged("it is cut off")
	}
	e := packEntry{kind: int(first >> 4 & 7), size: int64(first & 15)}
	for shift := 4; first&0x80 != 0; shift += 7 {
		if first, err = r.ReadByte(); err != nil || shift > 53 {
			return packEntry{}, damaged("the size of an object is none")
		}
		e.size |= int64(first&0x7f) << shift
	}
	switch e.kind {
	case packCommit, packTree, packBlob, packTag:
	case offDelta:
		back, err := backwards(r)
		if err != nil || back <= 0 || back > at-12 {
			return packEntry{}, damaged("a delta has no base")
		}
		e.base = at - back
	case refDelta:
		name := make([]byte, p.width)
		if _, err := io.ReadFull(r, name); err != nil {
			return packEntry{}, damaged("it is cut off")
		}
		if e.base, err = p.find(name); err != nil {
			return packEntry{}, damaged("the base of a delta: %v", err)
		}
	default:
		return packEntry{}, damaged("an object is of the kind %d", e.kind)
	}
	e.data = at + int64(n) - int64(r.Len())
	return e, nil
}

// backwards reads how far in front of a delta its base begins.
func backwards(r io.ByteReader) (int64, error) {
	b, err := r.ReadByte()
	n := int64(b & 0x7f)
	for err == nil && b&0x80 != 0 {
		if n >= 1<<55 {
			return 0, damaged("an offset is beyond every file")
		}
		b, err = r.ReadByte()
		n = (n+1)<<7 | int64(b&0x7f)
	}
	return n, err
}

// inflate returns the inflated bytes of an entry.
func (p *pack) inflate(e packEntry) ([]byte, error) {
	if e.size > maxObject || int(e.size) > p.left {
		return nil, tooLarge()
	}
	p.left -= int(e.size)
	most := e.size + e.size/64 + 1<<16 // of a stream for so many bytes; one with empty blocks has no end otherwise
	z, err := zlib.NewReader(io.NewSectionReader(p.data, e.data, min(p.dataSize-e.data, most)))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, paddock.Invalid)
	}
	text, err := io.ReadAll(io.LimitReader(z, e.size+1))
	if err != nil || int64(len(text)) != e.size {
		return nil, damaged("an object has not the size that it says: %v", err)
	}
	return text, nil
}

// patch applies a delta of git to a base.
func patch(base, delta []byte) ([]byte, error) {
	r := bytes.NewReader(delta)
	from, err := binary.ReadUvarint(r)
	if err != nil || from != uint64(len(base)) {
		return nil, damaged("a delta is of another base")
	}
	size, err := binary.ReadUvarint(r)
	if err != nil {
		return nil, damaged("a delta is cut off")
	}
	if size > maxObject {
		return nil, tooLarge()
	}
	out := make([]byte, 0, size)
	for r.Len() > 0 {
		op, err := r.ReadByte()
		if err != nil || op == 0 {
			return nil, damaged("a delta has a command that there is not")
		}
		var part []byte
		if op&0x80 == 0 {
			part = make([]byte, op)
			_, err = io.ReadFull(r, part)
		} else {
			part, err = copied(base, op, r)
		}
		if err != nil || len(out)+len(part) > int(size) {
			return nil, damaged("a delta leads beyond its end")
		}
		out = append(out, part...)
	}
	if len(out) != int(size) {
		return nil, damaged("a delta is cut off")
	}
	return out, nil
}

// copied reads the operands of a command that copies from the base.
func copied(base []byte, op byte, r io.ByteReader) ([]byte, error) {
	var n [7]int // four bytes of the offset, three of the size
	for i := range n {
		if op>>i&1 == 0 {
			continue
		}
		b, err := r.ReadByte()
		if err != nil {
			return nil, err
		}
		n[i] = int(b)
	}
	at, size := n[0]|n[1]<<8|n[2]<<16|n[3]<<24, n[4]|n[5]<<8|n[6]<<16
	if size == 0 {
		size = 0x10000
	}
	if at < 0 || at > len(base) || size > len(base)-at {
		return nil, damaged("a delta leads beyond its base")
	}
	return base[at : at+size], nil
}
