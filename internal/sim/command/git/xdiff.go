package git

import (
	"math"
	"strings"
)

// A comparison of two lists of lines, as git's own does it: the same choice
// among the shortest scripts, and the same place for a change that could stand
// at several.
type comparison struct {
	w        *work
	a, b     text
	fwd, bwd []int // furthest points of each diagonal
	zero     int   // where diagonal 0 is in them
	limit    int   // of the cost of one search
}

// A text is one side: its lines, equal lines having one number.
type text struct {
	lines   []string
	ids     []int
	kept    []int // of the lines that are searched, their places
	hash    []int // and their numbers
	changed []bool
}

func splitLines(s string) []string {
	var out []string
	for len(s) > 0 {
		n := strings.IndexByte(s, '\n') + 1
		if n == 0 {
			n = len(s)
		}
		out = append(out, s[:n])
		s = s[n:]
	}
	return out
}

// lines compares two texts.
func (w *work) lines(x, y string) []line {
	w.t.Step(1 + (len(x)+len(y))/16)
	c := w.compare(splitLines(x), splitLines(y))
	out := make([]line, 0, len(c.a.lines)+8)
	i, j := 0, 0
	for i < len(c.a.lines) || j < len(c.b.lines) {
		switch {
		case i < len(c.a.lines) && c.a.changed[i]:
			out = append(out, line{'-', c.a.lines[i]})
			i++
		case j < len(c.b.lines) && c.b.changed[j]:
			out = append(out, line{'+', c.b.lines[j]})
			j++
		default:
			out = append(out, line{' ', c.a.lines[i]})
			i++
			j++
		}
	}
	return out
}

// compare finds which lines changed.
func (w *work) compare(x, y []string) *comparison {
	w.t.Grow(48 * (len(x) + len(y)))
	ids := map[string]int{}
	number := func(lines []string) text {
		t := text{lines: lines, ids: make([]int, len(lines)), changed: make([]bool, len(lines))}
		for i, l := range lines {
			id, ok := ids[l]
			if !ok {
				id = len(ids)
				ids[l] = id
			}
			t.ids[i] = id
		}
		return t
	}
	c := &comparison{w: w, a: number(x), b: number(y)}
	c.trim(len(ids))
	diagonals := len(c.a.hash) + len(c.b.hash) + 3
	c.zero = len(c.b.hash) + 1
	c.fwd, c.bwd = make([]int, diagonals+1), make([]int, diagonals+1)
	c.limit = max(int(math.Sqrt(float64(diagonals))), 256)
	c.search(0, len(c.a.hash), 0, len(c.b.hash), 0)
	compact(w, &c.a, &c.b)
	compact(w, &c.b, &c.a)
	return c
}

// trim leaves the equal ends out of the search, and lines that the other side
// has not.
func (c *comparison) trim(ids int) {
	a, b := &c.a, &c.b
	first, n, m := 0, len(a.ids), len(b.ids)
	for first < n && first < m && a.ids[first] == b.ids[first] {
		first++
	}
	for n > first && m > first && a.ids[n-1] == b.ids[m-1] {
		n--
		m--
	}
	inA, inB := make([]bool, ids), make([]bool, ids)
	for _, id := range a.ids[first:n] {
		inA[id] = true
	}
	for _, id := range b.ids[first:m] {
		inB[id] = true
	}
	keep := func(t *text, end int, other []bool) {
		for i := first; i < end; i++ {
			if other[t.ids[i]] {
				t.kept, t.hash = append(t.kept, i), append(t.hash, t.ids[i])
			} else {
				t.changed[i] = true
			}
		}
	}
	keep(a, n, inB)
	keep(b, m, inA)
}

