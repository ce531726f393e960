package regex

import (
	"slices"
	"sort"
	"unicode"
)

// A byte that is not part of valid UTF-8 is the character rawByte plus itself:
// no bracket, dot or class holds it unless the pattern names it.
const (
	rawByte = unicode.MaxRune + 1
	noChar  = rune(-1)
)

type span struct{ lo, hi rune }

// A set is sorted spans of characters, with a bitmap of its first 128. The
// spans of a class like [:alpha:] are many and seldom needed, so they are made
// when they are: small sets have known, the others late.
type set struct {
	known []span
	low   [4]uint32
	late  func() []span
}

func newSet(spans []span) *set {
	s := &set{known: normalize(spans)}
	s.fill(s.known)
	return s
}

// newWideSet makes a set of which low tells the first 128 characters. Copies of
// a Regexp share it, so full must allow for use by several goroutines.
func newWideSet(low []span, full func() []span) *set {
	s := &set{late: full}
	s.fill(low)
	return s
}

func (s *set) fill(spans []span) {
	for _, sp := range spans {
		for c := sp.lo; c <= sp.hi && c < 128; c++ {
			s.low[c>>5] |= 1 << (c & 31)
		}
	}
}

func (s *set) spans() []span {
	if s.late != nil {
		return s.late()
	}
	return s.known
}

func (s *set) has(c rune) bool {
	if c < 128 {
		return c >= 0 && s.low[c>>5]&(1<<(c&31)) != 0
	}
	spans := s.spans()
	i := sort.Search(len(spans), func(i int) bool { return spans[i].hi >= c })
	return i < len(spans) && spans[i].lo <= c
}

func (s *set) isASCII() bool {
	return s.late == nil && (len(s.known) == 0 || s.known[len(s.known)-1].hi < 128)
}

// one returns the only character of s.
func (s *set) one() (rune, bool) {
	if s.late == nil && len(s.known) == 1 && s.known[0].lo == s.known[0].hi {
		return s.known[0].lo, true
	}
	return 0, false
}

func normalize(spans []span) []span {
	if slices.IsSortedFunc(spans, func(a, b span) int { return int(a.lo) - int(b.lo) }) && disjoint(spans) {
		return spans
	}
	spans = slices.Clone(spans)
	slices.SortFunc(spans, func(a, b span) int { return int(a.lo) - int(b.lo) })
	out := spans[:0]
	for _, sp := range spans {
		if sp.lo > sp.hi {
			continue
		}
		if n := len(out); n > 0 && sp.lo <= out[n-1].hi+1 {
			out[n-1].hi = max(out[n-1].hi, sp.hi)
			continue
		}
		out = append(out, sp)
	}
	return out
}

func disjoint(spans []span) bool {
	for i, sp := range spans {
		if sp.lo > sp.hi || i > 0 && sp.lo <= spans[i-1].hi+1 {
			return false
		}
	}
	return true
}

// universe is every valid character.
func universe(bytes bool) []span {
	if bytes {
		return []span{{0, 255}}
	}
	return []span{{0, 0xd7ff}, {0xe000, unicode.MaxRune}}
}

func intersect(a, b []span) []span {
	var out []span
	for i, j := 0, 0; i < len(a) && j < len(b); {
		lo, hi := max(a[i].lo, b[j].lo), min(a[i].hi, b[j].hi)
		if lo <= hi {
			out = append(out, span{lo, hi})
		}
		if a[i].hi < b[j].hi {
			i++
		} else {
			j++
		}
	}
	return out
}

// complement gives the valid characters that spans lacks.
func complement(spans []span, bytes bool) []span {
	var rest []span
	next := rune(0)
	for _, sp := range normalize(spans) {
		if sp.lo > next {
			rest = append(rest, span{next, sp.lo - 1})
		}
		next = max(next, sp.hi+1)
	}
	if next <= unicode.MaxRune {
		rest = append(rest, span{next, unicode.MaxRune})
	}
	return intersect(rest, universe(bytes))
}

func without(spans []span, c rune) []span {
	out := make([]span, 0, len(spans)+1)
	for _, sp := range spans {
		if c < sp.lo || c > sp.hi {
			out = append(out, sp)
			continue
		}
		if sp.lo < c {
			out = append(out, span{sp.lo, c - 1})
		}
		if c < sp.hi {
			out = append(out, span{c + 1, sp.hi})
		}
	}
	return out
}

