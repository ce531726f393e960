package diff

import (
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
)

// gutter is the least room between two columns.
const gutter = 3

// columns writes both files side by side.
func (d *differ) columns(a, b *side, list []hunk) {
	tab := d.tab
	if d.expand {
		tab = 1
	}
	offset := (d.width + tab + gutter) / (2 * tab) * tab
	p := page{d: d, half: max(0, min(offset-gutter, d.width-offset)), second: d.width}
	if p.half > 0 {
		p.second = offset
	}
	i, j := 0, 0
	same := func(to int) {
		for ; i < to; i, j = i+1, j+1 {
			switch {
			case d.suppress:
			case d.leftColumn:
				p.line(a.lines[i], '(', nil)
			default:
				p.line(a.lines[i], ' ', b.lines[j])
			}
		}
	}
	for _, h := range list {
		if h.trivial && h.a1-h.a0 == h.b1-h.b0 {
			continue
		}
		same(h.a0)
		for i < h.a1 && j < h.b1 {
			p.line(a.lines[i], '|', b.lines[j])
			i++
			j++
		}
		for ; i < h.a1; i++ {
			p.line(a.lines[i], '<', nil)
		}
		for ; j < h.b1; j++ {
			p.line(nil, '>', b.lines[j])
		}
	}
	same(len(a.lines))
}

// A page is the layout of two columns.
type page struct {
	d            *differ
	half, second int
}

func ended(line []byte) bool { return len(line) > 0 && line[len(line)-1] == '\n' }

func (p *page) line(left []byte, sep byte, right []byte) {
	col := 0
	newline := false
	if left != nil {
		newline = ended(left)
		col = p.text(left, 0)
	}
	if sep != ' ' {
		col = p.fill(col, (p.half+p.second-1)/2) + 1
		if sep == '|' && newline != ended(right) {
			sep = '\\'
			if newline {
				sep = '/'
			}
		}
		p.d.w.Byte(sep)
	}
	if right != nil {
		newline = newline || ended(right)
		if right[0] != '\n' {
			col = p.fill(col, p.second)
			p.text(right, col)
		}
	}
	if newline {
		p.d.w.Byte('\n')
	}
}

// fill goes from one column to another.
func (p *page) fill(from, to int) int {
	if !p.d.expand {
		for next := from + p.d.tab - from%p.d.tab; next <= to; next += p.d.tab {
			p.d.w.Byte('\t')
			from = next
		}
	}
	for ; from < to; from++ {
		p.d.w.Byte(' ')
	}
	return max(from, to)
}

// text writes as much of a line as fits, and tells where it ended.
func (p *page) text(line []byte, indent int) int {
	w, tab := p.d.w, p.d.tab
	in, out := 0, 0
	for k := 0; k < len(line); {
		c := line[k]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRune(line[k:])
			width := 1
			if r != utf8.RuneError || n > 1 {
				width = command.RuneWidth(r)
			}
			if in += width; in <= p.half {
				out = in
				w.Bytes(line[k : k+n])
			}
			k += n
			continue
		}
		k++
		switch c {
		case '\n':
			return out
		case '\t':
			n := tab - in%tab
			if in == out {
				stop := out + n
				if p.d.expand {
					for stop = min(stop, p.half); out < stop; out++ {
						w.Byte(' ')
					}
				} else if stop < p.half {
					out = stop
					w.Byte('\t')
				}
			}
			in += n
		case '\r':
			w.Byte(c)
			p.fill(0, indent)
			in, out = 0, 0
		case '\b':
			if in > 0 {
				if in--; in < p.half {
					for ; out < in; out++ {
						w.Byte(' ')
					}
					if out > in {
						out = in
						w.Byte(c)
					}
				}
			}
		default:
			if c < ' ' || c == 0x7f {
				if in < p.half {
					w.Byte(c)
				}
				continue
			}
			if in++; in <= p.half {
				out = in
				w.Byte(c)
			}
		}
	}
	return out
}
