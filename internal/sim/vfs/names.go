package vfs

import "sort"

// names is a persistent map from names to file numbers, in order of bytes: the
// entries of a directory. Copying and owning are as of a trie. The number 0 is
// a value like others.
type names struct {
	root *leaf
	n    int
}

// leafSize is how many names one leaf holds at most, and children a node.
const leafSize = 32

// A leaf holds names with their numbers; with kids it is a node above, and
// its names are each the least of the kid (that of the first may be lower).
type leaf struct {
	owner *token
	keys  []string
	inos  []Ino
	kids  []*leaf
}

func (l *leaf) own(o *token) *leaf {
	if l.owner == o {
		return l
	}
	return &leaf{
		owner: o, keys: append([]string(nil), l.keys...),
		inos: append([]Ino(nil), l.inos...), kids: append([]*leaf(nil), l.kids...),
	}
}

// find gives the place of a name in a leaf, or where it would be.
func (l *leaf) find(name string) (int, bool) {
	lo, hi := 0, len(l.keys)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if l.keys[mid] < name {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, lo < len(l.keys) && l.keys[lo] == name
}

// kid gives the place of the child that a name belongs to.
func (l *leaf) kid(name string) int {
	i, same := l.find(name)
	if !same && i > 0 {
		i--
	}
	return i
}

func (t *names) get(name string) (Ino, bool) {
	l := t.root
	if l == nil {
		return 0, false
	}
	for l.kids != nil {
		l = l.kids[l.kid(name)]
	}
	if i, ok := l.find(name); ok {
		return l.inos[i], true
	}
	return 0, false
}

// set gives a name a number and tells whether the name is new.
func (t *names) set(o *token, name string, ino Ino) bool {
	if t.root == nil {
		t.root = &leaf{owner: o}
	}
	t.root = t.root.own(o)
	added, right := t.root.set(o, name, ino)
	if right != nil {
		left := t.root
		t.root = &leaf{owner: o, keys: []string{left.keys[0], right.keys[0]}, kids: []*leaf{left, right}}
	}
	if added {
		t.n++
	}
	return added
}

// set changes an owned leaf. What no longer fits goes into a new one on its
// right.
func (l *leaf) set(o *token, name string, ino Ino) (added bool, right *leaf) {
	if l.kids == nil {
		i, same := l.find(name)
		if same {
			l.inos[i] = ino
			return false, nil
		}
		l.keys, l.inos = insert(l.keys, i, name), insert(l.inos, i, ino)
		return true, l.split(o, i)
	}
	i := l.kid(name)
	l.kids[i] = l.kids[i].own(o)
	added, extra := l.kids[i].set(o, name, ino)
	if i == 0 && name < l.keys[0] {
		l.keys[0] = name
	}
	if extra == nil {
		return added, nil
	}
	l.keys, l.kids = insert(l.keys, i+1, extra.keys[0]), insert(l.kids, i+1, extra)
	return added, l.split(o, i+1)
}

// split moves the upper part of a leaf that is too long into a new one. last
// is where something was put in: names that come in order leave full leaves.
func (l *leaf) split(o *token, last int) *leaf {
	if len(l.keys) <= leafSize {
		return nil
	}
	at := len(l.keys) / 2
	if last == len(l.keys)-1 {
		at = last
	}
	right := &leaf{owner: o, keys: append([]string(nil), l.keys[at:]...)}
	if l.kids != nil {
		right.kids = append([]*leaf(nil), l.kids[at:]...)
		clear(l.kids[at:])
		l.kids = l.kids[:at]
	} else {
		right.inos = append([]Ino(nil), l.inos[at:]...)
		l.inos = l.inos[:at]
	}
	clear(l.keys[at:])
	l.keys = l.keys[:at]
	return right
}

func insert[E any](s []E, i int, e E) []E {
	if len(s) == cap(s) {
		grown := make([]E, len(s), min(max(2*cap(s), 4), leafSize+1))
		copy(grown, s)
		s = grown
	}
	s = append(s, e)
	copy(s[i+1:], s[i:])
	s[i] = e
	return s
}

func drop[E any](s []E, i int) []E {
	var none E
	copy(s[i:], s[i+1:])
	s[len(s)-1] = none
	return s[:len(s)-1]
}

// remove takes a name out and tells whether it was there.
func (t *names) remove(o *token, name string) bool {
	if _, ok := t.get(name); !ok {
		return false
	}
	t.root = t.root.own(o)
	if t.root.remove(o, name) {
		t.root = nil
	}
	for t.root != nil && len(t.root.kids) == 1 {
		t.root = t.root.kids[0]
	}
	t.n--
	return true
}

// remove changes an owned leaf and tells whether it is empty now.
func (l *leaf) remove(o *token, name string) bool {
	if l.kids == nil {
		i, _ := l.find(name)
		l.keys, l.inos = drop(l.keys, i), drop(l.inos, i)
		return len(l.keys) == 0
	}
	i := l.kid(name)
	l.kids[i] = l.kids[i].own(o)
	if l.kids[i].remove(o, name) {
		l.keys, l.kids = drop(l.keys, i), drop(l.kids, i)
	}
	return len(l.kids) == 0
}

// after tells the entries whose names are greater than least ("" is all), in
// order, until yield says no.
func (t *names) after(least string, yield func(string, Ino) bool) {
	if t.root != nil {
		t.root.after(least, yield)
	}
}

func (l *leaf) after(least string, yield func(string, Ino) bool) bool {
	if l.kids != nil {
		first := 0
		if least != "" {
			first = l.kid(least)
		}
		for _, k := range l.kids[first:] {
			if !k.after(least, yield) {
				return false
			}
		}
		return true
	}
	first := sort.Search(len(l.keys), func(i int) bool { return l.keys[i] > least })
	for i := first; i < len(l.keys); i++ {
		if !yield(l.keys[i], l.inos[i]) {
			return false
		}
	}
	return true
}

// leaves gives the lowest leaves in order, as many as there are.
func (l *leaf) leaves(into []*leaf) []*leaf {
	if l == nil {
		return into
	}
	if l.kids == nil {
		return append(into, l)
	}
	for _, k := range l.kids {
		into = k.leaves(into)
	}
	return into
}

// differNames tells each name whose numbers differ between two directories, in
// order. Leaves that both share are passed over.
func differNames(a, b *names, yield func(name string, x, y Ino, inX, inY bool)) {
	if a.root == b.root {
		return
	}
	p, q := cursor{list: a.root.leaves(nil)}, cursor{list: b.root.leaves(nil)}
	for {
		for p.i == 0 && q.i == 0 && p.has() && q.has() && p.list[0] == q.list[0] {
			p.list, q.list = p.list[1:], q.list[1:]
		}
		switch {
		case !p.has() && !q.has():
			return
		case !q.has() || p.has() && p.name() < q.name():
			yield(p.name(), p.ino(), 0, true, false)
			p.next()
		case !p.has() || q.name() < p.name():
			yield(q.name(), 0, q.ino(), false, true)
			q.next()
		default:
			if p.ino() != q.ino() {
				yield(p.name(), p.ino(), q.ino(), true, true)
			}
			p.next()
			q.next()
		}
	}
}

// A cursor stands at an entry.
type cursor struct {
	list []*leaf
	i    int
}

func (c *cursor) has() bool    { return len(c.list) > 0 }
func (c *cursor) name() string { return c.list[0].keys[c.i] }
func (c *cursor) ino() Ino     { return c.list[0].inos[c.i] }

func (c *cursor) next() {
	if c.i++; c.i == len(c.list[0].keys) {
		c.list, c.i = c.list[1:], 0
	}
}
