package step

import (
	"bytes"
	"strings"
)

// A span is a range of lines of a base, and what takes its place.
type span struct {
	from, to int // lines of the base
	lines    [][]byte
}

// spans returns what was changed between two texts, in order. Between two of them is at least one equal line.
func spans(base, now [][]byte) []span {
	var list []span
	at, open := 0, false
	for _, e := range compare(base, now) {
		if e.op == ' ' {
			open = false
			at++
			continue
		}
		if !open {
			list = append(list, span{from: at, to: at})
			open = true
		}
		s := &list[len(list)-1]
		if e.op == '-' {
			at++
			s.to = at
		} else {
			s.lines = append(s.lines, e.line)
		}
	}
	return list
}

func (s *span) same(o *span) bool {
	if s.from != o.from || s.to != o.to || len(s.lines) != len(o.lines) {
		return false
	}
	for i := range s.lines {
		if !bytes.Equal(s.lines[i], o.lines[i]) {
			return false
		}
	}
	return true
}

// merge applies the changes from base to theirs to ours. clean is false if both changed the same lines, or lines beside
// each other, as git judges it.
func merge(base, ours, theirs []byte) (merged []byte, clean bool) {
	old := lines(base)
	a, b := spans(old, lines(ours)), spans(old, lines(theirs))
	var out bytes.Buffer
	at := 0
	take := func(s *span) {
		for ; at < s.from; at++ {
			out.Write(old[at])
		}
		for _, l := range s.lines {
			out.Write(l)
		}
		at = s.to
	}
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].to < b[0].from:
			take(&a[0])
			a = a[1:]
		case len(a) == 0 || b[0].to < a[0].from:
			take(&b[0])
			b = b[1:]
		case a[0].same(&b[0]):
			take(&a[0])
			a, b = a[1:], b[1:]
		default:
			return nil, false
		}
	}
	take(&span{from: len(old), to: len(old)})
	return out.Bytes(), true
}

// A Hunk is a part of the difference of two texts.
type Hunk struct {
	Text string // as in a unified diff, from the line that begins with @@
	span span
}

// hunks returns the differences of two texts, each by itself: also those that a unified diff would show together.
func hunks(base, now []byte) []Hunk {
	x, y := lines(base), lines(now)
	edits := compare(x, y)
	var list []Hunk
	for i := 0; i < len(edits); {
		if edits[i].op == ' ' {
			i++
			continue
		}
		end := i
		s := span{from: edits[i].x, to: edits[i].x}
		for end < len(edits) && edits[end].op != ' ' {
			if edits[end].op == '-' {
				s.to++
			} else {
				s.lines = append(s.lines, edits[end].line)
			}
			end++
		}
		var text strings.Builder
		first, last := i, end // with the equal lines around, but not those beyond another difference
		for first > 0 && i-first < around && edits[first-1].op == ' ' {
			first--
		}
		for last < len(edits) && last-end < around && edits[last].op == ' ' {
			last++
		}
		hunk(&text, edits[first:last])
		list = append(list, Hunk{text.String(), s})
		i = end
	}
	return list
}

// choose returns the base with some of its hunks.
func choose(base []byte, chosen []Hunk) []byte {
	old := lines(base)
	var out bytes.Buffer
	at := 0
	for _, h := range chosen {
		for ; at < h.span.from; at++ {
			out.Write(old[at])
		}
		for _, l := range h.span.lines {
			out.Write(l)
		}
		at = h.span.to
	}
	for ; at < len(old); at++ {
		out.Write(old[at])
	}
	return out.Bytes()
}
