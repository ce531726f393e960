package variable

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
)

// An Assoc is the elements of an associative array. It has the order of a hash
// table with chains, new keys at the head of theirs, that starts with 1024
// chains and quadruples when there are twice as many keys as chains; that turns
// every chain over.
type Assoc struct {
	index   map[string]int32
	list    []pair
	free    []int32 // of list
	next    int64
	buckets uint32
	order   atomic.Pointer[[]int32] // of list, or nil if not known
	size    int
	shared  bool
}

type pair struct {
	key, value string
	hash       uint32
	rank       int64 // in its chain, the greatest first
}

const (
	firstBuckets = 1024
	pairSize     = 96
)

// NewAssoc makes an empty associative array.
func NewAssoc() *Assoc {
	return &Assoc{buckets: firstBuckets}
}

// Chained orders names as a hash table with so many chains does, for one that
// does not grow.
func Chained(names []string, chains uint32) {
	slices.SortFunc(names, func(a, b string) int {
		if x, y := hash(a)%chains, hash(b)%chains; x != y {
			return int(x) - int(y)
		}
		return strings.Compare(a, b)
	})
}

func hash(s string) uint32 {
	h := uint32(2166136261)
	for i := range len(s) {
		h *= 16777619
		h ^= uint32(int32(int8(s[i])))
	}
	return h
}

// share gives an array with the same elements, for when a is not changed any
// more.
func (a *Assoc) share() *Assoc {
	return &Assoc{
		index: a.index, list: a.list, free: a.free, next: a.next, buckets: a.buckets, size: a.size, shared: true,
	}
}

func (a *Assoc) own() {
	if !a.shared {
		return
	}
	a.shared = false
	a.index = maps.Clone(a.index)
	a.list = slices.Clone(a.list)
	a.free = slices.Clone(a.free)
	a.order.Store(nil)
}

// Len returns how many elements there are.
func (a *Assoc) Len() int { return len(a.index) }

// Get returns an element.
func (a *Assoc) Get(key string) (string, bool) {
	i, ok := a.index[key]
	if !ok {
		return "", false
	}
	return a.list[i].value, true
}

// value is Get of an array that may be nil.
func (a *Assoc) value(key string) string {
	if a == nil {
		return ""
	}
	s, _ := a.Get(key)
	return s
}

// All returns the elements in order.
func (a *Assoc) All() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, i := range a.sorted() {
			if !yield(a.list[i].key, a.list[i].value) {
				return
			}
		}
	}
}

func (a *Assoc) sorted() []int32 {
	if o := a.order.Load(); o != nil {
		return *o
	}
	order := make([]int32, 0, len(a.index))
	for _, i := range a.index {
		order = append(order, i)
	}
	mask := a.buckets - 1
	slices.SortFunc(order, func(i, k int32) int {
		x, y := &a.list[i], &a.list[k]
		switch bx, by := x.hash&mask, y.hash&mask; {
		case bx < by:
			return -1
		case bx > by:
			return 1
		case x.rank > y.rank:
			return -1
		}
		return 1
	})
	a.order.Store(&order)
	return order
}

// put sets an element and tells by how much the array grew.
func (a *Assoc) put(key, value string) int {
	a.own()
	if i, ok := a.index[key]; ok {
		p := &a.list[i]
		n := len(value) - len(p.value)
		p.value = value
		a.size += n
		return n
	}
	if a.index == nil {
		a.index = map[string]int32{}
	}
	if uint32(len(a.index)) >= 2*a.buckets {
		a.turn()
	}
	p := pair{key: key, value: value, hash: hash(key), rank: a.next}
	a.next++
	i := int32(len(a.list))
	if n := len(a.free); n > 0 {
		i = a.free[n-1]
		a.free = a.free[:n-1]
		a.list[i] = p
	} else {
		a.list = append(a.list, p)
	}
	a.index[key] = i
	a.order.Store(nil)
	n := pairSize + len(key) + len(value)
	a.size += n
	return n
}

// turn grows the table.
func (a *Assoc) turn() {
	a.buckets *= 4
	for i := range a.list {
		a.list[i].rank = a.next - a.list[i].rank
	}
	a.next++
}

// remove unsets an element and tells by how much the array grew.
func (a *Assoc) remove(key string) int {
	i, ok := a.index[key]
	if !ok {
		return 0
	}
	a.own()
	n := pairSize + len(key) + len(a.list[i].value)
	delete(a.index, key)
	a.list[i] = pair{}
	a.free = append(a.free, i)
	a.order.Store(nil)
	a.size -= n
	return -n
}