// foldSpans adds the case variants of every character. A wide span is walked
// by the table of characters that have any, not one by one.
func foldSpans(spans []span, bytes bool) []span {
	out := slices.Clone(spans)
	for _, sp := range spans {
		if sp.lo <= 'Z' && sp.hi >= 'A' {
			out = append(out, span{max(sp.lo, 'A') + 32, min(sp.hi, 'Z') + 32})
		}
		if sp.lo <= 'z' && sp.hi >= 'a' {
			out = append(out, span{max(sp.lo, 'a') - 32, min(sp.hi, 'z') - 32})
		}
		if bytes {
			continue
		}
		if sp.hi > unicode.MaxRune {
			continue
		}
		if sp.lo <= 'k' && sp.hi >= 'k' || sp.lo <= 'K' && sp.hi >= 'K' {
			out = append(out, span{0x212a, 0x212a})
		}
		if sp.lo <= 's' && sp.hi >= 's' || sp.lo <= 'S' && sp.hi >= 'S' {
			out = append(out, span{0x17f, 0x17f})
		}
		for c := max(sp.lo, 128); c <= min(sp.hi, 0x1e943); c++ {
			for f := unicode.SimpleFold(c); f != c; f = unicode.SimpleFold(f) {
				out = append(out, span{f, f})
			}
			switch c {
			case 0x2d2d:
				c = 0xa63f
			case 0xabbf:
				c = 0xfaff
			}
		}
	}
	return normalize(out)
}

func tableSpans(out []span, tables ...*unicode.RangeTable) []span {
	for _, t := range tables {
		for _, r := range t.R16 {
			out = strideSpans(out, rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
		for _, r := range t.R32 {
			out = strideSpans(out, rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
	}
	return out
}

func strideSpans(out []span, lo, hi, stride rune) []span {
	if stride == 1 {
		return append(out, span{lo, hi})
	}
	for c := lo; c <= hi; c += stride {
		out = append(out, span{c, c})
	}
	return out
}

func isWord(c rune, bytes bool) bool {
	if c < 128 {
		return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
	}
	return !bytes && c <= unicode.MaxRune && isAlpha(c)
}

func isAlpha(c rune) bool {
	return unicode.In(c, unicode.L, unicode.Nl, unicode.Nd, unicode.Other_Alphabetic)
}

func wordSpans() []span { return asciiClass("word") }

// wideClass says whether a class has more beyond ASCII than a few characters.
func wideClass(name string) bool {
	switch name {
	case "alpha", "alnum", "upper", "lower", "punct", "graph", "print", "word":
		return true
	default:
		return false
	}
}

// asciiClass gives the part of a class that every locale shares.
func asciiClass(name string) []span {
	switch name {
	case "alpha":
		return []span{{'A', 'Z'}, {'a', 'z'}}
	case "digit":
		return []span{{'0', '9'}}
	case "alnum":
		return []span{{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}
	case "word":
		return []span{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}
	case "upper":
		return []span{{'A', 'Z'}}
	case "lower":
		return []span{{'a', 'z'}}
	case "space":
		return []span{{'\t', '\r'}, {' ', ' '}}
	case "blank":
		return []span{{'\t', '\t'}, {' ', ' '}}
	case "punct":
		return []span{{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}
	case "graph":
		return []span{{'!', '~'}}
	case "print":
		return []span{{' ', '~'}}
	case "cntrl":
		return []span{{0, 31}, {127, 127}}
	case "xdigit":
		return []span{{'0', '9'}, {'A', 'F'}, {'a', 'f'}}
	default:
		return nil
	}
}

// classSpans gives a POSIX class by name, nil when there is none. The classes
// beyond ASCII follow what glibc's C.UTF-8 says as far as Unicode's own tables
// tell: digits of other scripts are letters there.
func classSpans(name string, bytes bool) []span {
	out := asciiClass(name)
	if out == nil || bytes {
		return out
	}
	switch name {
	case "alpha", "alnum", "word":
		out = tableSpans(out, unicode.L, unicode.Nl, unicode.Other_Alphabetic)
		var digits []span
		for _, sp := range tableSpans(nil, unicode.Nd) {
			if sp.lo >= 128 {
				digits = append(digits, sp)
			}
		}
		out = append(out, digits...)
	case "upper":
		out = tableSpans(out, unicode.Lu, unicode.Lt, unicode.Other_Uppercase)
	case "lower":
		out = tableSpans(out, unicode.Ll, unicode.Other_Lowercase)
	case "space":
		out = append(out, span{0x1680, 0x1680}, span{0x2000, 0x2006}, span{0x2008, 0x200a},
			span{0x2028, 0x2029}, span{0x205f, 0x205f}, span{0x3000, 0x3000})
	case "blank":
		out = append(out, span{0x1680, 0x1680}, span{0x2000, 0x2006}, span{0x2008, 0x200a},
			span{0x205f, 0x205f}, span{0x3000, 0x3000})
	case "cntrl":
		out = append(out, span{0x80, 0x9f}, span{0x2028, 0x2029})
	case "graph", "print", "punct":
		out = tableSpans(out, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Cf, unicode.Co)
		out = append(out, span{0xa0, 0xa0}, span{0x2007, 0x2007}, span{0x202f, 0x202f})
		if name == "print" {
			out = append(out, span{0x1680, 0x1680}, span{0x2000, 0x200a}, span{0x205f, 0x205f}, span{0x3000, 0x3000})
		}
		if name == "punct" {
			out = intersect(normalize(out), complement(append(classSpans("alnum", false), span{' ', ' '}), false))
		}
	}
	return normalize(out)
}
