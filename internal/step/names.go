package step

import "strings"

// An origin says where what has a name came from.
type origin uint8

const (
	inherited origin = iota // from where the directory came that it is in
	original                // it has been there since before the step, under the path in its node
	made                    // the step made it
	gone                    // the step removed or moved what was there, and nothing came instead
	unknown                 // something happened that was not noted
)

// A key is a path as it was when the step began.
type key struct {
	root int
	path string
}

func (k key) in(name string) key {
	if k.path == "" {
		return key{k.root, name}
	}
	return key{k.root, k.path + "/" + name}
}

// parent returns the directory of a path. That of a top name is the root itself.
func (k key) parent() key {
	i := max(0, strings.LastIndexByte(k.path, '/'))
	return key{k.root, k.path[:i]}
}

// A node is a present name, or a directory on the way to one.
type node struct {
	name string
	up   *node // nil in the node of a root
	root int   // in the node of a root
	down map[string]*node

	is   origin
	was  key    // if original; or of a hard link that the step made, the file that it is one to, if that is an original one
	link bool   // was is set, and the file was made
	over bool   // made where something was before the step
	ino  uint64 // of a moved file, or zero if it is not known
}

// at returns where the node is at present.
func (n *node) at() key {
	var parts []string
	for ; n.up != nil; n = n.up {
		parts = append(parts, n.name)
	}
	for i, j := 0, len(parts)-1; i < j; i, j = i+1, j-1 {
		parts[i], parts[j] = parts[j], parts[i]
	}
	return key{n.root, strings.Join(parts, "/")}
}

// names follows the names below all roots from the beginning of a step on.
type names struct {
	tops  []*node
	count int // nodes
}

func newNames(roots int) *names {
	x := &names{}
	for i := range roots {
		x.tops = append(x.tops, &node{root: i, is: original, was: key{i, ""}})
	}
	return x
}

// find returns where what is at a present path came from, and its node if there is one. What somebody else put into a
// directory that the step made counts as original at that path.
func (x *names) find(at key) (is origin, was key, n *node) {
	n = x.tops[at.root]
	is, was = n.is, n.was
	here := key{root: at.root}
	for name := range strings.SplitSeq(at.path, "/") {
		here = here.in(name)
		if n != nil {
			n = n.down[name]
		}
		switch {
		case n != nil && n.is != inherited:
			is, was = n.is, n.was
		case is == original:
			was = was.in(name)
		case is == made, is == gone:
			is, was = original, here
		}
	}
	return is, was, n
}

// replaces reports whether a path, or a directory that it is in, was made where something was before the step.
func (x *names) replaces(at key) bool {
	n := x.tops[at.root]
	for name := range strings.SplitSeq(at.path, "/") {
		if n = n.down[name]; n == nil {
			return false
		}
		if n.is == made && n.over {
			return true
		}
	}
	return false
}

// put returns the node of a present path, and makes it.
func (x *names) put(at key) *node {
	n := x.tops[at.root]
	for name := range strings.SplitSeq(at.path, "/") {
		next := n.down[name]
		if next == nil {
			next = &node{name: strings.Clone(name), up: n}
			if n.down == nil {
				n.down = map[string]*node{}
			}
			n.down[next.name] = next
			x.count++
		}
		n = next
	}
	return n
}

// cut takes a node and all below it out.
func (x *names) cut(n *node) {
	delete(n.up.down, n.name)
	n.up = nil
}

// drop forgets a node and all below it.
func (x *names) drop(n *node) {
	x.cut(n)
	x.count -= n.size()
}

func (n *node) size() (size int) {
	n.walk(func(*node) { size++ })
	return size
}

// set puts a node that was cut out to a present path, and cuts out what is there. It returns that.
func (x *names) set(n *node, at key) (old *node) {
	_, _, old = x.find(at)
	if old == nil {
		spare := x.put(at) // for the directories on the way
		n.name, n.up = spare.name, spare.up
		x.drop(spare)
	} else {
		n.name, n.up = old.name, old.up
		x.cut(old)
		x.count -= old.size()
	}
	if n.up.down == nil {
		n.up.down = map[string]*node{}
	}
	n.up.down[n.name] = n
	return old
}

