package cli

import (
	"io"
	"slices"
	"unicode/utf8"
)

// A stripper passes text on without terminal escape sequences and without
// control characters other than newline, carriage return and tab. Sequences
// may be cut anywhere between two writes. A sequence that never ends swallows
// the rest only up to the next line, so that it cannot hide output for good.
type stripper struct {
	out   io.Writer
	state stripState
	held  []byte // the beginning of a character that the next write completes
	buf   []byte
}

type stripState uint8

const (
	plain   stripState = iota
	escape             // after ESC
	inter              // after ESC and an intermediate byte
	control            // inside CSI
	text               // inside OSC, DCS, SOS, PM, APC: ends with BEL or ST
	textEsc            // inside those, after ESC
)

func (s *stripper) Write(p []byte) (int, error) {
	in := p
	if len(s.held) > 0 {
		in = slices.Concat(s.held, p)
		s.held = nil
	}
	s.buf = s.buf[:0]
	for i := 0; i < len(in); {
		if in[i] >= utf8.RuneSelf && !utf8.FullRune(in[i:]) {
			s.held = append([]byte(nil), in[i:]...)
			break
		}
		r, size := utf8.DecodeRune(in[i:])
		if r == utf8.RuneError && size == 1 {
			r = rune(in[i]) // a lone byte: 0x80 to 0x9f are controls to some terminals
		}
		if s.keep(r) {
			s.buf = append(s.buf, in[i:i+size]...)
		}
		i += size
	}
	if len(s.buf) == 0 {
		return len(p), nil
	}
	if _, err := s.out.Write(s.buf); err != nil {
		return 0, err
	}
	return len(p), nil
}

// keep moves the machine by one character and tells whether it is shown.
func (s *stripper) keep(r rune) bool {
	if r == '\n' {
		s.state = plain
		return true
	}
	if r == 0x18 || r == 0x1a { // CAN and SUB end any sequence
		s.state = plain
		return false
	}
	switch s.state {
	case escape:
		switch {
		case r == '[':
			s.state = control
		case r == ']' || r == 'P' || r == 'X' || r == '^' || r == '_':
			s.state = text
		case r >= 0x20 && r <= 0x2f:
			s.state = inter
		case r == 0x1b:
		default:
			s.state = plain
		}
		return false
	case inter:
		if r < 0x20 || r > 0x2f {
			s.state = plain
		}
		return false
	case control:
		switch {
		case r == 0x1b:
			s.state = escape
		case r >= 0x40 && r <= 0x7e, r > 0x7f:
			s.state = plain
		}
		return false
	case text, textEsc:
		switch {
		case r == 0x07 || r == 0x9c || (s.state == textEsc && r == '\\'):
			s.state = plain
		case r == 0x1b:
			s.state = textEsc
		default:
			s.state = text
		}
		return false
	}
	switch r {
	case 0x1b:
		s.state = escape
	case 0x9b:
		s.state = control
	case 0x9d, 0x90, 0x98, 0x9e, 0x9f:
		s.state = text
	case '\t', '\r':
		return true
	}
	return r >= 0x20 && (r < 0x7f || r > 0x9f)
}

// Plain wraps a stream for text of strangers, of which it passes on what is no control of a terminal.
func Plain(w io.Writer) io.Writer { return &stripper{out: w} }
