package git

import (
	"bytes"
	be "encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"sort"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

// A store is the library's, except for what it reads of objects and of the index. The library believes what a file
// says of itself, and holds as much memory as that: here sizes are limits, what is held is counted before it is read,
// and an object is what its name says.
type store struct {
	*filesystem.Storage

	books   *books
	objects *objects
}

// objects is a directory of objects.
type objects struct {
	*books

	dir   string
	found bool       // packs and others are known
	packs []*pack    // in it
	other []*objects // whose objects count as its own
	depth int        // of others within others
}

// A pack is a file of many objects.
type pack struct {
	path string // without suffix
	idx  []byte // the index: where each object is
	n    int    // of them
}

// errCorrupt is that a file of the repository is not what git writes.
var errCorrupt = errors.New("a file of the repository is corrupt")

// EncodedObject implements the library's storer.
func (s *store) EncodedObject(kind plumbing.ObjectType, h plumbing.Hash) (plumbing.EncodedObject, error) {
	o, err := s.objects.get(h)
	if err != nil {
		return nil, err
	}
	if kind != plumbing.AnyObject && kind != o.kind {
		return nil, plumbing.ErrObjectNotFound
	}
	return o, nil
}

// HasEncodedObject implements the library's storer.
func (s *store) HasEncodedObject(h plumbing.Hash) error {
	if s.objects.has(h) {
		return nil
	}
	return plumbing.ErrObjectNotFound
}

// EncodedObjectSize implements the library's storer.
func (s *store) EncodedObjectSize(h plumbing.Hash) (int64, error) {
	o, err := s.objects.get(h)
	if err != nil {
		return 0, err
	}
	return o.Size(), nil
}

// IterEncodedObjects is of no command: it would read every object.
func (*store) IterEncodedObjects(plumbing.ObjectType) (storer.EncodedObjectIter, error) {
	return nil, errors.ErrUnsupported
}

// DeltaObject is of no command.
func (*store) DeltaObject(plumbing.ObjectType, plumbing.Hash) (plumbing.EncodedObject, error) {
	return nil, errors.ErrUnsupported
}

// Index implements the library's storer.
func (s *store) Index() (*index.Index, error) {
	f, err := (&tree{t: s.books.t, root: path.Dir(s.objects.dir)}).Open("index")
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return &index.Index{Version: 2}, nil
		}
		return nil, err
	}
	cost, err := indexCost(f)
	err = errors.Join(err, f.Close())
	if err != nil {
		return nil, err
	}
	s.books.hold(ofIndex, cost)
	return s.Storage.Index()
}

// get reads an object.
func (o *objects) get(h plumbing.Hash) (*stored, error) {
	o.t.Step(16)
	if x, ok := o.cached(key{hash: h}); ok {
		o.t.Grow(len(x.b))
		s := &stored{x.kind, h, x.b}
		o.own(s)
		return s, nil
	}
	kind, b, err := o.read(h)
	if err != nil {
		return nil, err
	}
	o.t.Step(1 + len(b)/64)
	if plumbing.ComputeHash(kind, b) != h {
		o.t.Shrink(len(b))
		return nil, errCorrupt
	}
	x := &stored{kind, h, b}
	o.keep(key{hash: h}, content{kind, b})
	o.own(x)
	return x, nil
}

// read finds an object. The caller owns what it holds, which is counted.
func (o *objects) read(h plumbing.Hash) (plumbing.ObjectType, []byte, error) {
	kind, b, err := o.loose(h)
	if err != plumbing.ErrObjectNotFound {
		return kind, b, err
	}
	if err := o.find(); err != nil {
		return 0, nil, err
	}
	for _, p := range o.packs {
		if at, ok := p.at(h); ok {
			return o.unpack(p, at)
		}
	}
	for _, x := range o.other {
		if kind, b, err = x.read(h); err != plumbing.ErrObjectNotFound {
			return kind, b, err
		}
	}
	return 0, nil, plumbing.ErrObjectNotFound
}

func looseName(h plumbing.Hash) string { s := h.String(); return s[:2] + "/" + s[2:] }

