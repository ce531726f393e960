package diff

import (
	"math"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

// A search finds a short way from one sequence to another, as Myers does it
// from both ends at once, in linear space. Beyond a cost it takes a way that
// is good enough.
type search struct {
	t        *kernel.Task
	x, y     []int // classes of lines
	del, ins func(int)
	fd, bd   []int // by diagonal: how far the two searches have come
	zero     int   // the index of diagonal 0
	dear     int
}

func newSearch(t *kernel.Task, x, y []int, del, ins func(int)) *search {
	diags := len(x) + len(y) + 3
	t.Grow(2 * 8 * diags)
	s := &search{t: t, x: x, y: y, del: del, ins: ins, fd: make([]int, diags), bd: make([]int, diags), zero: len(y) + 1, dear: 1}
	for d := diags; d != 0; d >>= 2 {
		s.dear <<= 1
	}
	s.dear = max(4096, s.dear)
	return s
}

func (s *search) close() { s.t.Shrink(2 * 8 * len(s.fd)) }

type middle struct {
	x, y   int
	lo, hi bool // that half must be done exactly
}

// compare marks what differs between x[xoff:xlim] and y[yoff:ylim]. The depth
// is bounded: where halves do not shrink fast, the second is done in a loop.
func (s *search) compare(xoff, xlim, yoff, ylim int, minimal bool) {
	for {
		for xoff < xlim && yoff < ylim && s.x[xoff] == s.y[yoff] {
			xoff++
			yoff++
		}
		for xoff < xlim && yoff < ylim && s.x[xlim-1] == s.y[ylim-1] {
			xlim--
			ylim--
		}
		s.t.Step(1)
		if xoff == xlim {
			for ; yoff < ylim; yoff++ {
				s.ins(yoff)
			}
			return
		}
		if yoff == ylim {
			for ; xoff < xlim; xoff++ {
				s.del(xoff)
			}
			return
		}
		m := s.diagonal(xoff, xlim, yoff, ylim, minimal)
		s.compare(xoff, m.x, yoff, m.y, m.lo)
		xoff, yoff, minimal = m.x, m.y, m.hi
	}
}

// diagonal finds a point in the middle of a short way.
func (s *search) diagonal(xoff, xlim, yoff, ylim int, minimal bool) middle {
	fd, bd, z := s.fd, s.bd, s.zero
	dmin, dmax := xoff-ylim, xlim-yoff
	fmid, bmid := xoff-yoff, xlim-ylim
	fmin, fmax, bmin, bmax := fmid, fmid, bmid, bmid
	odd := (fmid-bmid)&1 != 0
	fd[z+fmid], bd[z+bmid] = xoff, xlim
	for c := 1; ; c++ {
		if fmin > dmin {
			fmin--
			fd[z+fmin-1] = -1
		} else {
			fmin++
		}
		if fmax < dmax {
			fmax++
			fd[z+fmax+1] = -1
		} else {
			fmax--
		}
		s.t.Step((fmax-fmin)/2 + 1)
		for d := fmax; d >= fmin; d -= 2 {
			lo, hi := fd[z+d-1], fd[z+d+1]
			x := lo + 1
			if lo < hi {
				x = hi
			}
			y := x - d
			from := x
			for x < xlim && y < ylim && s.x[x] == s.y[y] {
				x++
				y++
			}
			s.t.Step((x - from) >> 4)
			fd[z+d] = x
			if odd && bmin <= d && d <= bmax && bd[z+d] <= x {
				return middle{x, y, true, true}
			}
		}
		if bmin > dmin {
			bmin--
			bd[z+bmin-1] = math.MaxInt
		} else {
			bmin++
		}
		if bmax < dmax {
			bmax++
			bd[z+bmax+1] = math.MaxInt
		} else {
			bmax--
		}
		s.t.Step((bmax-bmin)/2 + 1)
		for d := bmax; d >= bmin; d -= 2 {
			lo, hi := bd[z+d-1], bd[z+d+1]
			x := hi - 1
			if lo < hi {
				x = lo
			}
			y := x - d
			from := x
			for xoff < x && yoff < y && s.x[x-1] == s.y[y-1] {
				x--
				y--
			}
			s.t.Step((from - x) >> 4)
			bd[z+d] = x
			if !odd && fmin <= d && d <= fmax && x <= fd[z+d] {
				return middle{x, y, true, true}
			}
		}
		if !minimal && c >= s.dear {
			return s.best(xoff, xlim, yoff, ylim, [4]int{fmin, fmax, bmin, bmax})
		}
	}
}

// best gives up the search at the point that came farthest.
func (s *search) best(xoff, xlim, yoff, ylim int, reach [4]int) middle {
	fbest, fx := -1, 0
	for d := reach[1]; d >= reach[0]; d -= 2 {
		x := min(s.fd[s.zero+d], xlim)
		y := x - d
		if ylim < y {
			x, y = ylim+d, ylim
		}
		if fbest < x+y {
			fbest, fx = x+y, x
		}
	}
	bbest, bx := math.MaxInt, 0
	for d := reach[3]; d >= reach[2]; d -= 2 {
		x := max(xoff, s.bd[s.zero+d])
		y := x - d
		if y < yoff {
			x, y = yoff+d, yoff
		}
		if x+y < bbest {
			bbest, bx = x+y, x
		}
	}
	if xlim+ylim-bbest < fbest-(xoff+yoff) {
		return middle{fx, fbest - fx, true, false}
	}
	return middle{bx, bbest - bx, false, true}
}

// flags are marks of lines, with room for one before the first and one after
// the last, which are never set.
type flags []bool

func (f flags) at(i int) bool     { return f[i+1] }
func (f flags) set(i int, v bool) { f[i+1] = v }

// changes finds the lines that differ: those of a that go and those of b that
// come. The numbers are the lines' classes.
func changes(t *kernel.Task, a, b []int, classes int, minimal bool) (gone, come flags) {
	t.Grow(len(a) + len(b) + 4)
	gone, come = make(flags, len(a)+2), make(flags, len(b)+2)
	x, xi := keepers(t, a, b, classes, gone, minimal)
	y, yi := keepers(t, b, a, classes, come, minimal)
	s := newSearch(t, x, y, func(i int) { gone.set(xi[i], true) }, func(i int) { come.set(yi[i], true) })
	s.compare(0, len(x), 0, len(y), minimal)
	s.close()
	shift(t, gone, come, a)
	shift(t, come, gone, b)
	return gone, come
}

// keepers leaves out lines that the other file does not have, or that it has
// so often that they would only mislead; those it marks as changed. It gives
// the classes that are left and where they were.
func keepers(t *kernel.Task, own, other []int, classes int, changed flags, minimal bool) (kept, index []int) {
	t.Grow(8*classes + 17*len(own))
	count := make([]int, classes)
	for _, c := range other {
		count[c]++
	}
	many := 5
	for n := len(own) / 64 >> 2; n > 0; n >>= 2 {
		many *= 2
	}
	drop := make([]byte, len(own)) // 1 is for sure, 2 is perhaps
	for i, c := range own {
		switch n := count[c]; {
		case n == 0:
			drop[i] = 1
		case n > many:
			drop[i] = 2
		}
	}
	t.Step(len(own))
	for i := 0; i < len(drop); i++ {
		switch drop[i] {
		case 2:
			drop[i] = 0
		case 1:
			i = settle(drop, i)
		}
	}
	kept, index = make([]int, 0, len(own)), make([]int, 0, len(own))
	for i, c := range own {
		if minimal || drop[i] == 0 {
			kept, index = append(kept, c), append(index, i)
		} else {
			changed.set(i, true)
		}
	}
	t.Shrink(8*classes + 17*len(own))
	return kept, index
}

// settle decides about a run of lines that may be dropped, which begins at i,
// and gives its last line.
func settle(drop []byte, i int) int {
	perhaps := 0
	j := i
	for ; j < len(drop) && drop[j] != 0; j++ {
		if drop[j] == 2 {
			perhaps++
		}
	}
	for j > i && drop[j-1] == 2 {
		j--
		drop[j] = 0
		perhaps--
	}
	length := j - i
	if perhaps*4 > length {
		for j > i {
			if j--; drop[j] == 2 {
				drop[j] = 0
			}
		}
		return i
	}
	least := 1
	for n := length >> 2 >> 2; n > 0; n >>= 2 {
		least <<= 1
	}
	least++
	run := drop[i : i+length]
	for k, row := 0, 0; k < length; k++ {
		if run[k] != 2 {
			row = 0
			continue
		}
		row++
		switch {
		case row == least:
			k -= row
		case row > least:
			run[k] = 0
		}
	}
	edge(length, func(k int) *byte { return &run[k] })
	edge(length, func(k int) *byte { return &run[length-1-k] })
	return i + length - 1
}

// edge keeps what is perhaps to be dropped near an end of a run.
func edge(length int, at func(int) *byte) {
	row := 0
	for k := range length {
		d := at(k)
		if k >= 8 && *d == 1 {
			return
		}
		switch *d {
		case 2:
			row, *d = 0, 0
		case 0:
			row = 0
		default:
			row++
		}
		if row == 3 {
			return
		}
	}
}

// shift moves runs of changes so that they meet changes of the other file, and
// otherwise as far down as they go.
func shift(t *kernel.Task, changed, other flags, class []int) {
	end := len(class)
	i, j := 0, 0
	for {
		for i < end && !changed.at(i) {
			for other.at(j) {
				j++
			}
			j++
			i++
		}
		if i == end {
			return
		}
		start := i
		for i++; changed.at(i); i++ {
		}
		for other.at(j) {
			j++
		}
		meeting := end
		for {
			t.Step(1)
			length := i - start
			for start > 0 && class[start-1] == class[i-1] {
				start--
				changed.set(start, true)
				i--
				changed.set(i, false)
				for changed.at(start - 1) {
					start--
				}
				for j--; other.at(j); j-- {
				}
				t.Step(1)
			}
			meeting = end
			if other.at(j - 1) {
				meeting = i
			}
			for i != end && class[start] == class[i] {
				changed.set(start, false)
				start++
				changed.set(i, true)
				i++
				for changed.at(i) {
					i++
				}
				for j++; other.at(j); j++ {
					meeting = i
				}
				t.Step(1)
			}
			if length == i-start {
				break
			}
		}
		for meeting < i {
			start--
			changed.set(start, true)
			i--
			changed.set(i, false)
			for j--; other.at(j); j-- {
			}
		}
	}
}
