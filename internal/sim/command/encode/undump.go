package encode

import (
	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

// An undumper makes bytes of a dump.
type undumper struct {
	*xxd

	patch *command.Output // nil for standard output
	base  int64
	at    int64 // where the next byte would go
	want  int64 // where it is to go
}

// seek goes to where the next byte belongs.
func (u *undumper) seek() bool {
	to := u.base + u.want
	if to == u.at {
		return true
	}
	if u.patch != nil {
		u.w.Flush()
		if s, ok := u.patch.Desc().File.(kernel.Seeker); ok {
			if _, err := s.Seek(to, 0); err == nil {
				u.at = to
			}
		}
	}
	if to < u.at {
		u.t.Errorf("Sorry, cannot seek backwards.")
		return false
	}
	for ; u.at < to; u.at++ {
		u.t.Step(1)
		u.w.Byte(0)
	}
	return true
}

// revert makes bytes of a dump. A line is an offset and up to as many bytes as
// there are columns; the rest of it does not matter.
func (x *xxd) revert(r *command.Reader, patch *command.Output) int {
	u := &undumper{xxd: x, patch: patch, base: x.seek}
	if x.backwards {
		u.base = -u.base
	}
	plain := x.kind == 'p'
	n1, n2, n3 := -1, 0, 0 // the last digits; -1 is none
	column, garbage := x.cols, true
	rest := func() byte {
		for {
			c, err := r.ReadByte()
			if err != nil || c == '\n' {
				return '\n'
			}
		}
	}
	for {
		c, err := r.ReadByte()
		if err != nil {
			return 0
		}
		u.t.Step(1)
		if c == '\r' || plain && (c == ' ' || c == '\n' || c == '\t') {
			continue
		}
		n3, n2 = n2, n1
		n1 = hexValue(c)
		if n1 < 0 && garbage {
			continue
		}
		garbage = false
		if column >= x.cols {
			if plain {
				column = 0
			} else {
				if n1 < 0 {
					column = 0
				} else {
					u.want = u.want<<4 | int64(n1)
				}
				continue
			}
		}
		if !u.seek() {
			return 5
		}
		switch {
		case n2 >= 0 && n1 >= 0:
			u.w.Byte(byte(n2<<4 | n1))
			u.at++
			u.want++
			n1 = -1
			if column++; column >= x.cols && !plain {
				c = rest()
			}
		case n1 < 0 && n2 < 0 && n3 < 0:
			if c != '\n' {
				c = rest()
			}
		}
		if c == '\n' {
			if !plain {
				u.want = 0
			}
			column, garbage = x.cols, true
		}
	}
}
