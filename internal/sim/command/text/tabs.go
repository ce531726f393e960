package text

import (
	"bytes"
	"math"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

// digitOptions are -1 to -9 of old, which begin a list of tab stops.
func digitOptions() []command.Option {
	var list []command.Option
	for c := byte('0'); c <= '9'; c++ {
		list = append(list, command.Option{Short: c, Arg: command.Optional})
	}
	return list
}

var expandSpec = command.Spec{
	Name: "expand", Synopsis: "[OPTION]... [FILE]...",
	About: "Convert tabs in each FILE to spaces, writing to standard output.",
	Options: []command.Option{
		{Short: 'i', Long: "initial", Help: "do not convert tabs after non blanks"},
		{Short: 't', Long: "tabs", Arg: command.Required, Name: "LIST", Help: "have tabs N characters apart, or use a comma separated list of positions; the last may have a prefix / or +"},
	},
}

var unexpandSpec = command.Spec{
	Name: "unexpand", Synopsis: "[OPTION]... [FILE]...",
	About: "Convert blanks in each FILE to tabs, writing to standard output.",
	Options: []command.Option{
		{Short: 'a', Long: "all", Help: "convert all blanks, instead of just initial blanks"},
		{Long: "first-only", Help: "convert only leading sequences of blanks (overrides -a)"},
		{Short: 't', Long: "tabs", Arg: command.Required, Name: "LIST", Help: "have tabs N characters apart, or use a comma separated list of positions (enables -a)"},
	},
}

// stops are tab stops: a list, and what repeats behind it.
type stops struct {
	list   []uint64
	every  uint64 // behind the list: multiples of this
	beyond uint64 // behind the list: its last and multiples of this
	given  bool
}

// parse reads a list; several are one.
func (s *stops) parse(t *kernel.Task, text string) bool {
	s.given = true
	for text != "" {
		c := text[0]
		if c == ',' || c == ' ' || c == '\t' {
			text = text[1:]
			continue
		}
		prefix := byte(0)
		for text != "" && (text[0] == '/' || text[0] == '+') {
			prefix = text[0]
			text = text[1:]
		}
		n := 0
		for n < len(text) && text[n] >= '0' && text[n] <= '9' {
			n++
		}
		number := text[:n]
		text = text[n:]
		if text != "" && strings.IndexByte(", \t", text[0]) < 0 {
			if n > 0 && (text[0] == '/' || text[0] == '+') {
				t.Errorf("'%c' specifier not at start of number: %s", text[0], command.Quote(text))
			} else {
				t.Errorf("tab size contains invalid character(s): %s", command.Quote(text))
			}
			return false
		}
		if n == 0 {
			continue
		}
		v, err := command.ParseUint(number, "")
		if err != nil {
			t.Errorf("tab stop is too large %s", command.Quote(number))
			return false
		}
		if !s.take(t, prefix, v) {
			return false
		}
	}
	return true
}

func (s *stops) take(t *kernel.Task, prefix byte, v uint64) bool {
	switch prefix {
	case '/':
		if s.every != 0 {
			t.Errorf("'/' specifier only allowed with the last value")
			return false
		}
		s.every = v
	case '+':
		if s.beyond != 0 {
			t.Errorf("'+' specifier only allowed with the last value")
			return false
		}
		s.beyond = v
	default:
		if s.every != 0 || s.beyond != 0 {
			kind := "/"
			if s.beyond != 0 {
				kind = "+"
			}
			t.Errorf("'%s' specifier only allowed with the last value", kind)
			return false
		}
		s.list = append(s.list, v)
	}
	return true
}

// settle looks whether the list makes sense, and gives it its short forms.
func (s *stops) settle(t *kernel.Task) bool {
	last := uint64(0)
	for _, v := range s.list {
		if v == 0 {
			t.Errorf("tab size cannot be 0")
			return false
		}
		if v <= last {
			t.Errorf("tab sizes must be ascending")
			return false
		}
		last = v
	}
	if s.every != 0 && s.beyond != 0 {
		t.Errorf("'/' specifier is mutually exclusive with '+'")
		return false
	}
	switch {
	case len(s.list) == 0 && s.every == 0 && s.beyond == 0:
		s.every = 8
	case len(s.list) == 0 && s.beyond != 0:
		s.every = s.beyond
	case len(s.list) == 1 && s.every == 0 && s.beyond == 0:
		s.every, s.list = s.list[0], nil
	}
	return true
}

// next gives the first stop behind a column; ok is false where there is none.
// at is the place in the list, to go on from.
func (s *stops) next(column uint64, at *int) (stop uint64, ok bool) {
	for *at < len(s.list) {
		if v := s.list[*at]; column < v {
			return v, true
		}
		*at++
	}
	switch {
	case len(s.list) == 0 || s.every != 0:
		if s.every == 0 {
			return 0, false
		}
		return column + s.every - column%s.every, true
	case s.beyond != 0:
		last := s.list[len(s.list)-1]
		return column + s.beyond - (column-last)%s.beyond, true
	}
	return 0, false
}

func runExpand(t *kernel.Task) int {
	spec := expandSpec
	spec.Options = append(digitOptions(), spec.Options...)
	a, status, ok := spec.Parse(t)
	if !ok {
		return status
	}
	var s stops
	for _, f := range a.Flags {
		switch {
		case f.Key == "t" && !s.parse(t, f.Value):
			return 1
		case f.Key >= "0" && f.Key <= "9" && !s.parse(t, f.Key+f.Value):
			return 1
		}
	}
	if !s.settle(t) {
		return 1
	}
	initial := a.Has("i")
	w := command.Stdout(t)
	return command.EachFile(t, command.InputNames(a.Operands), func(_ string, r *command.Reader) {
		column, at, converting := uint64(0), 0, true
		for b, ok := r.Piece(); ok; b, ok = r.Piece() {
			t.Step(len(b) >> 2)
			for len(b) > 0 {
				n := plainRun(b)
				w.Bytes(b[:n])
				column += uint64(n)
				if n > 0 && initial && converting && !isAll(b[:n], ' ') {
					converting = false
				}
				b = b[n:]
				if len(b) == 0 {
					break
				}
				c := b[0]
				b = b[1:]
				switch {
				case c == '\n':
					column, at, converting = 0, 0, true
					t.Step(1)
				case c == '\t' && converting:
					next, ok := s.next(column, &at)
					if !ok {
						next = column + 1
					}
					t.Step(int(min(next-column, 1<<40)) >> 4)
					for ; column < next; column++ {
						w.Byte(' ')
					}
					continue
				case c == '\b':
					if column > 0 {
						column--
					}
					at = max(0, at-1)
				default:
					column++
				}
				if initial && c != ' ' && c != '\t' && c != '\n' {
					converting = false
				}
				w.Byte(c)
			}
		}
	})
}

func isAll(b []byte, c byte) bool {
	for _, x := range b {
		if x != c {
			return false
		}
	}
	return true
}

// plainRun tells how many bytes go through as they are.
func plainRun(b []byte) int {
	n := len(b)
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		n = i
	}
	if i := bytes.IndexByte(b[:n], '\t'); i >= 0 {
		n = i
	}
	if i := bytes.IndexByte(b[:n], '\b'); i >= 0 {
		n = i
	}
	return n
}

