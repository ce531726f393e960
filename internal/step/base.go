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
	known map[uint64]bool // whether nothing was at the path
	seed  maphash.Seed

	// dirs has directories that were looked at when they were where they had been when the command began.
	dirs map[key]identity
}

// An identity tells a directory from one that has its number after it.
type identity struct {
	ino  uint64
	born int64
}

// mostDeep bounds how deep a path is whose directories are remembered.
const mostDeep = 64

// way looks at the directories that a path is in, from the root on, and remembers those that are where they were when the
// command began: their times are old, or they were remembered. The report of the path may be forged, and may come at any
// time, because nothing is taken from it. sure is for all of them; still means that no name changed in the last one either.
func (b *bases) way(at key) (sure, still bool) {
	t := b.roots[at.root]
	parts := strings.Split(at.path, "/")
	top, err := t.stat(".")
	if err != nil || len(parts) > mostDeep {
		return false, false
	}
	still = b.begun.forged(&top)
	dir := key{root: at.root}
	for _, name := range parts[:len(parts)-1] {
		dir = dir.in(name)
		s, err := t.stat(dir.path)
		if err != nil || s.Kind != Dir || s.Dev != 0 {
			return false, false
		}
		is, born := b.dirs[dir]
		if still = b.begun.forged(&s); !still {
			if !born || is != t.identity(dir.path, &s) {
				return false, false
			}
			continue
		}
		if !born && len(b.dirs) < maxBases && b.paths+len(dir.path) <= baseNames {
			b.paths += len(dir.path)
			b.dirs[key{dir.root, strings.Clone(dir.path)}] = t.identity(dir.path, &s)
		}
	}
	return true, still
}

// same reports whether a directory is where it was when the command began, although names changed in it.
func (b *bases) same(at key, s *State) bool {
	if b == nil || b.roots[at.root] == nil {
		return false
	}
	is, known := b.dirs[at]
	return known && is == b.roots[at.root].identity(at.path, s)
}

// wasAbsent reports whether nothing was at a path when the command began.
func (b *bases) wasAbsent(at key) bool {
	return b != nil && b.known[maphash.Comparable(b.seed, at)]
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
	b := &bases{tree: t, begun: newRecorder(l.v.Journal, l.head), saved: map[key]base{}, dirs: map[key]identity{}, known: map[uint64]bool{}, seed: maphash.MakeSeed()}
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
	sure, still := b.way(at)
	s, err := b.roots[at.root].stat(at.path)
	b.known[sum] = sure && still && err == nil && !s.Exists()
	if b.known[sum] { // unless a name changed between the two looks
		_, b.known[sum] = b.way(at)
	}
	if !sure || err != nil || s.Kind != File || s.Size > baseText || b.bytes+s.Size > baseBytes || !b.begun.forged(&s) {
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
