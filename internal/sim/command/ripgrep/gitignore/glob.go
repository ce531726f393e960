package gitignore

import (
	"strings"
	"unicode/utf8"
)

// A Glob matches paths: * and ? and brackets do not match a slash, ** between
// slashes matches any directories, and {a,b} is a choice.
type Glob struct {
	literal string // what the path is, where no token is needed
	suffix  string // what the path ends with, for "*" and a text
	simple  kind
	choices [][]token
	fold    bool
}

type kind uint8

const (
	byTokens kind = iota
	byLiteral
	bySuffix
)

type token struct {
	what what
	char rune
	set  []span
	not  bool
}

type what uint8

const (
	one      what = iota // char
	any1                 // any but a slash
	set                  // of
	star                 // any number but of slashes
	all                  // any number of anything
	some                 // anything once
	dirs                 // nothing, or anything up to a slash
	dirsRest             // the same, inside of it
)

type span struct{ lo, hi rune }

// Bounds of what one pattern may hold.
const (
	maxChoices = 256
	maxTokens  = 4096
	maxDepth   = 16
)

// Compile makes a Glob; ok is false where the pattern is malformed or too
// large, and then nothing should match it.
func Compile(pattern string, fold bool) (g *Glob, ok bool) {
	g = &Glob{fold: fold}
	if !fold && !strings.ContainsAny(pattern, "*?[{\\") {
		g.simple, g.literal = byLiteral, pattern
		return g, true
	}
	if rest, star := strings.CutPrefix(pattern, "*"); star && !fold && rest != "" && !strings.ContainsAny(rest, "*?[{\\/") {
		g.simple, g.suffix = bySuffix, rest
		return g, true
	}
	list, ok := expand(pattern)
	if !ok {
		return nil, false
	}
	total := 0
	for _, p := range list {
		tokens, ok := tokenize(p, fold)
		if total += len(tokens); !ok || total > maxTokens {
			return nil, false
		}
		g.choices = append(g.choices, tokens)
	}
	return g, true
}

// expand writes out the choices of a pattern.
func expand(pattern string) ([]string, bool) {
	pending, done := []string{pattern}, []string(nil)
	for rounds := 0; len(pending) > 0; rounds++ {
		if len(pending)+len(done) > maxChoices || rounds > 8*maxChoices {
			return nil, false
		}
		p := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		open, parts, end, ok := choice(p)
		if !ok {
			return nil, false
		}
		if open < 0 {
			done = append(done, p)
			continue
		}
		for _, part := range parts {
			pending = append(pending, p[:open]+part+p[end:])
		}
	}
	return done, true
}

// choice finds the first {} of a pattern.
func choice(p string) (open int, parts []string, end int, ok bool) {
	open = -1
	depth, start := 0, 0
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '\\':
			i++
		case '[':
			if j := closing(p, i); j > 0 {
				i = j
			}
		case '{':
			if depth++; depth > maxDepth {
				return 0, nil, 0, false
			}
			if depth == 1 {
				open, start = i, i+1
			}
		case ',':
			if depth == 1 {
				parts = append(parts, p[start:i])
				start = i + 1
			}
		case '}':
			if depth == 0 {
				continue
			}
			if depth--; depth == 0 {
				return open, append(parts, p[start:i]), i + 1, true
			}
		}
	}
	return -1, nil, 0, true // a { that nothing closes is one
}

// closing gives the place of the ] of a bracket, or -1.
func closing(p string, i int) int {
	j := i + 1
	if j < len(p) && (p[j] == '!' || p[j] == '^') {
		j++
	}
	if j < len(p) && p[j] == ']' {
		j++
	}
	for ; j < len(p); j++ {
		switch p[j] {
		case '\\':
			j++
		case ']':
			return j
		}
	}
	return -1
}

func tokenize(p string, fold bool) ([]token, bool) {
	var out []token
	for i := 0; i < len(p); {
		switch c := p[i]; c {
		case '?':
			out = append(out, token{what: any1})
			i++
		case '*':
			n := 1
			for i+n < len(p) && p[i+n] == '*' {
				n++
			}
			begins, ends := i == 0 || p[i-1] == '/', i+n == len(p)
			switch {
			case n == 2 && begins && ends && i == 0:
				out = append(out, token{what: all})
			case n == 2 && begins && ends:
				out = append(out, token{what: some}, token{what: all})
			case n == 2 && begins && p[i+n] == '/':
				out = append(out, token{what: dirs}, token{what: dirsRest})
				i++
			default:
				out = append(out, token{what: star})
			}
			i += n
		case '[':
			end := closing(p, i)
			if end < 0 {
				return nil, false
			}
			t, ok := bracket(p[i+1:end], fold)
			if !ok {
				return nil, false
			}
			out = append(out, t)
			i = end + 1
		default:
			if c == '\\' {
				if i++; i == len(p) {
					return nil, false
				}
			}
			r, n := decode(p[i:])
			out = append(out, token{char: lower(r, fold)})
			i += n
		}
	}
	return out, true
}

