package git

import (
	"bufio"
	"compress/zlib"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// maxRatio is more than what is compressed can become, for each of its bytes.
const maxRatio = 1040

// inflate gives what is compressed in r, which must be so many bytes. They are counted before they are there, and the
// caller owns that.
func (o *objects) inflate(r io.Reader, size, packed int64) ([]byte, error) {
	z, err := zlib.NewReader(r)
	if err != nil {
		return nil, errCorrupt
	}
	return o.fill(z, size, packed)
}

// fill reads so many bytes, which must be all.
func (o *objects) fill(z io.Reader, size, packed int64) ([]byte, error) {
	if size < 0 || size > packed*maxRatio+64 {
		return nil, errCorrupt
	}
	o.t.Bound("input", size, o.t.K.Limits.Input)
	o.t.Grow(int(size))
	b := make([]byte, size)
	_, err := io.ReadFull(z, b)
	if err == nil {
		var more [1]byte
		var n int
		if n, err = io.ReadFull(z, more[:]); n == 0 && err == io.EOF {
			return b, nil
		}
	}
	o.t.Shrink(int(size))
	return nil, errCorrupt
}

// loose reads an object that has a file of its own.
func (o *objects) loose(h plumbing.Hash) (plumbing.ObjectType, []byte, error) {
	f, err := (&tree{t: o.t, root: o.dir}).open(looseName(h), 0, 0)
	if err != nil {
		return 0, nil, plumbing.ErrObjectNotFound
	}
	defer func() { _ = f.Close() }() // it was only read
	i, err := f.f.Info()
	if err != nil {
		return 0, nil, err
	}
	z, err := zlib.NewReader(bufio.NewReader(f))
	if err != nil {
		return 0, nil, errCorrupt
	}
	kind, size, err := looseHead(z)
	if err != nil {
		return 0, nil, err
	}
	b, err := o.fill(z, size, i.Size)
	return kind, b, err
}

// looseHead reads what an object says of itself: its kind and its size.
func looseHead(r io.Reader) (plumbing.ObjectType, int64, error) {
	var head [32]byte
	for i := range head {
		if _, err := io.ReadFull(r, head[i:i+1]); err != nil {
			return 0, 0, errCorrupt
		}
		if head[i] != 0 {
			continue
		}
		word, digits, _ := strings.Cut(string(head[:i]), " ")
		kind, err := plumbing.ParseObjectType(word)
		size, e := strconv.ParseInt(digits, 10, 64)
		if errors.Join(err, e) != nil || size < 0 || !plain(kind) {
			return 0, 0, errCorrupt
		}
		return kind, size, nil
	}
	return 0, 0, errCorrupt
}

// plain reports whether a kind is of whole objects.
func plain(kind plumbing.ObjectType) bool {
	return kind == plumbing.BlobObject || kind == plumbing.TreeObject || kind == plumbing.CommitObject || kind == plumbing.TagObject
}

// A packed object is one in a pack, as its head says.
type packed struct {
	kind plumbing.ObjectType
	size int64 // of what is compressed: a whole object, or what makes one from another
	data int64 // where that is
	base int64 // where the other is
}

// maxChain bounds objects that are made from each other. git makes 50, and at most 4,095.
const maxChain = 4095

// unpack reads an object of a pack. The caller owns what it holds, which is counted.
func (o *objects) unpack(p *pack, at int64) (plumbing.ObjectType, []byte, error) {
	f, err := (&tree{t: o.t, root: "/"}).open(p.path+".pack", 0, 0)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	i, err := f.f.Info()
	if err != nil {
		return 0, nil, err
	}
	section := func(x packed) ([]byte, error) {
		r := io.NewSectionReader(f, x.data, i.Size-x.data)
		return o.inflate(bufio.NewReader(r), x.size, r.Size())
	}
	var chain []packed
	var places []int64
	var whole content
	for {
		if x, ok := o.cached(key{pack: p, at: at}); ok {
			o.t.Grow(len(x.b))
			whole = x
			break
		}
		x, err := o.packedHead(f, p, at)
		if err != nil {
			return 0, nil, err
		}
		if plain(x.kind) {
			if whole.b, err = section(x); err != nil {
				return 0, nil, err
			}
			whole.kind = x.kind
			break
		}
		if len(chain) == maxChain {
			return 0, nil, errCorrupt
		}
		chain, places = append(chain, x), append(places, at)
		at = x.base
	}
	for len(chain) > 0 {
		o.keepBase(p, at, whole)
		last := len(chain) - 1
		delta, err := section(chain[last])
		if err != nil {
			return 0, nil, err
		}
		made, err := o.patch(whole.b, delta)
		if err != nil {
			return 0, nil, err
		}
		o.t.Shrink(len(whole.b) + len(delta))
		whole.b, at, chain, places = made, places[last], chain[:last], places[:last]
	}
	return whole.kind, whole.b, nil
}

// keepBase remembers what others are made from.
func (o *objects) keepBase(p *pack, at int64, x content) {
	if k := (key{pack: p, at: at}); !o.knows(k) {
		o.keep(k, x)
	}
}

func (b *books) knows(k key) bool { _, ok := b.cache[k]; return ok }

// packedHead reads what stands before an object in a pack.
func (o *objects) packedHead(f io.ReaderAt, p *pack, at int64) (packed, error) {
	var buf [64]byte
	n, err := f.ReadAt(buf[:], at)
	if err != nil && err != io.EOF {
		return packed{}, err
	}
	x, ref, used, ok := parseHead(buf[:n], at)
	if !ok {
		return packed{}, errCorrupt
	}
	x.data = at + int64(used)
	if x.kind == plumbing.REFDeltaObject {
		if x.base, ok = p.at(ref); !ok {
			return packed{}, errCorrupt
		}
	}
	return x, nil
}

// parseHead reads the head of an object that stands at a place in a pack, and tells how long it is.
func parseHead(b []byte, at int64) (x packed, ref plumbing.Hash, used int, ok bool) {
	if len(b) == 0 {
		return x, ref, 0, false
	}
	x.kind, x.size = plumbing.ObjectType(b[0]>>4&7), int64(b[0]&15)
	i := 1
	for shift := 4; b[i-1]&0x80 != 0; shift += 7 {
		if i == len(b) || shift > 53 {
			return x, ref, 0, false
		}
		x.size |= int64(b[i]&0x7f) << shift
		i++
	}
	switch {
	case plain(x.kind):
	case x.kind == plumbing.REFDeltaObject && len(b)-i >= len(ref):
		i += copy(ref[:], b[i:])
	case x.kind == plumbing.OFSDeltaObject:
		back := int64(0)
		for more := true; more; i++ {
			if i == len(b) || back > 1<<48 {
				return x, ref, 0, false
			}
			more = b[i]&0x80 != 0
			back = back<<7 | int64(b[i]&0x7f)
			if more {
				back++
			}
		}
		if x.base = at - back; back == 0 || x.base <= 0 {
			return x, ref, 0, false
		}
	default:
		return x, ref, 0, false
	}
	return x, ref, i, true
}

// A deltaOp is one operation of a delta: bytes of the base, or of the delta itself.
type deltaOp struct {
	base     bool
	from, to int
}

// nextOp takes an operation from a delta that makes something from so many bytes.
func nextOp(delta []byte, at, base int) (e deltaOp, next int, ok bool) {
	op := delta[at]
	at++
	if op == 0 {
		return e, 0, false
	}
	if op&0x80 == 0 {
		e = deltaOp{false, at, at + int(op)}
		return e, e.to, e.to <= len(delta)
	}
	e.base = true
	size := 0
	for bit := range 7 {
		if op>>bit&1 == 0 {
			continue
		}
		if at == len(delta) {
			return e, 0, false
		}
		if bit < 4 {
			e.from |= int(delta[at]) << (8 * bit)
		} else {
			size |= int(delta[at]) << (8 * (bit - 4))
		}
		at++
	}
	if size == 0 {
		size = 1 << 16
	}
	e.to = e.from + size
	return e, at, e.to <= base
}

// number takes a number of seven bits a byte, the lowest first.
func number(b []byte) (n int64, rest []byte, ok bool) {
	for i, c := range b {
		if i == 8 {
			break
		}
		n |= int64(c&0x7f) << (7 * i)
		if c&0x80 == 0 {
			return n, b[i+1:], true
		}
	}
	return 0, nil, false
}

// deltaSize looks a whole delta through, before anything is made of it.
func deltaSize(base, delta []byte) (size int64, rest []byte, ok bool) {
	from, rest, ok := number(delta)
	if !ok || from != int64(len(base)) {
		return 0, nil, false
	}
	if size, rest, ok = number(rest); !ok {
		return 0, nil, false
	}
	sum := int64(0)
	for at := 0; at < len(rest); {
		e, next, ok := nextOp(rest, at, len(base))
		if !ok {
			return 0, nil, false
		}
		if sum += int64(e.to - e.from); sum > size {
			return 0, nil, false
		}
		at = next
	}
	return size, rest, sum == size
}

// patch makes an object from another. The caller owns what it holds, which is counted.
func (o *objects) patch(base, delta []byte) ([]byte, error) {
	o.t.Step(1 + len(delta)/4)
	size, rest, ok := deltaSize(base, delta)
	if !ok {
		return nil, errCorrupt
	}
	o.t.Bound("input", size, o.t.K.Limits.Input)
	o.t.Grow(int(size))
	o.t.Step(1 + int(size/256))
	b := make([]byte, 0, size)
	for at := 0; at < len(rest); {
		e, next, ok := nextOp(rest, at, len(base))
		if !ok {
			return nil, errCorrupt
		}
		from := rest
		if e.base {
			from = base
		}
		b = append(b, from[e.from:e.to]...)
		at = next
	}
	return b, nil
}
