package shell

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/quote"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/variable"
)

const mapfileUsage = "[-d delim] [-n count] [-O origin] [-s count] [-t] [-u fd] [-C callback] [-c quantum] [array]\n"

// biMapfile is mapfile and readarray.
func biMapfile(s *Shell, args []string) int {
	m := mapping{s: s, me: args[0], delim: '\n', quantum: 5000, array: "MAPFILE", origin: -1}
	if st := m.options(args[1:]); st >= 0 {
		return st
	}
	d := s.t.FD(m.fd)
	if d == nil {
		s.complain("%s: %d: invalid file descriptor: Bad file descriptor", m.me, m.fd)
		return 1
	}
	s.flushOut()
	in := &input{t: s.t, fd: m.fd}
	in.open(d)
	defer in.finish()
	if err := m.run(in); err != nil {
		s.complain("%s: %s", m.me, err)
		return 1
	}
	return 0
}

// A mapping is a run of mapfile.
type mapping struct {
	s        *Shell
	me       string
	delim    byte
	count    int
	origin   int64 // -1 clears the array
	skip     int
	trim     bool
	fd       int
	callback string
	quantum  int
	array    string
}

func (m *mapping) options(args []string) int {
	s := m.s
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		a := args[0]
		args = args[1:]
		if a == "--" {
			break
		}
		for i := 1; i < len(a); i++ {
			c := a[i]
			if c == 't' {
				m.trim = true
				continue
			}
			if strings.IndexByte("dnOsuCc", c) < 0 {
				s.complain("%s: -%c: invalid option", m.me, c)
				s.errout(m.me + ": usage: " + m.me + " " + mapfileUsage)
				return 2
			}
			value := a[i+1:]
			if value == "" {
				if len(args) == 0 {
					s.complain("%s: -%c: option requires an argument", m.me, c)
					s.errout(m.me + ": usage: " + m.me + " " + mapfileUsage)
					return 2
				}
				value, args = args[0], args[1:]
			}
			if st := m.option(c, value); st >= 0 {
				return st
			}
			break
		}
	}
	if len(args) > 0 {
		if args[0] == "" {
			s.complain("%s: empty array variable name", m.me)
			return 1
		}
		m.array = args[0]
	}
	if !variable.Valid(m.array) {
		s.complain("%s: `%s': not a valid identifier", m.me, m.array)
		return 1
	}
	return -1
}

func (m *mapping) option(c byte, arg string) int {
	s := m.s
	switch c {
	case 'd':
		m.delim = 0
		if arg != "" {
			m.delim = arg[0]
		}
		return -1
	case 'C':
		m.callback = arg
		return -1
	}
	n, err := strconv.ParseInt(arg, 10, 64)
	what := ""
	switch c {
	case 'n', 's':
		if err != nil || n < 0 {
			what = "invalid line count"
		} else if c == 'n' {
			m.count = int(n)
		} else {
			m.skip = int(n)
		}
	case 'O':
		if err != nil || n < 0 {
			what = "invalid array origin"
		}
		m.origin = n
	case 'u':
		if err != nil || n < 0 {
			what = "invalid file descriptor specification"
		}
		m.fd = int(n)
	case 'c':
		if err != nil || n <= 0 {
			what = "invalid callback quantum"
		}
		m.quantum = int(n)
	}
	if what != "" {
		s.complain("%s: %s: %s", m.me, arg, what)
		return 1
	}
	return -1
}

func (m *mapping) run(in *input) error {
	s := m.s
	if v, _ := s.vars.Var(m.array); v != nil {
		switch {
		case v.Is(variable.Associate):
			return errors.New(m.array + ": not an indexed array")
		case v.Is(variable.ReadOnly):
			return &variable.Error{Kind: variable.IsReadOnly, Name: m.array}
		}
	}
	at := max(m.origin, 0)
	var list []string
	if m.origin < 0 {
		if err := s.vars.SetValues(m.array, nil, 0, true); err != nil {
			return err
		}
	}
	put := func() error {
		if len(list) == 0 {
			return nil
		}
		err := s.vars.SetValues(m.array, list, at, m.origin < 0 && at == 0)
		at += int64(len(list))
		list = nil
		return err
	}
	size := 0
	for n := 0; m.count == 0 || n < m.count; {
		text, ok, err := m.line(in)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if m.skip > 0 {
			m.skip--
			continue
		}
		n++
		if m.callback != "" && n%m.quantum == 0 {
			if err := put(); err != nil {
				return err
			}
			s.runText(m.callback+" "+variable.Key(at)+" "+quote.Reuse(text), s.line)
			if s.flow != flowNone {
				return nil
			}
		}
		list = append(list, text)
		if size += len(text) + 16; m.origin >= 0 || m.callback != "" || size > 1<<20 {
			size = 0
			if err := put(); err != nil {
				return err
			}
		}
	}
	return put()
}

// line reads a line; ok is false at the end.
func (m *mapping) line(in *input) (text string, ok bool, err error) {
	var b []byte
	for {
		chunk, err := in.more()
		if err == linux.EINTR {
			return "", false, err
		}
		if err != nil {
			// What cannot be read is at its end, as in bash.
			return textOf(b), len(b) > 0, nil //nolint:nilerr // see above
		}
		n := bytes.IndexByte(chunk, m.delim)
		if n < 0 {
			b = append(b, chunk...)
			in.take(len(chunk))
			m.s.t.Bound("string", int64(len(b)), m.s.t.K.Limits.String)
			continue
		}
		end := n + 1
		if m.trim || m.delim == 0 {
			end = n
		}
		if len(b) == 0 {
			text = textOf(chunk[:end])
		} else {
			text = textOf(append(b, chunk[:end]...))
		}
		in.take(n + 1)
		m.s.t.Step(1)
		return text, true, nil
	}
}

// textOf gives bytes as a value, which ends at a NUL.
func textOf(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}
