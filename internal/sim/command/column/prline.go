package column

import (
	"strconv"
	"strings"
)

func (p *printer) print(rows [][]*string, numbers [][]int, date, title string, feeds []*feed) {
	used := 0
	if !p.bare {
		p.head(date, title)
	}
	for i, r := range rows {
		p.row(r, numbers[i])
		used++
		if p.double {
			p.w.Byte('\n')
		}
	}
	switch {
	case p.bare && !p.continuous && p.fed(feeds):
		p.w.Byte('\f')
	case p.bare:
	case p.feeds:
		p.w.Byte('\f')
	default:
		rest := p.body - used
		if p.double {
			rest *= 2
			if (p.length-10)%2 != 0 {
				rest++
			}
		}
		p.w.Repeat('\n', rest+5)
	}
}

func (p *printer) head(date, title string) {
	page := "Page " + strconv.Itoa(p.page)
	free := max(0, p.width-len(date)-textWidth(title)-len(page))
	left := free / 2
	space := func(n int) string { return strings.Repeat(" ", max(1, n)) }
	margin := strings.Repeat(" ", p.margin)
	p.w.String(margin + "\n\n" + margin + date + space(left) + title + space(free-left) + page + "\n\n\n")
}

// row writes the cells of a row in their columns.
func (p *printer) row(cells []*string, numbers []int) {
	p.position, p.spaces = 0, 0
	p.pad(p.margin)
	if p.numbers && p.merge {
		p.writeNumber(numbers[0])
	}
	start := p.position + p.spaces
	for i, s := range cells {
		if i > 0 {
			p.gap(start, i)
		}
		if s == nil {
			p.flush()
			continue
		}
		room := p.column
		if p.numbers && !p.merge {
			p.writeNumber(numbers[i])
			room -= p.numberWidth
		}
		text := p.visible(*s)
		if p.truncate {
			text = cutColumns(text, room)
		}
		for k := range len(text) {
			p.put(text[k])
		}
	}
	p.spaces = 0
	p.w.Byte('\n')
}

// gap goes to the start of a column, with the separator before it.
func (p *printer) gap(start, i int) {
	if p.join {
		for k := range len(p.separator) {
			p.put(p.separator[k])
		}
		return
	}
	to := start + i*(p.column+len(p.separator)) - len(p.separator)
	if n := to - p.position - p.spaces; n > 0 {
		p.pad(n)
	}
	for k := range len(p.separator) {
		p.put(p.separator[k])
	}
	if p.numbers {
		p.flush()
	}
}

func (p *printer) writeNumber(n int) {
	s := strconv.Itoa(n)
	if len(s) > p.digits {
		s = s[len(s)-p.digits:]
	}
	for range p.digits - len(s) {
		p.put(' ')
	}
	for k := range len(s) {
		p.put(s[k])
	}
	if p.numberSep != '\t' {
		p.put(p.numberSep)
		return
	}
	if p.columns > 1 {
		p.pad(p.numberWidth - p.digits)
		return
	}
	p.flush()
	p.w.Byte('\t')
	p.position += 8 - p.position%8
}

func (p *printer) pad(n int) {
	for range n {
		p.put(' ')
	}
}

// put writes a byte; blanks wait until it is known whether tabs will do.
func (p *printer) put(c byte) {
	if c == ' ' && p.tabify {
		p.spaces++
		return
	}
	p.flush()
	p.w.Byte(c)
	switch {
	case c == '\t':
		p.position += 8 - p.position%8
	case c == '\b':
		p.position = max(0, p.position-1)
	case c >= ' ' && c < 127:
		p.position++
	}
}

func (p *printer) flush() {
	goal := p.position + p.spaces
	at := p.position
	if p.tabify {
		for goal-at > 1 {
			next := at + p.outWidth - at%p.outWidth
			if next > goal {
				break
			}
			p.w.Byte(p.outTab)
			at = next
		}
	}
	p.w.Repeat(' ', goal-at)
	p.position, p.spaces = goal, 0
}

// visible expands tabs, and shows control characters if that is asked for.
func (p *printer) visible(s string) string {
	if !p.expand && !p.carets && !p.octal {
		return s
	}
	b := make([]byte, 0, len(s)+16)
	column := 0
	for i := range len(s) {
		c := s[i]
		from := len(b)
		switch {
		case p.expand && c == p.inTab || c == '\t' && p.expand:
			for n := p.inWidth - column%p.inWidth; n > 0; n-- {
				b = append(b, ' ')
			}
		case c >= ' ' && c < 127 || c == '\t':
			b = append(b, c)
		case p.octal, p.carets && c >= 128:
			b = append(b, '\\', '0'+c>>6, '0'+c>>3&7, '0'+c&7)
		case p.carets && c < ' ':
			b = append(b, '^', c+64)
		case p.carets:
			b = append(b, '^', '?')
		default:
			b = append(b, c)
		}
		column += len(b) - from
		if len(b) > 1<<16 {
			p.t.Bound("record", int64(len(b)), p.t.K.Limits.Record)
		}
	}
	return string(b)
}

// cutColumns cuts a line at a width.
func cutColumns(s string, width int) string {
	column := 0
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\t':
			column += 8 - column%8
		case c == '\b':
			column = max(0, column-1)
		case c >= ' ' && c < 127:
			column++
		}
		if column > width {
			return s[:i]
		}
	}
	return s
}
