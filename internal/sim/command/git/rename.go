package git

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// Renames are looked for among so many pairs of files, at the least likeness of
// so many percent.
const (
	maxPairs    = 400 * 400
	likeness    = 30000 // of fullScore
	fullScore   = 60000
	likenessTip = 45000 // where the name's last part is the same
)

// An outline tells how many bytes a file has of each of its pieces.
type outline map[uint32]int

// pieces takes a file apart into lines, long ones into pieces of 64 bytes, and
// numbers them as git does, so that its percentages are ours.
func (w *work) pieces(b []byte) outline {
	w.t.Step(1 + len(b)/16)
	w.t.Grow(len(b) / 4)
	out := outline{}
	text := !isBinary(b)
	var x, y uint32
	n := 0
	for i, c := range b {
		if text && c == '\r' && i+1 < len(b) && b[i+1] == '\n' {
			continue
		}
		old := x
		x = x<<7 ^ y>>25
		y = y<<7 ^ old>>25
		x += uint32(c)
		if n++; n < 64 && c != '\n' {
			continue
		}
		out[(x+y*0x61)%107927] += n
		n, x, y = 0, 0, 0
	}
	if n > 0 {
		out[(x+y*0x61)%107927] += n
	}
	return out
}

// A candidate is a file that was removed or added.
type candidate struct {
	change
	size    int
	outline outline
	used    bool
}

// renamed joins what was removed with what was added and is like it.
func (w *work) renamed(a, b side, list []change) ([]change, error) {
	var from, to []*candidate
	for _, c := range list {
		switch {
		case c.to == nil:
			from = append(from, &candidate{change: c})
		case c.from == nil:
			to = append(to, &candidate{change: c})
		}
	}
	if v, ok := w.configured("diff.renames"); ok && v == "false" {
		return list, nil
	}
	if len(from) == 0 || len(to) == 0 || len(from)*len(to) > maxPairs {
		return list, nil
	}
	pairs := map[string]change{}
	join := func(x, y *candidate, score int) {
		x.used, y.used = true, true
		pairs[y.name] = change{name: y.name, from: x.from, to: y.to, old: x.name, score: score * 100 / fullScore}
	}
	exact(from, to, join)
	if err := w.measure(a, b, from, to); err != nil {
		return nil, err
	}
	w.sameBase(from, to, join)
	w.alike(from, to, join)
	if len(pairs) == 0 {
		return list, nil
	}
	gone := map[string]bool{}
	for _, x := range from {
		gone[x.name] = x.used
	}
	out := list[:0:0]
	for _, c := range list {
		if p, ok := pairs[c.name]; ok && c.from == nil {
			out = append(out, p)
		} else if c.to != nil || !gone[c.name] {
			out = append(out, c)
		}
	}
	return out, nil
}

// exact joins equal files, those with the same last part of the name first.
func exact(from, to []*candidate, join func(x, y *candidate, score int)) {
	for _, y := range to {
		var best *candidate
		for _, x := range from {
			if x.used || x.from.hash != y.to.hash || x.from.mode&0o170000 != y.to.mode&0o170000 {
				continue
			}
			if best == nil || path.Base(x.name) == path.Base(y.name) && path.Base(best.name) != path.Base(y.name) {
				best = x
			}
		}
		if best != nil && best.from.hash.String() != emptyBlob {
			join(best, y, fullScore)
		}
	}
}

// emptyBlob is what says nothing of where a file came from.
const emptyBlob = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"

func (w *work) measure(a, b side, from, to []*candidate) error {
	for _, x := range from {
		if x.used {
			continue
		}
		text, err := a.load(x.name, *x.from)
		if err != nil {
			return err
		}
		x.size, x.outline = len(text), w.pieces(text)
	}
	for _, y := range to {
		if y.used {
			continue
		}
		text, err := b.load(y.name, *y.to)
		if err != nil {
			return err
		}
		y.size, y.outline = len(text), w.pieces(text)
	}
	return nil
}

// like says how much of the greater file comes from the other.
func (w *work) like(x, y *candidate) int {
	most, least := max(x.size, y.size), min(x.size, y.size)
	if least == 0 || x.from.mode&0o170000 != y.to.mode&0o170000 || most*(fullScore-likeness) < (most-least)*fullScore {
		return 0
	}
	w.t.Step(1 + len(x.outline))
	same := 0
	for id, n := range x.outline {
		same += min(n, y.outline[id])
	}
	return same * fullScore / most
}

// sameBase joins files whose name's last part is found once on each side.
func (w *work) sameBase(from, to []*candidate, join func(x, y *candidate, score int)) {
	count := func(list []*candidate) map[string][]*candidate {
		m := map[string][]*candidate{}
		for _, c := range list {
			if !c.used {
				m[path.Base(c.name)] = append(m[path.Base(c.name)], c)
			}
		}
		return m
	}
	sources, targets := count(from), count(to)
	for _, x := range from {
		base := path.Base(x.name)
		if x.used || len(sources[base]) != 1 || len(targets[base]) != 1 {
			continue
		}
		if n := w.like(x, targets[base][0]); n >= likenessTip {
			join(x, targets[base][0], n)
		}
	}
}

// alike joins what is left, the most alike first.
func (w *work) alike(from, to []*candidate, join func(x, y *candidate, score int)) {
	type pair struct {
		x, y  *candidate
		score int
		base  bool
	}
	var list []pair
	for _, y := range to {
		for _, x := range from {
			if x.used || y.used {
				continue
			}
			if n := w.like(x, y); n >= likeness {
				list = append(list, pair{x, y, n, path.Base(x.name) == path.Base(y.name)})
			}
		}
	}
	slices.SortStableFunc(list, func(p, q pair) int {
		if c := cmp.Compare(q.score, p.score); c != 0 {
			return c
		}
		switch {
		case p.base && !q.base:
			return -1
		case q.base && !p.base:
			return 1
		}
		return 0
	})
	for _, p := range list {
		if !p.x.used && !p.y.used {
			join(p.x, p.y, p.score)
		}
	}
}

// arrow writes a rename in short: what is common stands outside braces.
func arrow(a, b string) string {
	if a == "" || a == b {
		return quoted(b)
	}
	if quoted(a) != a || quoted(b) != b {
		return quoted(a) + " => " + quoted(b)
	}
	prefix := 0
	for i := 0; i < len(a) && i < len(b) && a[i] == b[i]; i++ {
		if a[i] == '/' {
			prefix = i + 1
		}
	}
	suffix, slash := 0, 0
	if prefix > 0 {
		slash = 1
	}
	for i, j := len(a), len(b); i >= prefix-slash && j >= prefix-slash; i, j = i-1, j-1 {
		if i < len(a) {
			if a[i] != b[j] {
				break
			}
			if a[i] == '/' {
				suffix = len(a) - i
			}
		}
		if i == 0 || j == 0 {
			break
		}
	}
	if prefix+suffix == 0 {
		return a + " => " + b
	}
	mid := func(s string) string { return s[prefix:max(prefix, len(s)-suffix)] }
	var out strings.Builder
	out.WriteString(a[:prefix] + "{" + mid(a) + " => " + mid(b) + "}" + a[len(a)-suffix:])
	return out.String()
}
