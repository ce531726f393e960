package vfs

// fanBits is how many bits of a key one level of a trie takes.
const fanBits = 5

const fan = 1 << fanBits

// A trie is a persistent map from small numbers to pointers. A copy of the
// struct is a copy of the map, in constant time: whoever changes one names the
// token that it owns, and what belongs to another token is copied, a branch at
// a time. Reading changes nothing, so any number may read at once.
type trie[T any] struct {
	root  *branch[T]
	above int // levels above the leaves
}

// A branch holds either kids or, at the lowest level, values; both may be
// shorter than fan.
type branch[T any] struct {
	owner *token
	kids  []*branch[T]
	vals  []*T
}

// get gives the value of a key, or nil.
func (t *trie[T]) get(key uint64) *T {
	b := t.root
	if b == nil || key>>(fanBits*(t.above+1)) != 0 {
		return nil
	}
	for level := t.above; level > 0; level-- {
		i := key >> (fanBits * level) % fan
		if i >= uint64(len(b.kids)) {
			return nil
		}
		if b = b.kids[i]; b == nil {
			return nil
		}
	}
	if i := key % fan; i < uint64(len(b.vals)) {
		return b.vals[i]
	}
	return nil
}

// set sets the value of a key.
func (t *trie[T]) set(o *token, key uint64, v *T) {
	if t.root == nil {
		t.root = &branch[T]{owner: o}
		for key>>(fanBits*(t.above+1)) != 0 {
			t.above++
		}
	}
	for key>>(fanBits*(t.above+1)) != 0 {
		t.root = &branch[T]{owner: o, kids: []*branch[T]{t.root}}
		t.above++
	}
	t.root = t.root.own(o)
	b := t.root
	for level := t.above; level > 0; level-- {
		i := int(key >> (fanBits * level) % fan)
		b.kids = lengthen(b.kids, i+1)
		if b.kids[i] == nil {
			b.kids[i] = &branch[T]{owner: o}
		} else {
			b.kids[i] = b.kids[i].own(o)
		}
		b = b.kids[i]
	}
	i := int(key % fan)
	b.vals = lengthen(b.vals, i+1)
	b.vals[i] = v
}

// lengthen makes s at least n long. It grows in the steps of what the
// allocator gives, but never beyond fan.
func lengthen[E any](s []E, n int) []E {
	if n <= len(s) {
		return s
	}
	if n <= cap(s) {
		return s[:n]
	}
	c := min(max(2*cap(s), n), fan)
	grown := make([]E, n, c)
	copy(grown, s)
	return grown
}

func (b *branch[T]) own(o *token) *branch[T] {
	if b.owner == o {
		return b
	}
	return &branch[T]{owner: o, kids: append([]*branch[T](nil), b.kids...), vals: append([]*T(nil), b.vals...)}
}

// remove takes a key out, and the branches that it leaves empty.
func (t *trie[T]) remove(o *token, key uint64) {
	if t.get(key) == nil {
		return
	}
	if t.root = t.root.remove(o, t.above, key); t.root == nil {
		t.above = 0
	}
}

func (b *branch[T]) remove(o *token, level int, key uint64) *branch[T] {
	b = b.own(o)
	i := int(key >> (fanBits * level) % fan)
	if level > 0 {
		b.kids[i] = b.kids[i].remove(o, level-1, key)
	} else {
		b.vals[i] = nil
	}
	return b.trimmed()
}

// trimmed drops nils from a branch's end, and the branch if nothing is left.
func (b *branch[T]) trimmed() *branch[T] {
	for len(b.kids) > 0 && b.kids[len(b.kids)-1] == nil {
		b.kids = b.kids[:len(b.kids)-1]
	}
	for len(b.vals) > 0 && b.vals[len(b.vals)-1] == nil {
		b.vals = b.vals[:len(b.vals)-1]
	}
	if len(b.kids) == 0 && len(b.vals) == 0 {
		return nil
	}
	return b
}

// cut takes out all keys from least on and tells each value.
func (t *trie[T]) cut(o *token, least uint64, gone func(*T)) {
	if t.root == nil || least>>(fanBits*(t.above+1)) != 0 {
		return
	}
	if t.root = t.root.cut(o, t.above, least, gone); t.root == nil {
		t.above = 0
	}
}

func (b *branch[T]) cut(o *token, level int, least uint64, gone func(*T)) *branch[T] {
	first := int(least >> (fanBits * level) % fan)
	if first >= len(b.kids) && first >= len(b.vals) {
		return b
	}
	b = b.own(o)
	for i := first; i < len(b.vals); i++ {
		if b.vals[i] != nil {
			gone(b.vals[i])
			b.vals[i] = nil
		}
	}
	for i := first; i < len(b.kids); i++ {
		if b.kids[i] == nil {
			continue
		}
		from := uint64(0)
		if i == first {
			from = least & (1<<(fanBits*level) - 1)
		}
		b.kids[i] = b.kids[i].cut(o, level-1, from, gone)
	}
	return b.trimmed()
}

// each tells all keys and values in order, until yield says no.
func (t *trie[T]) each(yield func(uint64, *T) bool) { t.from(0, yield) }

// from is each for the keys from least on.
func (t *trie[T]) from(least uint64, yield func(uint64, *T) bool) {
	if t.root != nil && least>>(fanBits*(t.above+1)) == 0 {
		t.root.from(t.above, 0, least, yield)
	}
}

func (b *branch[T]) from(level int, base, least uint64, yield func(uint64, *T) bool) bool {
	first := uint64(0)
	if least > base {
		first = (least - base) >> (fanBits * level)
	}
	for i := first; i < uint64(len(b.vals)); i++ {
		if b.vals[i] != nil && !yield(base+i, b.vals[i]) {
			return false
		}
	}
	for i := first; i < uint64(len(b.kids)); i++ {
		if b.kids[i] != nil && !b.kids[i].from(level-1, base+i<<(fanBits*level), least, yield) {
			return false
		}
	}
	return true
}

// differ tells each key whose values differ between two tries, in order; one
// of them may be nil. It does not look into what both share, so it takes time
// by the change and not by the size.
func differ[T any](a, b *trie[T], yield func(key uint64, x, y *T)) {
	above := max(a.above, b.above)
	ra, rb := a.root.raised(above-a.above), b.root.raised(above-b.above)
	differBranch(above, 0, ra, rb, yield)
}

// raised puts n levels above a branch.
func (b *branch[T]) raised(n int) *branch[T] {
	if b == nil {
		return nil
	}
	for range n {
		b = &branch[T]{kids: []*branch[T]{b}}
	}
	return b
}

func differBranch[T any](level int, base uint64, a, b *branch[T], yield func(uint64, *T, *T)) {
	if a == b {
		return
	}
	var none branch[T]
	if a == nil {
		a = &none
	}
	if b == nil {
		b = &none
	}
	if level == 0 {
		for i := range max(len(a.vals), len(b.vals)) {
			if x, y := at(a.vals, i), at(b.vals, i); x != y {
				yield(base+uint64(i), x, y)
			}
		}
		return
	}
	for i := range max(len(a.kids), len(b.kids)) {
		differBranch(level-1, base+uint64(i)<<(fanBits*level), at(a.kids, i), at(b.kids, i), yield)
	}
}

func at[T any](s []*T, i int) *T {
	if i < len(s) {
		return s[i]
	}
	return nil
}