// has reports whether there is an object of that name, without reading it.
func (o *objects) has(h plumbing.Hash) bool {
	o.t.Step(16)
	if _, err := o.t.View.Stat(path.Join(o.dir, looseName(h))); err == nil {
		return true
	}
	if o.find() != nil {
		return false
	}
	return slices.ContainsFunc(o.packs, func(p *pack) bool { _, ok := p.at(h); return ok }) ||
		slices.ContainsFunc(o.other, func(x *objects) bool { return x.has(h) })
}

// begin lists the objects whose names begin so, with one byte or more.
func (o *objects) begin(prefix []byte) ([]plumbing.Hash, error) {
	var list []plumbing.Hash
	add := func(h plumbing.Hash) {
		if bytes.HasPrefix(h[:], prefix) && !slices.Contains(list, h) {
			o.t.Step(1 + len(list))
			o.t.Grow(2 * len(h))
			list = append(list, h)
		}
	}
	dir := hex.EncodeToString(prefix[:1])
	names, err := (&tree{t: o.t, root: o.dir}).ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, i := range names {
		var h plumbing.Hash
		if b, err := hex.DecodeString(dir + i.Name()); err == nil && len(b) == len(h) {
			copy(h[:], b)
			add(h)
		}
	}
	if err := o.find(); err != nil {
		return nil, err
	}
	for _, p := range o.packs {
		for i := p.first(prefix); i < p.n && bytes.HasPrefix(p.name(i), prefix); i++ {
			add(plumbing.Hash(p.name(i)))
		}
	}
	for _, x := range o.other {
		more, err := x.begin(prefix)
		if err != nil {
			return nil, err
		}
		for _, h := range more {
			add(h)
		}
	}
	return list, nil
}

// Bounds of alternates: other directories that count as part of a repository.
const (
	maxAlternates = 64
	maxDepth      = 5
	maxList       = 64 << 10
)

// find looks for packs and for other directories, once.
func (o *objects) find() error {
	if o.found {
		return nil
	}
	o.found = true
	x := &tree{t: o.t, root: o.dir}
	list, err := x.ReadDir("pack")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, i := range list {
		name, ok := strings.CutSuffix(i.Name(), ".idx")
		if !ok || !strings.HasPrefix(name, "pack-") {
			continue
		}
		p, err := o.packIndex(x, path.Join("pack", name))
		if err != nil {
			return err
		}
		o.packs = append(o.packs, p)
	}
	b, err := o.t.View.ReadFile(path.Join(o.dir, "info", "alternates"), maxList)
	if err != nil || o.depth >= maxDepth {
		return nil //nolint:nilerr // there are none, as a rule
	}
	for l := range strings.Lines(string(b)) {
		l = strings.TrimRight(l, "\r\n")
		if l == "" || l[0] == '#' || len(o.other) == maxAlternates {
			continue
		}
		if !path.IsAbs(l) {
			l = path.Join(o.dir, l)
		}
		o.other = append(o.other, &objects{books: o.books, dir: path.Clean(l), depth: o.depth + 1})
	}
	return nil
}

