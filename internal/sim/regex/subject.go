package regex

import "unicode/utf8"

// A subject is the text of one search as characters.
type subject struct {
	b     []byte
	bytes bool
	ascii bool // word characters are ASCII
	sep   int
}

// next decodes the character at i.
func (s *subject) next(i int) (rune, int) {
	c := s.b[i]
	if c < utf8.RuneSelf || s.bytes {
		return rune(c), 1
	}
	r, n := utf8.DecodeRune(s.b[i:])
	if r == utf8.RuneError && n == 1 {
		return rawByte + rune(c), 1
	}
	return r, n
}

// previous decodes the character before i.
func (s *subject) previous(i int) (rune, int) {
	c := s.b[i-1]
	if c < utf8.RuneSelf || s.bytes {
		return rune(c), 1
	}
	r, n := utf8.DecodeLastRune(s.b[:i])
	if r == utf8.RuneError && n == 1 {
		return rawByte + rune(c), 1
	}
	return r, n
}

// boundary says whether i is between characters.
func (s *subject) boundary(i int) bool {
	if s.bytes || i == 0 || i >= len(s.b) || utf8.RuneStart(s.b[i]) {
		return true
	}
	for j := i - 1; j >= 0 && j > i-utf8.UTFMax; j-- {
		if utf8.RuneStart(s.b[j]) {
			_, n := utf8.DecodeRune(s.b[j:])
			return j+n <= i
		}
	}
	return true
}

func (s *subject) holds(op assertion, i int) bool {
	if op == aEndTextNL {
		return i == len(s.b) || i == len(s.b)-1 && s.b[i] == '\n' || int(s.b[i]) == s.sep
	}
	before, after := edge, edge
	if i > 0 {
		r, _ := s.previous(i)
		before = s.sideOf(r)
	}
	if i < len(s.b) {
		r, _ := s.next(i)
		after = s.sideOf(r)
	}
	return holds(op, before, after)
}

func (s *subject) sideOf(r rune) side {
	var x side
	if int(r) == s.sep {
		x |= edge
	}
	if r == '\n' {
		x |= newline
	}
	if isWord(r, s.ascii) {
		x |= wordChar
	}
	return x
}
