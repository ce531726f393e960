package step

import (
	"context"
	"hash/maphash"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/snapshot"
)

// Bounds of the bases of one review.
const (
	maxBases   = 20_000
	baseLookup = 200_000   // paths that are remembered
	baseNames  = 16 << 20  // bytes of the paths of all bases
	baseBytes  = 256 << 20 // of all bases
)

// bases are copies of files of the host as they were when a command began, made shortly before it changed its view of them.
// With one, what somebody else changes in the file afterwards can be merged.
type bases struct {
	tree  *tree // of a directory in that of the layers
	roots []*tree
	begun *Recorder // which tells whether a file was changed since the command began
	saved map[key]base
	bytes int64 // of the copies
	paths int   // bytes of the paths in saved

	// known has sums of the paths that were looked at, which may be long and many. The seed is not known to the command, and
	// two paths with the same sum only mean that one has no base.
	known map[uint64]struct{}
	seed  maphash.Seed
}

// A base is the state of a file of the host, and the name of its copy.
type base struct {
	state State
	name  string
}

const dirBases = "base"

// Changing saves a file below a root, before a command changes its view of it. The report may be forged: a copy is only
// taken of a file that nobody has changed since the review began, so it is the base whenever the report comes.
func (l *Layers) Changing(root, path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.name == "" || validPath(path) != nil {
		return
	}
	for i := range l.head.Roots {
		if string(l.head.Roots[i].Path) == root && (l.bases != nil || l.openBases()) {
			l.bases.save(key{i, path})
			return
		}
	}
}

// openBases makes the directory for copies.
func (l *Layers) openBases() bool {
	dir := filepath.Join(l.v.dir, layerPath(l.name, dirBases))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return false
	}
	t, err := openTree(dir)
	if err != nil {
		return false
	}
	b := &bases{tree: t, begun: newRecorder(l.v.Journal, l.head), saved: map[key]base{}, known: map[uint64]struct{}{}, seed: maphash.MakeSeed()}
	for _, root := range l.head.Roots {
		t, err := openTree(string(root.Path))
		if err == nil && t.ino != root.Ino {
			t.close()
			t = nil
		}
		b.roots = append(b.roots, t) // nil if it is gone
	}
	l.bases = b
	return true
}

// save saves a text that is small enough to be merged, once. What goes wrong only means that there is no base.
func (b *bases) save(at key) {
	sum := maphash.Comparable(b.seed, at)
	if _, known := b.known[sum]; known || len(b.known) >= baseLookup || len(b.saved) >= maxBases || b.paths+len(at.path) > baseNames || b.roots[at.root] == nil {
		return
	}
	b.known[sum] = struct{}{}
	s, err := b.roots[at.root].stat(at.path)
	if err != nil || s.Kind != File || s.Size > baseText || b.bytes+s.Size > baseBytes || !b.begun.forged(&s) {
		return
	}
	text, s, err := b.roots[at.root].text(at.path, s, baseText)
	if err != nil || isBinary(text) || !b.begun.forged(&s) {
		return
	}
	name := strconv.Itoa(len(b.saved))
	data := iter.Seq2[snapshot.Extent, error](func(yield func(snapshot.Extent, error) bool) { yield(snapshot.Extent{Bytes: text}, nil) })
	if b.tree.make(context.Background(), name, &State{Kind: File, Size: int64(len(text))}, data, false) != nil {
		return
	}
	b.bytes += int64(len(text))
	b.paths += len(at.path)
	b.saved[key{at.root, strings.Clone(at.path)}] = base{s, name}
}

// find returns the state of a base, and its name in the directory of copies, which is empty if there is none.
func (b *bases) find(at key) (s State, name string) {
	if b == nil {
		return State{}, ""
	}
	return b.saved[at].state, b.saved[at].name
}

func (b *bases) close() {
	if b == nil {
		return
	}
	b.tree.close()
	for _, t := range b.roots {
		if t != nil {
			t.close()
		}
	}
}
