package pattern

import (
	"strings"
	"unicode/utf8"
)

// stride is how much work is done between two calls of a Meter.
const stride = 4096

// fixed matches items without stars and groups at the start of s, and returns
// how much of it they took.
func (p *Pattern) fixed(items sequence, s string) (int, bool) {
	n := 0
	for i := range items {
		it := &items[i]
		if it.kind == itemLiteral {
			k, ok := p.hasPrefix(s[n:], it.lit)
			if !ok {
				return 0, false
			}
			n += k
			continue
		}
		if n == len(s) {
			return 0, false
		}
		c, k := p.opt.decode(s[n:])
		if c == '/' && p.opt.Path || it.kind == itemSet && !it.set.has(c) {
			return 0, false
		}
		n += k
	}
	return n, true
}

func (p *Pattern) hasPrefix(s, lit string) (int, bool) {
	if !p.opt.IgnoreCase {
		return len(lit), strings.HasPrefix(s, lit)
	}
	n := 0
	for lit != "" {
		if n == len(s) {
			return 0, false
		}
		a, k := p.opt.decode(lit)
		b, l := p.opt.decode(s[n:])
		if a != b && lower(a) != lower(b) {
			return 0, false
		}
		lit = lit[k:]
		n += l
	}
	return n, true
}

// star returns the index of the first star, or -1.
func (q sequence) star() int {
	for i := range q {
		if q[i].kind == itemStar {
			return i
		}
	}
	return -1
}

// matchPlain matches items without groups. A star that has been passed is never
// returned to once the next one is reached, so the worst case is the product of
// the two lengths.
func (p *Pattern) matchPlain(s string, m Meter) (bool, error) {
	items := p.items
	i := items.star()
	if i < 0 {
		n, ok := p.fixed(items, s)
		return ok && n == len(s), nil
	}
	n, ok := p.fixed(items[:i], s)
	if !ok {
		return false, nil
	}
	s = s[n:]
	work := 0
	for {
		items = items[i+1:]
		if len(items) == 0 {
			return true, nil
		}
		i = items.star()
		if i < 0 {
			return p.tail(items, s, m)
		}
		for {
			if it := &items[0]; it.kind == itemLiteral && !p.opt.IgnoreCase {
				k := strings.Index(s, it.lit)
				if k < 0 || p.opt.Path && strings.IndexByte(s[:k], '/') >= 0 {
					return false, nil
				}
				s = s[k:]
			}
			if n, ok := p.fixed(items[:i], s); ok {
				s = s[n:]
				break
			}
			if s == "" || p.opt.Path && s[0] == '/' {
				return false, nil
			}
			s = s[p.size(s):]
			if work += i; work >= stride {
				if err := step(m, work); err != nil {
					return false, err
				}
				work = 0
			}
		}
	}
}

// tail matches what follows the last star with the end of s.
func (p *Pattern) tail(items sequence, s string, m Meter) (bool, error) {
	if len(items) == 1 && items[0].kind == itemLiteral && !p.opt.IgnoreCase {
		lit := items[0].lit
		return strings.HasSuffix(s, lit) && (!p.opt.Path || strings.IndexByte(s[:len(s)-len(lit)], '/') < 0), nil
	}
	// The items take at least bytes and at most most.
	least, most := 0, 0
	for i := range items {
		n := 1
		if items[i].kind == itemLiteral {
			n = len(items[i].lit)
			if p.opt.IgnoreCase {
				most += 3 * n // a folded character may be of another length
				n = utf8.RuneCountInString(items[i].lit)
			}
		}
		least += n
		most += utf8.UTFMax * n
	}
	if len(s) < least {
		return false, nil
	}
	if skip := len(s) - most; skip > 0 {
		for !p.opt.Bytes && skip < len(s) && !utf8.RuneStart(s[skip]) {
			skip++
		}
		if p.opt.Path && strings.IndexByte(s[:skip], '/') >= 0 {
			return false, nil
		}
		s = s[skip:]
	}
	work := 0
	for {
		if n, ok := p.fixed(items, s); ok && n == len(s) {
			return true, nil
		}
		if s == "" || p.opt.Path && s[0] == '/' {
			return false, nil
		}
		s = s[p.size(s):]
		if work += len(items); work >= stride {
			if err := step(m, work); err != nil {
				return false, err
			}
			work = 0
		}
	}
}

func step(m Meter, n int) error {
	if m == nil {
		return nil
	}
	return m.Step(n)
}

// find is Find without the shapes.
func (p *Pattern) find(s string, m Meter) (start, end int, ok bool, err error) {
	if p.groups {
		return p.search(s, m)
	}
	star := p.items.star()
	if star >= 0 && star < len(p.items)-1 || p.opt.Path {
		return p.search(s, m)
	}
	items := p.items
	if star >= 0 {
		items = items[:star]
	}
	work := 0
	for i := 0; ; {
		if i = p.skip(s, i); i > len(s) {
			return 0, 0, false, nil
		}
		if n, ok := p.fixed(items, s[i:]); ok {
			if star >= 0 {
				return i, len(s), true, nil
			}
			return i, i + n, true, nil
		}
		if i == len(s) {
			return 0, 0, false, nil
		}
		i += p.size(s[i:])
		if work += len(items); work >= stride {
			if err := step(m, work); err != nil {
				return 0, 0, false, err
			}
			work = 0
		}
	}
}

// skip returns the first place from i on where a match may begin, or more than
// len(s).
func (p *Pattern) skip(s string, i int) int {
	if p.first == nil {
		return i
	}
	for ; i < len(s); i++ {
		if c := s[i]; p.first[c>>6]>>(c&63)&1 != 0 {
			return i
		}
	}
	return len(s) + 1
}

// firstBytes returns the bytes that a match can begin with, or nil if there is
// nothing to gain from knowing.
func firstBytes(items sequence, o Options) *[4]uint64 {
	var b [4]uint64
	if o.IgnoreCase || items.first(&b) != begins {
		return nil
	}
	return &b
}

// beginning is what is known of how matches begin.
type beginning uint8

const (
	unknown beginning = iota
	empty             // some match nothing; the bytes of the others are known
	begins            // each has a first byte, and it is known
)

// first adds the bytes that a match of the items can begin with.
func (q sequence) first(b *[4]uint64) beginning {
	for i := range q {
		if how := q[i].first(b); how != empty {
			return how
		}
	}
	return empty
}

func (it *item) first(b *[4]uint64) beginning {
	switch it.kind {
	case itemLiteral:
		b[it.lit[0]>>6] |= 1 << (it.lit[0] & 63)
		return begins
	case itemSet:
		b[0] |= it.set.ascii[0]
		b[1] |= it.set.ascii[1]
		b[2], b[3] = ^uint64(0), ^uint64(0)
		return begins
	case itemGroup:
		if it.op == '!' {
			return unknown
		}
		how := begins
		for _, alt := range it.alts {
			how = min(how, alt.first(b))
		}
		if how == begins && (it.op == '?' || it.op == '*') {
			return empty
		}
		return how
	}
	return unknown
}
