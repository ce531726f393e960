package variable

import (
	"iter"
	"maps"
	"slices"
	"sync/atomic"
)

// hole stands for an element that is not set; no value holds a NUL.
const hole = "\x00"

// elementSize is what an element takes beside its text.
const elementSize = 16

// maxGap is how far beyond its end an array is filled with holes.
const maxGap = 1024

// An Array is the elements of an indexed array. Almost all are dense; one with
// great gaps is kept as a map.
type Array struct {
	dense  []string                // holes included
	sparse map[int64]string        // instead of dense
	keys   atomic.Pointer[[]int64] // of sparse in order, or nil if not known
	count  int
	size   int
	shared bool // elements are others' too: copy before changing one
}

// NewArray makes an array of values without gaps. The array keeps the slice.
func NewArray(values []string) *Array {
	a := &Array{dense: values, count: len(values)}
	for i, v := range values {
		if v == hole {
			values[i] = ""
		}
		a.size += len(v) + elementSize
	}
	return a
}

// share gives an array with the same elements, for when a is not changed any
// more. With mine, it takes over the right to append behind them in place.
func (a *Array) share(mine bool) *Array {
	c := &Array{dense: a.dense, sparse: a.sparse, count: a.count, size: a.size, shared: true}
	if !mine {
		c.dense = a.dense[:len(a.dense):len(a.dense)]
	}
	return c
}

// Len returns how many elements are set.
func (a *Array) Len() int { return a.count }

// End is one more than the greatest index.
func (a *Array) End() int64 {
	if a.sparse != nil {
		k := a.order()
		if len(k) == 0 {
			return 0
		}
		return k[len(k)-1] + 1
	}
	return int64(len(a.dense))
}

// Dense returns the elements if they have no gaps. It is not to be changed.
func (a *Array) Dense() ([]string, bool) {
	return a.dense, a.sparse == nil && a.count == len(a.dense)
}

// Get returns an element.
func (a *Array) Get(i int64) (string, bool) {
	if a.sparse != nil {
		v, ok := a.sparse[i]
		return v, ok
	}
	if i < 0 || i >= int64(len(a.dense)) || a.dense[i] == hole {
		return "", false
	}
	return a.dense[i], true
}

// All returns the elements in order.
func (a *Array) All() iter.Seq2[int64, string] {
	return func(yield func(int64, string) bool) {
		if a.sparse != nil {
			for _, k := range a.order() {
				if !yield(k, a.sparse[k]) {
					return
				}
			}
			return
		}
		for i, v := range a.dense {
			if v != hole && !yield(int64(i), v) {
				return
			}
		}
	}
}

// Values returns the elements in order, in a slice of their own or not: it is
// not to be changed.
func (a *Array) Values() []string {
	if d, ok := a.Dense(); ok {
		return d
	}
	list := make([]string, 0, a.count)
	for _, v := range a.All() {
		list = append(list, v)
	}
	return list
}

func (a *Array) order() []int64 {
	if k := a.keys.Load(); k != nil {
		return *k
	}
	keys := slices.Sorted(maps.Keys(a.sparse))
	a.keys.Store(&keys)
	return keys
}

// own makes the elements a's alone.
func (a *Array) own() {
	if !a.shared {
		return
	}
	a.shared = false
	a.dense = append(make([]string, 0, len(a.dense)+len(a.dense)/4+4), a.dense...)
	if a.sparse != nil {
		a.sparse = maps.Clone(a.sparse)
	}
}

// put sets an element and tells by how much the array grew.
func (a *Array) put(i int64, v string) int {
	if v == hole {
		v = ""
	}
	before := a.size
	if a.sparse == nil && i > int64(len(a.dense))+maxGap && i > 2*int64(len(a.dense)) {
		a.own()
		a.toSparse()
	}
	switch {
	case a.sparse != nil:
		a.own()
		old, ok := a.sparse[i]
		if ok {
			a.size -= len(old)
		} else {
			a.count++
			a.size += 4 * elementSize
			a.insert(i)
		}
		a.sparse[i] = v
	case i >= int64(len(a.dense)):
		for int64(len(a.dense)) < i {
			a.dense = append(a.dense, hole)
			a.size += elementSize
		}
		a.dense = append(a.dense, v)
		a.count++
		a.size += elementSize
	default:
		a.own()
		if old := a.dense[i]; old == hole {
			a.count++
		} else {
			a.size -= len(old)
		}
		a.dense[i] = v
	}
	a.size += len(v)
	return a.size - before
}

// insert keeps the order where i comes last.
func (a *Array) insert(i int64) {
	k := a.keys.Load()
	if k == nil {
		return
	}
	if n := len(*k); n > 0 && (*k)[n-1] > i {
		a.keys.Store(nil)
		return
	}
	*k = append(*k, i)
}

func (a *Array) toSparse() {
	a.sparse = make(map[int64]string, a.count+1)
	for i, v := range a.dense {
		if v != hole {
			a.sparse[int64(i)] = v
		}
	}
	a.size += (4*a.count - len(a.dense)) * elementSize
	a.dense = nil
	a.keys.Store(nil)
}

// remove unsets an element and tells by how much the array grew.
func (a *Array) remove(i int64) int {
	before := a.size
	old, ok := a.Get(i)
	if !ok {
		return 0
	}
	a.count--
	a.size -= len(old)
	if a.sparse != nil {
		a.own()
		delete(a.sparse, i)
		a.keys.Store(nil)
		a.size -= 4 * elementSize
		return a.size - before
	}
	if i == int64(len(a.dense))-1 && !a.shared {
		n := len(a.dense) - 1
		for n > 0 && a.dense[n-1] == hole {
			n--
		}
		a.size -= (len(a.dense) - n) * elementSize
		clear(a.dense[n:])
		a.dense = a.dense[:n]
		return a.size - before
	}
	a.own()
	a.dense[i] = hole
	n := len(a.dense)
	for n > 0 && a.dense[n-1] == hole {
		n--
	}
	a.size -= (len(a.dense) - n) * elementSize
	a.dense = a.dense[:n]
	return a.size - before
}