func runUnexpand(t *kernel.Task) int {
	spec := unexpandSpec
	spec.Options = append(digitOptions(), spec.Options...)
	for i := range spec.Options[:10] {
		spec.Options[i].Arg = command.None
	}
	spec.Options = append(spec.Options, command.Option{Short: ','})
	a, status, ok := spec.Parse(t)
	if !ok {
		return status
	}
	u := &unexpander{t: t, w: command.Stdout(t), all: a.Has("a")}
	list, old := "", false
	for _, f := range a.Flags {
		switch {
		case f.Key == "t":
			u.all = true
			if !u.stops.parse(t, f.Value) {
				return 1
			}
		case f.Key == ",":
			list += ","
			old = true
		case len(f.Key) == 1 && f.Key >= "0" && f.Key <= "9":
			list += f.Key
			old = true
		}
	}
	if old && !u.stops.parse(t, list) {
		return 1
	}
	if a.Has("first-only") {
		u.all = false
	}
	if !u.stops.settle(t) {
		return 1
	}
	u.begin()
	status = command.EachFile(t, command.InputNames(a.Operands), func(_ string, r *command.Reader) {
		for b, ok := r.Piece(); ok; b, ok = r.Piece() {
			t.Step(len(b))
			for _, c := range b {
				u.take(c)
			}
		}
	})
	u.release()
	return status
}

// An unexpander holds blanks back until it knows whether a tab is as good.
type unexpander struct {
	t       *kernel.Task
	w       *command.Writer
	stops   stops
	all     bool
	column  uint64
	at      int
	active  bool // blanks of this line are still converted
	blank   bool // so was the byte before
	single  bool // the first held blank stands just before a tab stop
	pending []byte
}

func (u *unexpander) begin() {
	u.column, u.at, u.active, u.blank, u.single = 0, 0, true, true, false
}

// release writes the blanks that were held.
func (u *unexpander) release() {
	if len(u.pending) > 1 && u.single {
		u.pending[0] = '\t'
	}
	u.w.Bytes(u.pending)
	u.pending, u.single = u.pending[:0], false
}

func (u *unexpander) take(c byte) {
	if u.active {
		blank := c == ' ' || c == '\t'
		if blank && u.hold(&c) {
			return
		}
		if !blank {
			if c == '\b' {
				if u.column > 0 {
					u.column--
				}
				u.at = max(0, u.at-1)
			} else if u.column < math.MaxUint64 {
				u.column++
			}
		}
		if len(u.pending) > 0 {
			u.release()
		}
		u.blank = blank
		u.active = u.active && (u.all || blank)
	}
	u.w.Byte(c)
	if c == '\n' {
		u.begin()
		u.t.Step(1)
	}
}

// hold takes in a blank. It is kept if the answer is true; otherwise it is to
// be written, and may be a tab now.
func (u *unexpander) hold(c *byte) bool {
	next, ok := u.stops.next(u.column, &u.at)
	if !ok {
		u.active = false
		return false
	}
	if *c == '\t' {
		u.column = next
		if len(u.pending) > 0 {
			u.pending[0] = '\t'
		}
	} else {
		u.column++
		if !u.blank || u.column != next {
			u.single = u.single || u.column == next
			u.pending = append(u.pending, ' ')
			u.blank = true
			if len(u.pending) > 1<<16 {
				u.t.Bound("record", int64(len(u.pending)), u.t.K.Limits.Record)
			}
			return true
		}
		*c = '\t'
		if len(u.pending) > 0 {
			u.pending[0] = '\t'
		}
	}
	if u.single {
		u.pending = u.pending[:1]
	} else {
		u.pending = u.pending[:0]
	}
	return false
}