func bracket(s string, fold bool) (token, bool) {
	t := token{what: set}
	if s != "" && (s[0] == '!' || s[0] == '^') {
		t.not = true
		s = s[1:]
	}
	for s != "" {
		lo, n := member(s)
		s = s[n:]
		hi := lo
		if len(s) > 1 && s[0] == '-' {
			hi, n = member(s[1:])
			s = s[1+n:]
		}
		if hi < lo {
			return t, false
		}
		t.set = append(t.set, span{lo, hi})
		if fold && lo < utf8.RuneSelf && hi < utf8.RuneSelf {
			t.set = append(t.set, folded(lo, hi)...)
		}
	}
	return t, true
}

// folded gives the small letters of the capital ones of a range.
func folded(lo, hi rune) []span {
	if lo, hi = max(lo, 'A'), min(hi, 'Z'); lo > hi {
		return nil
	}
	return []span{{lo + 'a' - 'A', hi + 'a' - 'A'}}
}

func member(s string) (rune, int) {
	if s[0] == '\\' && len(s) > 1 {
		r, n := decode(s[1:])
		return r, n + 1
	}
	return decode(s)
}

// raw is where bytes that are no characters are counted from.
const raw = utf8.MaxRune + 1

func decode(s string) (rune, int) {
	if s[0] < utf8.RuneSelf {
		return rune(s[0]), 1
	}
	r, n := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && n == 1 {
		return raw + rune(s[0]), 1
	}
	return r, n
}

func lower(r rune, fold bool) rune {
	if fold && r >= 'A' && r <= 'Z' {
		return r + 'a' - 'A'
	}
	return r
}

// Match says whether a path matches. It takes time in the order of the length
// of the path times that of the pattern.
func (g *Glob) Match(path string) bool {
	switch g.simple {
	case byLiteral:
		return path == g.literal
	case bySuffix:
		return strings.HasSuffix(path, g.suffix) && strings.IndexByte(path[:len(path)-len(g.suffix)], '/') < 0
	case byTokens:
	}
	for _, tokens := range g.choices {
		if run(tokens, path, g.fold) {
			return true
		}
	}
	return false
}

// run follows all ways through the tokens at once.
func run(tokens []token, path string, fold bool) bool {
	var room [2][64]bool
	now, next := room[0][:], room[1][:]
	if len(tokens)+1 > len(room[0]) {
		now, next = make([]bool, len(tokens)+1), make([]bool, len(tokens)+1)
	}
	now, next = now[:len(tokens)+1], next[:len(tokens)+1]
	now[0] = true
	pass(tokens, now)
	for path != "" {
		r, n := decode(path)
		path = path[n:]
		r = lower(r, fold)
		clear(next)
		alive := false
		for i := range tokens {
			if !now[i] {
				continue
			}
			t := &tokens[i]
			stay, on := false, false
			switch t.what {
			case one:
				on = r == t.char
			case any1:
				on = r != '/'
			case set:
				on = r != '/' && t.holds(r)
			case star:
				stay = r != '/'
			case all:
				stay = true
			case some:
				on = true
			case dirsRest:
				stay, on = true, r == '/'
			case dirs:
			}
			next[i] = next[i] || stay
			next[i+1] = next[i+1] || on
			alive = alive || stay || on
		}
		if !alive {
			return false
		}
		pass(tokens, next)
		now, next = next, now
	}
	return now[len(tokens)]
}

// pass goes over tokens that match nothing.
func pass(tokens []token, at []bool) {
	for i := range tokens {
		if !at[i] {
			continue
		}
		switch tokens[i].what {
		case star, all:
			at[i+1] = true
		case dirs:
			at[i+1], at[i+2] = true, true
		default:
		}
	}
}

func (t *token) holds(r rune) bool {
	for _, s := range t.set {
		if r >= s.lo && r <= s.hi {
			return !t.not
		}
	}
	return t.not
}
