package pattern

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// set is a bracket expression. What it says of ASCII is worked out in advance.
type set struct {
	ascii  [2]uint64
	ranges []span
	class  []class
	not    bool
	fold   bool
}

type span struct{ lo, hi rune }

// has reports whether the set holds a character.
func (s *set) has(c rune) bool {
	if c < utf8.RuneSelf {
		return s.ascii[c>>6]>>(uint(c)&63)&1 != 0
	}
	return s.holds(c) != s.not
}

func (s *set) holds(c rune) bool {
	for _, cl := range s.class {
		if cl.has(c) {
			return true
		}
	}
	if s.fold {
		c = lower(c)
	}
	for _, r := range s.ranges {
		if r.lo <= c && c <= r.hi {
			return true
		}
	}
	return false
}

func (s *set) finish() {
	for c := range rune(utf8.RuneSelf) {
		if s.holds(c) != s.not {
			s.ascii[c>>6] |= 1 << (uint(c) & 63)
		}
	}
}

func lower(c rune) rune {
	switch {
	case c < utf8.RuneSelf:
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		return c
	case c > unicode.MaxRune:
		return c
	}
	return unicode.ToLower(c)
}

// bracketEnd returns where the bracket expression that begins at i ends, or -1
// if nothing closes it.
func bracketEnd(s string, i int) int {
	i++
	if i < len(s) && (s[i] == '!' || s[i] == '^') {
		i++
	}
	for first := true; i < len(s); first = false {
		switch c := s[i]; {
		case c == ']' && !first:
			return i + 1
		case c == '\\':
			i += 2
		case c == '[' && i+1 < len(s) && (s[i+1] == ':' || s[i+1] == '.' || s[i+1] == '='):
			if end := elementEnd(s, i); end > 0 {
				i = end
			} else {
				i++
			}
		default:
			i++
		}
	}
	return -1
}

// elementEnd returns where the [:class:], [.symbol.] or [=character=] at i ends.
func elementEnd(s string, i int) int {
	kind := s[i+1]
	for j := i + 2; j+1 < len(s); j++ {
		if s[j] == kind && s[j+1] == ']' && (j > i+2 || kind == ':') {
			return j + 2
		}
	}
	return -1
}

// parseSet compiles a bracket expression, brackets included.
func parseSet(src string, o Options) *set {
	b := &set{fold: o.IgnoreCase}
	s := src[1 : len(src)-1]
	if s[0] == '!' || s[0] == '^' {
		b.not = true
		s = s[1:]
	}
	for s != "" {
		if strings.HasPrefix(s, "[:") {
			if end := elementEnd(s, 0); end > 0 {
				if c, ok := classOf(s[2 : end-2]); ok {
					b.class = append(b.class, c)
				}
				s = s[end:]
				continue
			}
		}
		if strings.HasPrefix(s, "[=") {
			if end := elementEnd(s, 0); end > 0 {
				if c, n := o.decode(s[2:]); n == end-4 {
					b.add(c, c)
				}
				s = s[end:]
				continue
			}
		}
		lo, n, ok := endpoint(s, o)
		s = s[n:]
		if len(s) < 2 || s[0] != '-' {
			if ok {
				b.add(lo, lo)
			}
			continue
		}
		hi, n, ok2 := endpoint(s[1:], o)
		s = s[1+n:]
		if ok && ok2 {
			b.add(lo, hi)
		}
	}
	b.finish()
	return b
}

func (s *set) add(lo, hi rune) {
	if s.fold {
		lo, hi = lower(lo), lower(hi)
	}
	if lo <= hi {
		s.ranges = append(s.ranges, span{lo, hi})
	}
}

// endpoint returns the character at the start of s, the length of its text, and
// whether it is one: a collating symbol may not exist.
func endpoint(s string, o Options) (c rune, n int, ok bool) {
	if s[0] == '\\' && len(s) > 1 {
		c, n = o.decode(s[1:])
		return c, n + 1, true
	}
	if strings.HasPrefix(s, "[.") {
		if end := elementEnd(s, 0); end > 0 {
			c, ok = symbol(s[2 : end-2])
			return c, end, ok
		}
	}
	c, n = o.decode(s)
	return c, n, true
}

type class uint8

const (
	alnum class = iota
	alpha
	ascii
	blank
	cntrl
	digit
	graph
	lowercase
	printable
	punct
	space
	uppercase
	word
	xdigit
)

func classOf(name string) (class, bool) {
	switch strings.ReplaceAll(name, `\`, "") {
	case "alnum":
		return alnum, true
	case "alpha":
		return alpha, true
	case "ascii":
		return ascii, true
	case "blank":
		return blank, true
	case "cntrl":
		return cntrl, true
	case "digit":
		return digit, true
	case "graph":
		return graph, true
	case "lower":
		return lowercase, true
	case "print":
		return printable, true
	case "punct":
		return punct, true
	case "space":
		return space, true
	case "upper":
		return uppercase, true
	case "word":
		return word, true
	case "xdigit":
		return xdigit, true
	}
	return 0, false
}

func (k class) has(c rune) bool {
	if c < utf8.RuneSelf {
		return k.hasASCII(byte(c))
	}
	if c > unicode.MaxRune {
		return false
	}
	switch k {
	case alnum, word:
		return unicode.IsLetter(c) || unicode.IsNumber(c)
	case alpha:
		return unicode.IsLetter(c) || unicode.IsNumber(c)
	case blank:
		return unicode.Is(unicode.Zs, c) && c != 0xa0 && c != 0x2007 && c != 0x202f
	case space:
		return unicode.Is(unicode.Z, c) && c != 0xa0 && c != 0x2007 && c != 0x202f
	case cntrl:
		return c < 0xa0 || c == 0x2028 || c == 0x2029
	case graph:
		return unicode.IsGraphic(c) && !unicode.Is(unicode.Z, c) || c == 0xa0
	case printable:
		return unicode.IsGraphic(c)
	case lowercase:
		return unicode.IsLower(c)
	case uppercase:
		return unicode.IsUpper(c)
	case punct:
		return unicode.IsGraphic(c) && !unicode.IsLetter(c) && !unicode.IsNumber(c) && !unicode.Is(unicode.Z, c)
	case ascii, digit, xdigit:
	}
	return false
}

func (k class) hasASCII(c byte) bool {
	low, up := 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z'
	num := '0' <= c && c <= '9'
	switch k {
	case alnum:
		return low || up || num
	case alpha:
		return low || up
	case ascii:
		return true
	case blank:
		return c == ' ' || c == '\t'
	case cntrl:
		return c < ' ' || c == 0x7f
	case digit:
		return num
	case graph:
		return c > ' ' && c < 0x7f
	case lowercase:
		return low
	case printable:
		return c >= ' ' && c < 0x7f
	case punct:
		return c > ' ' && c < 0x7f && !low && !up && !num
	case space:
		return c == ' ' || '\t' <= c && c <= '\r'
	case uppercase:
		return up
	case word:
		return low || up || num || c == '_'
	case xdigit:
		return num || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
	}
	return false
}