// search marks the changed lines of a box.
func (c *comparison) search(x0, x1, y0, y1, depth int) {
	a, b := c.a.hash, c.b.hash
	for x0 < x1 && y0 < y1 && a[x0] == b[y0] {
		x0++
		y0++
	}
	for x0 < x1 && y0 < y1 && a[x1-1] == b[y1-1] {
		x1--
		y1--
	}
	switch {
	case x0 == x1 || depth > 400: // what is nested that deep is all new
		for ; y0 < y1; y0++ {
			c.b.changed[c.b.kept[y0]] = true
		}
		for ; x0 < x1; x0++ {
			c.a.changed[c.a.kept[x0]] = true
		}
	case y0 == y1:
		for ; x0 < x1; x0++ {
			c.a.changed[c.a.kept[x0]] = true
		}
	default:
		x, y := c.middle(x0, x1, y0, y1)
		c.search(x0, x, y0, y, depth+1)
		c.search(x, x1, y, y1, depth+1)
	}
}

// middle finds a point of a shortest path through a box, from both ends.
func (c *comparison) middle(x0, x1, y0, y1 int) (x, y int) {
	a, b, f, g, z := c.a.hash, c.b.hash, c.fwd, c.bwd, c.zero
	least, most := x0-y1, x1-y0
	fmid, gmid := x0-y0, x1-y1
	odd := (fmid-gmid)&1 != 0
	fmin, fmax, gmin, gmax := fmid, fmid, gmid, gmid
	f[z+fmid], g[z+gmid] = x0, x1
	const far = math.MaxInt
	for cost := 1; ; cost++ {
		c.w.t.Step(1 + (fmax-fmin)/4)
		if fmin > least {
			fmin--
			f[z+fmin-1] = -1
		} else {
			fmin++
		}
		if fmax < most {
			fmax++
			f[z+fmax+1] = -1
		} else {
			fmax--
		}
		for d := fmax; d >= fmin; d -= 2 {
			i := f[z+d+1]
			if f[z+d-1] >= i {
				i = f[z+d-1] + 1
			}
			j := i - d
			for i < x1 && j < y1 && a[i] == b[j] {
				i++
				j++
			}
			f[z+d] = i
			if odd && gmin <= d && d <= gmax && g[z+d] <= i {
				return i, j
			}
		}
		if gmin > least {
			gmin--
			g[z+gmin-1] = far
		} else {
			gmin++
		}
		if gmax < most {
			gmax++
			g[z+gmax+1] = far
		} else {
			gmax--
		}
		for d := gmax; d >= gmin; d -= 2 {
			i := g[z+d-1]
			if i >= g[z+d+1] {
				i = g[z+d+1] - 1
			}
			j := i - d
			for i > x0 && j > y0 && a[i-1] == b[j-1] {
				i--
				j--
			}
			g[z+d] = i
			if !odd && fmin <= d && d <= fmax && i <= f[z+d] {
				return i, j
			}
		}
		if cost < c.limit {
			continue
		}
		// Too costly: the point that got furthest will do.
		best, bx, by := -1, x0, y0
		for d := fmax; d >= fmin; d -= 2 {
			i := min(f[z+d], x1)
			j := i - d
			if j > y1 {
				i, j = y1+d, y1
			}
			if i+j > best && i >= x0 && j >= y0 {
				best, bx, by = i+j, i, j
			}
		}
		back, gx, gy := math.MaxInt, x1, y1
		for d := gmax; d >= gmin; d -= 2 {
			i := max(g[z+d], x0)
			j := i - d
			if j < y0 {
				i, j = y0+d, y0
			}
			if i+j < back && i <= x1 && j <= y1 {
				back, gx, gy = i+j, i, j
			}
		}
		if x1+y1-back < best-(x0+y0) {
			return bx, by
		}
		return gx, gy
	}
}

// A group is a run of changed lines, perhaps none, before an unchanged one.
type group struct{ start, end int }

func (t *text) first() group {
	g := group{}
	for g.end < len(t.changed) && t.changed[g.end] {
		g.end++
	}
	return g
}

func (t *text) next(g *group) bool {
	if g.end == len(t.changed) {
		return false
	}
	g.start = g.end + 1
	for g.end = g.start; g.end < len(t.changed) && t.changed[g.end]; {
		g.end++
	}
	return true
}

func (t *text) previous(g *group) bool {
	if g.start == 0 {
		return false
	}
	g.end = g.start - 1
	for g.start = g.end; g.start > 0 && t.changed[g.start-1]; {
		g.start--
	}
	return true
}

