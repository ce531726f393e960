package regex

import (
	"bytes"
	"unicode/utf8"
)

// A must is a string that every match contains, as far as the tree tells.
type must struct {
	exact  bool   // the node matches prefix alone
	prefix []byte // what every match starts with
	suffix []byte
	inner  []byte // the best of what every match contains
}

const maxMust = 256

func exactly(b []byte) must {
	if len(b) > maxMust {
		return must{prefix: b[:maxMust], suffix: b[len(b)-maxMust:], inner: b[:maxMust]}
	}
	return must{exact: true, prefix: b, suffix: b, inner: b}
}

// literalRun puts together the characters from sub[i] on, and returns where
// something else stands.
func literalRun(sub []*node, i int, opt *Options) (run []byte, next int) {
	for ; i < len(sub) && sub[i].kind == kSet; i++ {
		b, ok := literalBytes(sub[i].set, opt)
		if !ok {
			break
		}
		run = append(run, b...)
	}
	return run, i
}

// musts works out what a match of n must contain. With fold, letters stand for
// both cases and come out in lower case.
func musts(n *node, opt *Options) must {
	switch n.kind {
	case kEmpty:
		return exactly(nil)
	case kSet:
		if b, ok := literalBytes(n.set, opt); ok {
			return exactly(b)
		}
	case kAssert:
		return exactly(nil)
	case kGroup, kAtomic:
		return musts(n.sub[0], opt)
	case kRepeat:
		if n.min == 0 {
			return must{}
		}
		m := musts(n.sub[0], opt)
		if n.min == 1 && n.max == 1 {
			return m
		}
		m.exact = false
		return m
	case kCat:
		m := exactly(nil)
		for i := 0; i < len(n.sub); {
			run, next := literalRun(n.sub, i, opt)
			if next > i {
				m = joined(m, exactly(run))
				i = next
				continue
			}
			m = joined(m, musts(n.sub[i], opt))
			i++
		}
		return m
	case kAlt:
		m := musts(n.sub[0], opt)
		for _, s := range n.sub[1:] {
			m = common(m, musts(s, opt))
		}
		return m
	default:
	}
	return must{}
}

func joined(a, b must) must {
	m := must{exact: a.exact && b.exact}
	m.prefix = a.prefix
	if a.exact {
		m.prefix = concat(a.prefix, b.prefix)
	}
	m.suffix = b.suffix
	if b.exact {
		m.suffix = concat(a.suffix, b.suffix)
	}
	m.inner = a.inner
	for _, c := range [][]byte{b.inner, concat(a.suffix, b.prefix)} {
		if len(c) > len(m.inner) {
			m.inner = c
		}
	}
	if len(m.prefix) > maxMust {
		m.exact = false
		m.prefix = m.prefix[:maxMust]
	}
	if len(m.suffix) > maxMust {
		m.exact = false
		m.suffix = m.suffix[len(m.suffix)-maxMust:]
	}
	if len(m.inner) > maxMust {
		m.inner = m.inner[:maxMust]
	}
	return m
}

func concat(a, b []byte) []byte { return append(append([]byte(nil), a...), b...) }

func common(a, b must) must {
	if a.exact && b.exact && bytes.Equal(a.prefix, b.prefix) {
		return a
	}
	var m must
	n := 0
	for n < min(len(a.prefix), len(b.prefix)) && a.prefix[n] == b.prefix[n] {
		n++
	}
	m.prefix = a.prefix[:n]
	n = 0
	for n < min(len(a.suffix), len(b.suffix)) && a.suffix[len(a.suffix)-1-n] == b.suffix[len(b.suffix)-1-n] {
		n++
	}
	m.suffix = a.suffix[len(a.suffix)-n:]
	m.inner = m.prefix
	if len(m.suffix) > len(m.inner) {
		m.inner = m.suffix
	}
	return m
}

