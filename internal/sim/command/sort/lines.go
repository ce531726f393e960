package sort

import (
	"bytes"
	"crypto/md5" //nolint:gosec // the hash that GNU's sort -R uses, for no secret
	"crypto/rand"
	"encoding/binary"
	"slices"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// An item stands for a line while it is sorted.
type item struct {
	prefix uint64
	line   uint32
}

// lines are those of all files. Line i lies between the delimiters at
// ends[i-1] and ends[i].
type lines struct {
	*sorter

	data  []byte
	ends  []int
	items []item
	spare []item // for moving items about
}

func (l *lines) line(i uint32) []byte {
	start := 0
	if i > 0 {
		start = l.ends[i-1] + 1
	}
	return l.data[start:l.ends[i]]
}

func (j *job) read(names []string) (*lines, bool) {
	l := &lines{sorter: j.sorter}
	for _, name := range names {
		if !l.gather(j, name) {
			return nil, false
		}
	}
	n := bytes.Count(l.data, []byte{l.end})
	j.t.Bound("record", int64(n), 1<<32-2) // an item numbers lines with 32 bits
	j.t.Grow(n * (8 + 16))
	l.ends = make([]int, 0, n)
	l.items = make([]item, n)
	for at := 0; at < len(l.data); {
		at += bytes.IndexByte(l.data[at:], l.end)
		l.items[len(l.ends)].line = uint32(len(l.ends))
		l.ends = append(l.ends, at)
		at++
	}
	j.t.Step(n)
	return l, true
}

// sort puts the items in order.
func (l *lines) sort() {
	l.order(l.items, 0, 0)
	l.spare = nil
}

// few is how many items are sorted by comparing them.
const few = 48

// deep is how many bytes of text are looked at as prefixes; what is alike for
// longer is compared.
const deep = 256

// order sorts items whose keys before stage are alike, and whose key of that
// stage is alike for depth bytes.
func (l *lines) order(items []item, stage, depth int) {
	if len(items) < 2 || stage > len(l.keys) || stage == len(l.keys) && stage > 0 && (l.unique || l.stable) {
		return
	}
	var k *key
	reverse := l.global.reverse
	if stage < len(l.keys) {
		k = l.keys[stage]
		reverse = k.reverse
	}
	if len(items) <= few || k != nil && k.kind == byVersion {
		l.compareItems(items, stage)
		return
	}
	l.t.Step(len(items))
	for i := range items {
		it := &items[i]
		line := l.line(it.line)
		switch {
		case k == nil:
			it.prefix = first(line[depth:])
		case depth > 0:
			it.prefix = first(k.of(line, l.tab)[depth:])
		default:
			it.prefix = l.prefix(k, k.of(line, l.tab))
		}
		if reverse {
			it.prefix = ^it.prefix
		}
	}
	l.radix(items)
	for from := 0; from < len(items); {
		to := from + 1
		for to < len(items) && items[to].prefix == items[from].prefix {
			to++
		}
		if to-from > 1 {
			l.run(items[from:to], k, stage, depth)
		}
		from = to
	}
}

// run sorts items whose prefixes are alike.
func (l *lines) run(items []item, k *key, stage, depth int) {
	if len(items) <= few {
		l.compareItems(items, stage)
		return
	}
	length, alike, longer := -1, true, true
	switch {
	case k == nil || k.kind == byText && !k.fold && k.ignore == nothing:
		for _, it := range items {
			b := l.line(it.line)
			if k != nil {
				b = k.of(b, l.tab)
			}
			if length < 0 {
				length = len(b)
			}
			alike = alike && len(b) == length && length <= depth+8
			longer = longer && len(b) >= depth+8
		}
		longer = longer && depth < deep
	case k.kind == byNumber || k.kind == byHuman:
		longer = false
		for _, it := range items {
			d, _ := parse(k.of(l.line(it.line), l.tab))
			alike = alike && len(d.whole)+len(d.part) <= 15
		}
	default:
		longer = false
		alike = k.kind == byMonth
	}
	switch {
	case alike:
		if k != nil {
			l.order(items, stage+1, 0)
		}
	case longer:
		l.order(items, stage, depth+8)
	default:
		l.compareItems(items, stage)
	}
}

// compareItems sorts by comparing, from a stage on.
func (l *lines) compareItems(items []item, stage int) {
	slices.SortStableFunc(items, func(x, y item) int {
		a, b := l.line(x.line), l.line(y.line)
		l.t.Step(1 + min(len(a), len(b))>>8)
		for _, k := range l.keys[min(stage, len(l.keys)):] {
			if c := l.byKey(k, k.of(a, l.tab), k.of(b, l.tab)); c != 0 {
				return c
			}
		}
		if len(l.keys) > 0 && (l.unique || l.stable) {
			return 0
		}
		if c := bytes.Compare(a, b); !l.global.reverse {
			return c
		} else {
			return -c
		}
	})
}

// radix sorts by prefix, and leaves the order of those that are alike.
func (l *lines) radix(items []item) {
	if len(l.spare) < len(items) {
		l.t.Grow(16 * (len(items) - len(l.spare)))
		l.spare = make([]item, len(items))
	}
	var count [8][256]uint32
	for i := range items {
		p := items[i].prefix
		for d := range 8 {
			count[d][byte(p>>(8*d))]++
		}
	}
	from, to := items, l.spare[:len(items)]
	for d := range 8 {
		c := &count[d]
		if c[byte(from[0].prefix>>(8*d))] == uint32(len(items)) {
			continue
		}
		sum := uint32(0)
		for i := range c {
			c[i], sum = sum, sum+c[i]
		}
		for _, it := range from {
			b := byte(it.prefix >> (8 * d))
			to[c[b]] = it
			c[b]++
		}
		from, to = to, from
		l.t.Step(len(items) >> 2)
	}
	if &from[0] != &items[0] {
		copy(items, from)
	}
}

// write writes the lines; of those that are alike only the first if that is
// asked for.
func (l *lines) write(w *command.Writer) {
	var last []byte
	for i, it := range l.items {
		line := l.line(it.line)
		if l.unique {
			if i > 0 && l.same(last, line) {
				continue
			}
			last = line
		}
		w.Bytes(line[:len(line)+1])
	}
}

func (l *lines) same(a, b []byte) bool {
	if len(l.keys) == 0 {
		return bytes.Equal(a, b)
	}
	return l.byKeys(a, b) == 0
}

func (s *sorter) hash(b []byte) uint64 {
	h := md5.New() //nolint:gosec // see the import
	_, _ = h.Write(s.salt[:])
	if len(b) > 0 {
		_, _ = h.Write(b)
		_, _ = h.Write([]byte{0})
	}
	return binary.BigEndian.Uint64(h.Sum(nil))
}

func fill(b []byte) { _, _ = rand.Read(b) }

// gather reads a file behind what is there.
func (l *lines) gather(j *job, name string) bool {
	r, err := command.OpenReader(j.t, name)
	if err != nil {
		j.t.Errorf("cannot read: %s: %s", command.QuoteFile(name), vfs.Message(err))
		return false
	}
	defer r.Close()
	b, err := r.All()
	if err != nil {
		j.t.Errorf("read failed: %s: %s", command.QuoteFile(name), vfs.Message(err))
		return false
	}
	if len(l.data) == 0 {
		l.data = b
	} else {
		j.t.Bound("input", int64(len(l.data)+len(b)), j.t.K.Limits.Input)
		j.t.Grow(len(b))
		l.data = append(l.data, b...)
		j.t.Shrink(cap(b))
	}
	if n := len(l.data); n > 0 && len(b) > 0 && l.data[n-1] != l.end {
		l.data = append(l.data, l.end)
	}
	return true
}
