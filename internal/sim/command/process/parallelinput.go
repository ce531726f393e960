package process

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/regex"
)

// A source is where parallel has arguments from.
type source struct {
	values []string
	file   string // of ::::, -a and standard input
	isFile bool
	linked bool // it goes on together with the one before it
}

// sources takes ":::" and its like from the arguments; what is left is the
// command.
func sources(args []string, sep, fileSep string) (cmd []string, list []*source) {
	var now *source
	files := false
	for _, a := range args {
		linked := false
		switch a {
		case sep, fileSep:
		case sep + "+", fileSep + "+":
			linked, a = true, a[:len(a)-1]
		default:
			switch {
			case now == nil:
				cmd = append(cmd, a)
			case files:
				list = append(list, &source{file: a, isFile: true, linked: now.linked})
			default:
				now.values = append(now.values, a)
			}
			continue
		}
		files = a == fileSep
		now = &source{linked: linked}
		if !files {
			list = append(list, now)
		}
	}
	return cmd, list
}

// A feed gives the arguments, one record after the other.
type feed struct {
	p      *parallel
	in     *command.Reader // where there is one source, and that a file
	all    [][][]string    // of each group of linked sources, its records
	at     []int
	done   bool
	back   [][]string // records that were read ahead
	shuf   [][]string
	mixed  bool
	colsep *regex.Regexp
}

// open begins with the sources; false is that it has complained.
func (f *feed) open(list []*source) bool {
	p := f.p
	if len(list) == 1 && list[0].isFile {
		in, err := command.OpenReader(p.t, list[0].file)
		if err != nil {
			p.t.Errorf("Error: Cannot open input file `%s': %s.", list[0].file, reason(err))
			return false
		}
		f.in = in
	} else if !f.load(list) {
		return false
	}
	f.at = make([]int, len(f.all))
	for _, g := range f.all {
		f.done = f.done || len(g) == 0
	}
	if p.header && f.in != nil {
		first, ok := f.read()
		if ok {
			p.names = first
		}
	}
	if p.shuf {
		for r, ok := f.read(); ok; r, ok = f.read() {
			f.shuf = append(f.shuf, r)
			p.t.Grow(weight(r))
		}
		rand.Shuffle(len(f.shuf), func(i, k int) { f.shuf[i], f.shuf[k] = f.shuf[k], f.shuf[i] }) //nolint:gosec // nobody's secret hangs on the order
		f.mixed = true
	}
	return true
}

// load reads all sources, because they are combined.
func (f *feed) load(list []*source) bool {
	p := f.p
	for i, s := range list {
		values := s.values
		if s.isFile {
			in, err := command.OpenReader(p.t, s.file)
			if err != nil {
				p.t.Errorf("Error: Cannot open input file `%s': %s.", s.file, reason(err))
				return false
			}
			own := &feed{p: p, in: in}
			for v, ok := own.line(); ok; v, ok = own.line() {
				values = append(values, v)
				p.t.Grow(len(v) + 16)
			}
			in.Close()
		}
		if p.header && len(values) > 0 {
			p.names = append(p.names, f.columns(values[0])...)
			values = values[1:]
		}
		records := make([][]string, len(values))
		for k, v := range values {
			records[k] = f.columns(v)
		}
		p.t.Grow(40 * len(values))
		if i == 0 || !s.linked && !p.link {
			f.all = append(f.all, records)
			continue
		}
		f.all[len(f.all)-1] = f.linked(f.all[len(f.all)-1], records)
	}
	return true
}

// linked puts two sources side by side: the shorter ends it, or begins again
// by --link.
func (f *feed) linked(a, b [][]string) [][]string {
	n := min(len(a), len(b))
	if f.p.link && n > 0 {
		n = max(len(a), len(b))
	}
	out := make([][]string, n)
	for i := range out {
		out[i] = slices.Concat(a[i%len(a)], b[i%len(b)])
		f.p.t.Step(1)
	}
	f.p.t.Grow(56 * n)
	return out
}

// columns cuts an argument by --colsep.
func (f *feed) columns(s string) []string {
	if f.colsep == nil {
		return []string{f.trim(s)}
	}
	var list []string
	b := []byte(s)
	last := 0
	for from := 0; from <= len(b); {
		start, end, err := f.colsep.Span(b, from)
		if err != nil || start < 0 {
			break
		}
		if end == start {
			from = end + 1
			continue
		}
		list = append(list, f.trim(s[last:start]))
		last, from = end, end
	}
	return append(list, f.trim(s[last:]))
}