// literalBytes gives the bytes of the only character of s. Where case is
// ignored, the two cases of an ASCII letter count as one character too.
func literalBytes(s *set, opt *Options) ([]byte, bool) {
	if c, ok := s.one(); ok {
		switch {
		case opt.Bytes, c < utf8.RuneSelf:
			if opt.IgnoreCase && isLetter(byte(c)) {
				return nil, false // one case only
			}
			return []byte{byte(c)}, true
		case c >= rawByte:
			return []byte{byte(c - rawByte)}, true
		default:
			return utf8.AppendRune(nil, c), true
		}
	}
	if opt.IgnoreCase && len(s.known) == 2 {
		a, b := s.known[0], s.known[1]
		if a.lo == a.hi && b.lo == b.hi && 'A' <= a.lo && a.lo <= 'Z' && b.lo == a.lo+32 {
			return []byte{byte(b.lo)}, true
		}
	}
	return nil, false
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// A finder searches for one string, perhaps in either case.
type finder struct {
	text []byte
	fold bool
	rare int     // the index in text of the byte that is rarest in practice
	pair [2]byte // that byte in both cases
}

func newFinder(text []byte, fold bool) *finder {
	f := &finder{text: text, fold: fold && bytes.ContainsFunc(text, func(r rune) bool { return r < 128 && isLetter(byte(r)) })}
	for i, c := range text {
		if rank(c) < rank(text[f.rare]) {
			f.rare = i
		}
	}
	if f.fold {
		c := text[f.rare]
		f.pair = [2]byte{c, c}
		if isLetter(c) {
			f.pair[1] = c ^ 0x20
		}
	}
	return f
}

// A searcher finds the next place where a match may start.
type searcher interface {
	index(b []byte, from int) int
}

// An anyFinder searches for the first of a few strings.
type anyFinder []*finder

func (f anyFinder) index(b []byte, from int) int {
	reach := 0
	for _, one := range f {
		reach = max(reach, len(one.text))
	}
	// Windows that grow keep the strings that are rare from being searched for
	// again and again up to the end.
	for size := 256; from < len(b); size = min(2*size, 64<<10) {
		w := b[:min(len(b), from+size+reach)]
		best := -1
		for _, one := range f {
			if i := one.index(w, from); i >= 0 && (best < 0 || i < best) {
				best = i
				w = w[:min(len(w), i+reach)]
			}
		}
		if best >= 0 {
			return best
		}
		from += size
	}
	return -1
}

// prefixes gives a searcher for the starts of matches of n, or nil. Single
// bytes are not worth a search of their own beside others.
func prefixes(n *node, opt *Options) searcher {
	if p := musts(n, opt).prefix; len(p) > 0 {
		return newFinder(p, opt.IgnoreCase)
	}
	for n.kind == kGroup {
		n = n.sub[0]
	}
	if n.kind != kAlt || len(n.sub) > 4 {
		return nil
	}
	var all anyFinder
	for _, s := range n.sub {
		p := musts(s, opt).prefix
		if len(p) < 2 {
			return nil
		}
		all = append(all, newFinder(p, opt.IgnoreCase))
	}
	return all
}

// rank orders bytes by how often they are met in text and logs, roughly.
func rank(c byte) int {
	switch {
	case c == ' ' || c == 'e':
		return 100
	case 'a' <= c && c <= 'z':
		for i, r := range []byte("zqxjkvbpygfwmuclldrhsnioat") {
			if r == c {
				return 40 + 2*i
			}
		}
		return 90
	case '0' <= c && c <= '9':
		return 70
	case c == '-' || c == ':' || c == '.' || c == '/' || c == '"' || c == '_' || c == ',' || c == '=':
		return 60
	case 'A' <= c && c <= 'Z':
		return 45
	default:
		return 20
	}
}

// index finds text in b at or after from, -1 for not at all.
func (f *finder) index(b []byte, from int) int {
	if !f.fold {
		if i := bytes.Index(b[from:], f.text); i >= 0 {
			return from + i
		}
		return -1
	}
	n := len(f.text)
	for at := from + f.rare; ; at++ {
		at = f.seek(b, at)
		start := at - f.rare
		if at < 0 || start+n > len(b) {
			return -1
		}
		if equalFold(b[start:start+n], f.text) {
			return start
		}
	}
}

// seek finds the rare byte in either case. It looks through windows that grow,
// so that the case that is frequent is not paid for with that which is not.
func (f *finder) seek(b []byte, at int) int {
	for size := 64; at < len(b); size = min(2*size, 64<<10) {
		w := b[at:min(len(b), at+size)]
		i := bytes.IndexByte(w, f.pair[0])
		if i >= 0 {
			w = w[:i]
		}
		if f.pair[1] != f.pair[0] {
			if j := bytes.IndexByte(w, f.pair[1]); j >= 0 {
				return at + j
			}
		}
		if i >= 0 {
			return at + i
		}
		at += size
	}
	return -1
}

// equalFold compares b with lower, which is in lower case, by ASCII.
func equalFold(b, lower []byte) bool {
	for i, c := range b {
		if c != lower[i] && (c|0x20 != lower[i] || !isLetter(c)) {
			return false
		}
	}
	return true
}