// packIndex reads the index of a pack, of which OpenFile has compared the size with what it says.
func (o *objects) packIndex(x *tree, name string) (*pack, error) {
	f, err := x.open(name+".idx", 0, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	i, err := f.f.Info()
	if err != nil {
		return nil, err
	}
	o.t.Bound("input", i.Size, o.t.K.Limits.Input)
	o.t.Grow(int(i.Size))
	b := make([]byte, i.Size)
	if _, err := io.ReadFull(f, b); err != nil {
		return nil, err
	}
	if len(b) < packTable+packTrailer || string(b[:8]) != "\377tOc\x00\x00\x00\x02" {
		return nil, errCorrupt
	}
	p := &pack{path: path.Join(x.root, name), idx: b, n: int(be.BigEndian.Uint32(b[packTable-4:]))}
	if !soundIndex("x.idx", bytes.NewReader(b), int64(len(b))) {
		return nil, errCorrupt
	}
	return p, nil
}

func (p *pack) name(i int) []byte { return p.idx[packTable+20*i : packTable+20*i+20] }

// first gives the place of the first name that is not before prefix.
func (p *pack) first(prefix []byte) int {
	return sort.Search(p.n, func(i int) bool { return bytes.Compare(p.name(i), prefix) >= 0 })
}

// at gives where an object is in the pack.
func (p *pack) at(h plumbing.Hash) (int64, bool) {
	i := p.first(h[:])
	if i == p.n || !bytes.Equal(p.name(i), h[:]) {
		return 0, false
	}
	at := be.BigEndian.Uint32(p.idx[packTable+24*p.n+4*i:])
	if at>>31 == 0 {
		return int64(at), true
	}
	big := packTable + 28*p.n + 8*int(at&^(1<<31)) // in a table of its own
	if big+8+packTrailer > len(p.idx) {
		return 0, false
	}
	return int64(be.BigEndian.Uint64(p.idx[big:]) & (1<<63 - 1)), true
}

// A stored object is one in memory.
type stored struct {
	kind plumbing.ObjectType
	hash plumbing.Hash
	b    []byte // nobody changes it
}

func (o *stored) Hash() plumbing.Hash            { return o.hash }
func (o *stored) Type() plumbing.ObjectType      { return o.kind }
func (*stored) SetType(plumbing.ObjectType)      {}
func (o *stored) Size() int64                    { return int64(len(o.b)) }
func (*stored) SetSize(int64)                    {}
func (o *stored) Reader() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(o.b)), nil }
func (*stored) Writer() (io.WriteCloser, error)  { return nil, errors.ErrUnsupported }

// A ring is the newest of what is held.
type ring struct {
	size []int
	next int
}

// Of what a command holds the newest so many are counted.
type holding int

const (
	ofBlob holding = iota
	ofTree
	ofIndex
	holdings
)

// treeFactor is by how much a tree in memory is greater than its object.
const treeFactor = 5

// books counts what a run of git holds in memory, of which the library tells nothing: files and trees that it had
// last, the index as often as it can have two of them, and all commits.
type books struct {
	t     *kernel.Task
	rings [holdings]ring
	seen  map[plumbing.Hash]bool // commits and tags that are counted

	cache map[key]content
	order []key // of the cache, oldest first
	size  int   // of the cache
}

// A key names an object, or one in a pack by its place.
type key struct {
	hash plumbing.Hash
	pack *pack
	at   int64
}

type content struct {
	kind plumbing.ObjectType
	b    []byte
}

func newBooks(t *kernel.Task) *books {
	b := &books{t: t, seen: map[plumbing.Hash]bool{}, cache: map[key]content{}}
	for i, n := range [holdings]int{ofBlob: 6, ofTree: 32, ofIndex: 2} {
		b.rings[i].size = make([]int, n)
	}
	return b
}

// hold counts n bytes, until there is room for others in the ring.
func (b *books) hold(what holding, n int) {
	b.t.Grow(n)
	r := &b.rings[what]
	b.t.Shrink(r.size[r.next])
	r.size[r.next] = n
	r.next = (r.next + 1) % len(r.size)
}

// own counts an object whose content is counted already.
func (b *books) own(x *stored) {
	switch x.kind {
	case plumbing.BlobObject:
		b.hold(ofBlob, len(x.b))
	case plumbing.TreeObject:
		b.hold(ofTree, treeFactor*len(x.b))
	default:
		if !b.seen[x.hash] {
			b.seen[x.hash] = true
			b.t.Grow(len(x.b) + perCommit)
		}
	}
	b.t.Shrink(len(x.b))
}

// perCommit is what a commit has in memory besides its object.
const perCommit = 400

const (
	mostCached = 8 << 20
	perCached  = 200
)

func (b *books) cached(k key) (content, bool) {
	x, ok := b.cache[k]
	return x, ok
}

// keep remembers what was read, where it is small beside what may be held.
func (b *books) keep(k key, x content) {
	most := int(min(mostCached, b.t.K.Heap().Limit()/16))
	n := len(x.b) + perCached
	if n > most/4 {
		return
	}
	for b.size+n > most && len(b.order) > 0 {
		old := len(b.cache[b.order[0]].b) + perCached
		delete(b.cache, b.order[0])
		b.order = b.order[1:]
		b.size -= old
		b.t.Shrink(old)
	}
	b.t.Grow(n)
	b.size += n
	b.cache[k] = x
	b.order = append(b.order, k)
}