func (f *feed) trim(s string) string {
	const blank = " \t\r\n"
	if strings.Contains(f.p.trims, "l") {
		s = strings.TrimLeft(s, blank)
	}
	if strings.Contains(f.p.trims, "r") {
		s = strings.TrimRight(s, blank)
	}
	return s
}

// line reads one argument of a file.
func (f *feed) line() (string, bool) {
	b, _, ok := f.in.Line(f.p.delim)
	if !ok {
		return "", false
	}
	s := string(b)
	f.p.t.Step(1 + len(s)>>4)
	if f.p.hasEnd && s == f.p.end {
		return "", false
	}
	return s, true
}

// next gives a record.
func (f *feed) next() ([]string, bool) {
	for {
		var r []string
		var ok bool
		switch {
		case len(f.back) > 0:
			r, f.back = f.back[0], f.back[1:]
			return r, true
		case f.mixed:
			if ok = len(f.shuf) > 0; ok {
				r, f.shuf = f.shuf[0], f.shuf[1:]
			}
		default:
			r, ok = f.read()
		}
		if !ok {
			return nil, false
		}
		if f.p.noEmpty && strings.TrimSpace(strings.Join(r, "")) == "" {
			continue
		}
		return r, true
	}
}

func (f *feed) read() ([]string, bool) {
	f.p.t.Step(2)
	if f.done {
		return nil, false
	}
	if f.in != nil {
		s, ok := f.line()
		if !ok {
			f.done = true
			return nil, false
		}
		if f.p.lines > 0 { // a line that ends in a blank goes on
			for strings.HasSuffix(s, " ") || strings.HasSuffix(s, "\t") {
				more, ok := f.line()
				if !ok {
					break
				}
				s = strings.TrimRight(s, " \t") + " " + more
				f.p.t.Bound("string", int64(len(s)), f.p.t.K.Limits.Input)
			}
		}
		return f.columns(s), true
	}
	var r []string
	for g, i := range f.at {
		r = append(r, f.all[g][i]...)
	}
	for g := len(f.at) - 1; ; g-- {
		if g < 0 {
			f.done = true
			break
		}
		if f.at[g]++; f.at[g] < len(f.all[g]) {
			break
		}
		f.at[g] = 0
	}
	return r, true
}

func (f *feed) close() {
	if f.in != nil {
		f.in.Close()
	}
}

func weight(r []string) int {
	n := 24
	for _, s := range r {
		n += len(s) + 16
	}
	return n
}

// A chop cuts the input of --pipe into blocks that end with a record.
type chop struct {
	p    *parallel
	in   *command.Reader
	rest []byte
	head []byte
	end  bool
	held int
}

// next gives a block, which is the caller's.
func (c *chop) next() ([]byte, bool) {
	t := c.p.t
	for {
		if n := c.cut(); n > 0 {
			block := slices.Concat(c.head, c.rest[:n])
			c.rest = c.rest[n:] // growing it leaves behind what went before
			c.held -= n
			t.Shrink(n)
			t.Step(1 + n>>6)
			return block, true
		}
		if c.end {
			return nil, false
		}
		b, ok := c.in.Piece()
		if !ok {
			c.end = true
			continue
		}
		t.Bound("input", int64(len(c.rest)+len(b)), t.K.Limits.Input)
		t.Grow(len(b))
		c.held += len(b)
		c.rest = append(c.rest, b...)
		t.Step(1 + len(b)>>6)
	}
}

// cut tells how much of what was read is a block; 0 is none yet.
func (c *chop) cut() int {
	p := c.p
	if c.end && len(c.rest) == 0 {
		return 0
	}
	sep := []byte(p.recEnd)
	if p.records > 0 {
		n := 0
		for range p.records {
			i := bytes.Index(c.rest[n:], sep)
			if i < 0 {
				if c.end {
					return len(c.rest)
				}
				return 0
			}
			n += i + len(sep)
		}
		return n
	}
	if len(c.rest) < p.block {
		if c.end {
			return len(c.rest)
		}
		return 0
	}
	if len(sep) == 0 {
		return p.block
	}
	if i := bytes.LastIndex(c.rest[:p.block], sep); i >= 0 {
		return i + len(sep)
	}
	if i := bytes.Index(c.rest[max(0, p.block-len(sep)):], sep); i >= 0 {
		return max(0, p.block-len(sep)) + i + len(sep)
	}
	if c.end {
		return len(c.rest)
	}
	return 0
}