// walk calls do with a node and all below it.
func (n *node) walk(do func(*node)) {
	do(n)
	for _, c := range n.down {
		c.walk(do)
	}
}

// restore returns a function that gives a node its present origin again. No node is one without an origin of its own.
func (x *names) restore(at key, n *node) func() {
	var was node
	if n != nil {
		was = *n
	}
	return func() {
		n := x.put(at)
		n.is, n.was, n.link, n.over, n.ino = was.is, was.was, was.link, was.over, was.ino
		if n.is == inherited && len(n.down) == 0 {
			x.drop(n)
		}
	}
}

// The functions that note a change return one that takes the note back, if the change failed.

// create notes that the step made a file. from is what it is a hard link to, if that is original.
func (x *names) create(at key, from *key) (back func()) {
	is, _, n := x.find(at)
	back = x.restore(at, n)
	n = x.put(at)
	n.over = n.over || is == gone
	n.is, n.ino, n.link, n.was = made, 0, false, key{}
	if from != nil {
		n.link, n.was = true, *from
	}
	return back
}

// remove notes that a name is gone.
func (x *names) remove(at key) (back func()) {
	is, _, n := x.find(at)
	back = x.restore(at, n)
	if is == made && n != nil && !n.over && len(n.down) == 0 {
		x.drop(n)
		return back
	}
	n = x.put(at)
	n.is, n.over, n.link, n.ino = gone, false, false, 0
	return back
}

// move notes a rename. inos are those of the files that were at from, and at to with Exchange.
func (x *names) move(from, to key, how How, inos [2]uint64) (back func()) {
	if how == Exchange {
		a, b := x.take(from), x.take(to)
		wasA, wasB := a.over, b.over
		overA, overB := wasA || b.stands(), wasB || a.stands() // before either is changed
		x.place(a, to, inos[0], overA)
		x.place(b, from, inos[1], overB)
		return func() {
			a, b := x.take(to), x.take(from)
			x.place(a, from, inos[0], wasA)
			x.place(b, to, inos[1], wasB)
		}
	}
	is, _, old := x.find(to)
	over := is == gone || is == original && how == Replace || old != nil && old.over
	a := x.take(from)
	had := *a
	old = x.place(a, to, inos[0], over)
	left := had.is != made || had.over
	if left {
		n := x.put(from)
		n.is, n.over = gone, false
	}
	return func() {
		a := x.take(to)
		if old != nil {
			x.set(old, to)
			x.count += old.size()
		}
		if _, _, n := x.find(from); n != nil && left {
			x.drop(n)
		}
		x.place(a, from, had.ino, had.over)
	}
}

// stands reports whether what takes the place of a node that was taken takes that of what was there before the step.
func (n *node) stands() bool { return n.is == original || n.is == gone || n.is == unknown || n.over }

// take cuts a node out, after its origin is written into it.
func (x *names) take(at key) *node {
	is, was, _ := x.find(at)
	n := x.put(at)
	if n.is == inherited {
		n.is, n.was = is, was
	}
	x.cut(n)
	return n
}

// place sets a node that was taken, and returns what it takes the place of.
func (x *names) place(n *node, at key, ino uint64, over bool) (old *node) {
	old = x.set(n, at)
	n.ino = ino
	if n.is == made {
		n.over = over
		return old
	}
	n.over = false
	if n.is == original && n.was == at {
		// It is back. If its directory is where it was too, it has nothing to tell.
		n.is = inherited
		if is, was, _ := x.find(at); is != original || was != at {
			n.is = original
		}
	}
	return old
}

// lose forgets a path and all below it, because something happened there that cannot be noted.
func (x *names) lose(at key) {
	_, _, n := x.find(at)
	if n == nil {
		return
	}
	for _, c := range n.down {
		c.walk(func(*node) { x.count-- })
	}
	n.down, n.is = nil, unknown
}
