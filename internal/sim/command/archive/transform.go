package archive

import (
	"errors"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/regex"
)

// A substitution changes names as sed's s does.
type substitution struct {
	t      *kernel.Task
	re     *regex.Regexp
	with   string
	global bool
	nth    int
	links  bool // of symbolic links too
}

// A meter charges a task for matching.
type meter struct{ t *kernel.Task }

func (m meter) Step(n int) error {
	m.t.Step(n)
	return nil
}

func (m meter) Grow(n int) error {
	m.t.Grow(n)
	return nil
}

func newSubstitution(t *kernel.Task, expr string) (*substitution, error) {
	bad := errors.New("Invalid transform expression") //nolint:staticcheck // tar's words
	if len(expr) < 4 || expr[0] != 's' {
		return nil, bad
	}
	sep := expr[1]
	var parts []string
	var b strings.Builder
	i := 2
	for ; i < len(expr) && len(parts) < 2; i++ {
		switch {
		case expr[i] == '\\' && i+1 < len(expr):
			if expr[i+1] != sep {
				b.WriteByte('\\')
			}
			i++
			b.WriteByte(expr[i])
		case expr[i] == sep:
			parts = append(parts, b.String())
			b.Reset()
		default:
			b.WriteByte(expr[i])
		}
	}
	if len(parts) < 2 {
		return nil, bad
	}
	s := &substitution{t: t, with: parts[1], nth: 1, links: true}
	o := regex.Options{Flavour: regex.BRE, Meter: meter{t}}
	flags := expr[i:]
	for k := 0; k < len(flags); k++ {
		switch c := flags[k]; {
		case c == 'g':
			s.global = true
		case c == 'i':
			o.IgnoreCase = true
		case c == 'x':
			o.Flavour = regex.ERE
		case c == 'S':
			s.links = false
		case strings.IndexByte("rRshH", c) >= 0:
		case c >= '1' && c <= '9':
			end := k
			for end < len(flags) && flags[end] >= '0' && flags[end] <= '9' {
				end++
			}
			s.nth, _ = strconv.Atoi(flags[k:end]) // digits
			k = end - 1
		default:
			return nil, errors.New("Unknown flag in transform expression: " + string(c))
		}
	}
	var err error
	if s.re, err = regex.Compile(parts[0], o); err != nil {
		return nil, errors.New("Invalid transform expression: " + err.Error())
	}
	return s, nil
}

func (s *substitution) apply(name string) string {
	src := []byte(name)
	out := kernel.NewText(s.t)
	defer out.Free()
	var m []int
	at, n := 0, 0
	for at <= len(src) {
		found, err := s.re.Find(src, at, m)
		if err != nil || found == nil {
			break
		}
		m = found
		n++
		_, _ = out.Write(src[at:m[0]]) // it does not fail
		if n >= s.nth {
			s.expand(out, src, m)
		} else {
			_, _ = out.Write(src[m[0]:m[1]])
		}
		at = m[1]
		if m[0] == m[1] {
			if at < len(src) {
				out.Byte(src[at])
			}
			at++
		}
		if n >= s.nth && !s.global {
			break
		}
	}
	if at < len(src) {
		_, _ = out.Write(src[at:])
	}
	return out.Text()
}

func (s *substitution) expand(out *kernel.Builder, src []byte, m []int) {
	fold := byte(0)
	once := byte(0)
	write := func(t string) {
		s.t.Step(len(t) >> 6)
		for i := range len(t) {
			c := t[i : i+1]
			switch {
			case once == 'u':
				c = strings.ToUpper(c)
			case once == 'l':
				c = strings.ToLower(c)
			case fold == 'U':
				c = strings.ToUpper(c)
			case fold == 'L':
				c = strings.ToLower(c)
			}
			once = 0
			out.WriteString(c)
		}
	}
	group := func(n int) {
		if 2*n+1 < len(m) && m[2*n] >= 0 {
			write(string(src[m[2*n]:m[2*n+1]]))
		}
	}
	for i := 0; i < len(s.with); i++ {
		c := s.with[i]
		switch {
		case c == '&':
			group(0)
		case c == '\\' && i+1 < len(s.with):
			i++
			switch d := s.with[i]; {
			case d >= '0' && d <= '9':
				group(int(d - '0'))
			case d == 'U' || d == 'L':
				fold = d
			case d == 'E':
				fold = 0
			case d == 'u' || d == 'l':
				once = d
			case d == 'n':
				write("\n")
			default:
				write(s.with[i : i+1])
			}
		default:
			write(s.with[i : i+1])
		}
	}
}