func (t *text) up(g *group) bool {
	if g.start == 0 || t.ids[g.start-1] != t.ids[g.end-1] {
		return false
	}
	g.start--
	g.end--
	t.changed[g.start], t.changed[g.end] = true, false
	for g.start > 0 && t.changed[g.start-1] {
		g.start--
	}
	return true
}

func (t *text) down(g *group) bool {
	if g.end == len(t.ids) || t.ids[g.start] != t.ids[g.end] {
		return false
	}
	t.changed[g.start], t.changed[g.end] = false, true
	g.start++
	g.end++
	for g.end < len(t.changed) && t.changed[g.end] {
		g.end++
	}
	return true
}

// maxSliding bounds how far a group's best place is looked for.
const maxSliding = 100

// compact slides groups together and to where a reader expects them.
func compact(w *work, t, other *text) {
	g, o := t.first(), other.first()
	for {
		if g.start != g.end {
			settle(w, t, other, &g, &o)
		}
		if !t.next(&g) || !other.next(&o) {
			return
		}
	}
}

func settle(w *work, t, other *text, g, o *group) {
	var size, earliest, matching int
	for {
		size, matching = g.end-g.start, -1
		for t.up(g) {
			w.t.Step(1)
			other.previous(o)
		}
		earliest = g.end
		if o.end > o.start {
			matching = g.end
		}
		for t.down(g) {
			w.t.Step(1)
			other.next(o)
			if o.end > o.start {
				matching = g.end
			}
		}
		if size == g.end-g.start {
			break
		}
	}
	switch {
	case g.end == earliest:
	case matching != -1:
		for o.end == o.start {
			if !t.up(g) || !other.previous(o) {
				return
			}
		}
	default:
		from := max(earliest, g.end-size-1, g.end-maxSliding)
		best, where := score{}, -1
		for at := from; at <= g.end; at++ {
			w.t.Step(4)
			var s score
			s.add(t, at)
			s.add(t, at-size)
			if where == -1 || s.compare(best) <= 0 {
				best, where = s, at
			}
		}
		for g.end > where {
			if !t.up(g) || !other.previous(o) {
				return
			}
		}
	}
}

// A score says how bad it is to split a text at some places.
type score struct{ indent, penalty int }

func (s score) compare(o score) int {
	c := 0
	switch {
	case s.indent > o.indent:
		c = 1
	case s.indent < o.indent:
		c = -1
	}
	return 60*c + s.penalty - o.penalty
}

// indent gives the width of a line's blanks, -1 of one that has nothing else.
func (t *text) indent(i int) int {
	n := 0
	for _, c := range []byte(t.lines[i]) {
		switch c {
		case ' ':
			n++
		case '\t':
			n += 8 - n%8
		case '\n', '\r', '\v', '\f':
		default:
			return n
		}
		if n >= 200 {
			return 200
		}
	}
	return -1
}

func (s *score) add(t *text, at int) {
	const maxBlanks = 20
	end, indent := at >= len(t.lines), -1
	if !end {
		indent = t.indent(at)
	}
	before, beforeBlank := -1, 0
	for i := at - 1; i >= 0; i-- {
		if before = t.indent(i); before != -1 {
			break
		}
		if beforeBlank++; beforeBlank == maxBlanks {
			before = 0
			break
		}
	}
	after, afterBlank := -1, 0
	for i := at + 1; i < len(t.lines); i++ {
		if after = t.indent(i); after != -1 {
			break
		}
		if afterBlank++; afterBlank == maxBlanks {
			after = 0
			break
		}
	}
	if before == -1 && beforeBlank == 0 {
		s.penalty++
	}
	if end {
		s.penalty += 21
	}
	post := 0
	if indent == -1 {
		post = 1 + afterBlank
	}
	blank := beforeBlank + post
	s.penalty += -30*blank + 6*post
	if indent == -1 {
		indent = after
	}
	s.indent += indent
	pick := func(with, without int) {
		if blank != 0 {
			s.penalty += with
		} else {
			s.penalty += without
		}
	}
	switch {
	case indent == -1 || before == -1 || indent == before:
	case indent > before:
		pick(10, -4)
	case after != -1 && after > indent:
		pick(17, 24)
	default:
		pick(17, 23)
	}
}
