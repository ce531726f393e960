package diff

import (
	"bytes"
	"strconv"
)

// show writes the differences as the style says.
func (d *differ) show(a, b *side, list []hunk) {
	switch d.style {
	case unset, normal:
		for _, h := range list {
			if !h.trivial {
				d.normal(a, b, h)
			}
		}
	case contextual, unified:
		d.grouped(a, b, list)
	case edScript:
		for i := len(list) - 1; i >= 0; i-- {
			if !list[i].trivial {
				d.ed(b, list[i])
			}
		}
	case forwardEd:
		for _, h := range list {
			if !h.trivial {
				d.forward(b, h)
			}
		}
	case rcs:
		for _, h := range list {
			if !h.trivial {
				d.rcs(b, h)
			}
		}
	case sideBySide:
		d.columns(a, b, list)
	case ifdef:
		d.merged(a, b, list)
	}
}

// colours of a part of the output.
const (
	gone  = "\x1b[31m"
	come  = "\x1b[32m"
	place = "\x1b[36m"
	bold  = "\x1b[1m"
	off   = "\x1b[0m"
)

// line writes a line behind a mark. An end without a newline is told of.
func (d *differ) line(mark string, line []byte, colour string) {
	w := d.w
	if d.colour && colour != "" {
		w.String(colour)
	}
	w.String(mark)
	whole := len(line) > 0 && line[len(line)-1] == '\n'
	body := line
	if whole {
		body = line[:len(line)-1]
	}
	if d.expand {
		col := 0
		for _, c := range body {
			if c == '\t' {
				for n := d.tab - col%d.tab; n > 0; n-- {
					w.Byte(' ')
					col++
				}
				continue
			}
			w.Byte(c)
			col++
		}
	} else {
		w.Bytes(body)
	}
	if d.colour && colour != "" {
		w.String(off)
	}
	w.Byte('\n')
	if !whole {
		w.String("\\ No newline at end of file\n")
	}
}

// mark puts the blank or tab behind a mark, if the line needs one.
func (d *differ) mark(c string, line []byte) string {
	switch {
	case d.noBlank && len(line) == 1 && line[0] == '\n':
		if c == " " {
			return ""
		}
		return c
	case d.initialTab && c == " ":
		return "\t"
	case d.initialTab:
		return c + "\t"
	}
	return c + " "
}

// span writes a range of lines, given from 0 and without its end.
func span(from, to int, sep string) string {
	if to-from > 1 {
		return strconv.Itoa(from+1) + sep + strconv.Itoa(to)
	}
	return strconv.Itoa(to)
}

func letter(h hunk) string {
	switch {
	case h.a0 == h.a1:
		return "a"
	case h.b0 == h.b1:
		return "d"
	}
	return "c"
}

func (d *differ) normal(a, b *side, h hunk) {
	head := span(h.a0, h.a1, ",") + letter(h) + span(h.b0, h.b1, ",")
	if d.colour {
		head = place + head + off
	}
	d.w.String(head + "\n")
	for _, line := range a.lines[h.a0:h.a1] {
		d.line(d.mark("<", line), line, gone)
	}
	if letter(h) == "c" {
		d.w.String("---\n")
	}
	for _, line := range b.lines[h.b0:h.b1] {
		d.line(d.mark(">", line), line, come)
	}
}

// grouped writes differences with the lines around them.
func (d *differ) grouped(a, b *side, list []hunk) {
	x, y := "--- ", "+++ "
	if d.style == contextual {
		x, y = "*** ", "--- "
	}
	begun := false
	found, searched := -1, 0
	for len(list) > 0 {
		n := 1
		for n < len(list) {
			near := 2*d.context + 1
			if list[n].trivial {
				near = d.context
			}
			if list[n].a0-list[n-1].a1 >= near {
				break
			}
			n++
		}
		group := list[:n]
		list = list[n:]
		all := true
		for i := range group {
			all = all && group[i].trivial
		}
		if all {
			continue
		}
		if !begun {
			begun = true
			for i, s := range []*side{a, b} {
				head := []string{x, y}[i] + d.header(s, i)
				if d.colour {
					head = bold + head + off
				}
				d.w.String(head + "\n")
			}
		}
		g := group[0]
		last := group[n-1]
		g.a0, g.b0 = max(0, g.a0-d.context), max(0, g.b0-d.context)
		g.a1, g.b1 = min(len(a.lines), last.a1+d.context), min(len(b.lines), last.b1+d.context)
		function := ""
		if d.function != nil {
			for i := g.a0 - 1; i >= searched; i-- {
				if ok, err := d.function.Match(bytes.TrimSuffix(a.lines[i], []byte{'\n'})); ok && err == nil {
					found = i
					break
				}
			}
			searched = max(searched, g.a0)
			if found >= 0 {
				function = functionText(a.lines[found])
			}
		}
		if d.style == unified {
			d.unified(a, b, g, group, function)
		} else {
			d.contextual(a, b, g, group, function)
		}
	}
}

// functionText is what is shown of a function's line.
func functionText(line []byte) string {
	line = bytes.TrimLeft(bytes.TrimSuffix(line, []byte{'\n'}), " \t")
	return " " + string(trimRight(line[:min(40, len(line))]))
}

func unifiedSpan(from, to int) string {
	switch to - from {
	case 0:
		return strconv.Itoa(from) + ",0"
	case 1:
		return strconv.Itoa(to)
	}
	return strconv.Itoa(from+1) + "," + strconv.Itoa(to-from)
}

func (d *differ) unified(a, b *side, g hunk, group []hunk, function string) {
	head := "@@ -" + unifiedSpan(g.a0, g.a1) + " +" + unifiedSpan(g.b0, g.b1) + " @@"
	if d.colour {
		head = place + head + off
	}
	d.w.String(head + function + "\n")
	tab := ""
	if d.initialTab {
		tab = "\t"
	}
	i := g.a0
	same := func(to int) {
		for ; i < to; i++ {
			line := a.lines[i]
			mark := " " + tab
			if d.initialTab {
				mark = tab
			}
			if d.noBlank && len(line) == 1 {
				mark = ""
			}
			d.line(mark, line, "")
		}
	}
	for _, h := range group {
		same(h.a0)
		for _, line := range a.lines[h.a0:h.a1] {
			d.line("-"+d.tabFor(line), line, gone)
		}
		for _, line := range b.lines[h.b0:h.b1] {
			d.line("+"+d.tabFor(line), line, come)
		}
		i = h.a1
	}
	same(g.a1)
}

func (d *differ) tabFor(line []byte) string {
	if d.initialTab && len(line) > 1 {
		return "\t"
	}
	return ""
}

func (d *differ) contextual(a, b *side, g hunk, group []hunk, function string) {
	d.w.String("***************" + function + "\n")
	span := func(from, to int) string {
		if to-from > 1 {
			return strconv.Itoa(from+1) + "," + strconv.Itoa(to)
		}
		return strconv.Itoa(to)
	}
	head := func(s string) {
		if d.colour {
			s = place + s + off
		}
		d.w.String(s + "\n")
	}
	head("*** " + span(g.a0, g.a1) + " ****")
	some := func(of func(h hunk) bool) bool {
		for _, h := range group {
			if of(h) {
				return true
			}
		}
		return false
	}
	part := func(lines [][]byte, from, to int, ends func(hunk) (int, int, int), mark, colour string) {
		k := 0
		for i := from; i < to; i++ {
			for k < len(group) {
				if _, e, _ := ends(group[k]); e > i {
					break
				}
				k++
			}
			m, c := " ", ""
			if k < len(group) {
				if s, _, others := ends(group[k]); s <= i {
					m, c = mark, colour
					if others > 0 {
						m = "!"
					}
				}
			}
			d.line(d.mark(m, lines[i]), lines[i], c)
		}
	}
	if some(func(h hunk) bool { return h.a1 > h.a0 }) {
		part(a.lines, g.a0, g.a1, func(h hunk) (int, int, int) { return h.a0, h.a1, h.b1 - h.b0 }, "-", gone)
	}
	head("--- " + span(g.b0, g.b1) + " ----")
	if some(func(h hunk) bool { return h.b1 > h.b0 }) {
		part(b.lines, g.b0, g.b1, func(h hunk) (int, int, int) { return h.b0, h.b1, h.a1 - h.a0 }, "+", come)
	}
}

// ed writes a hunk as commands of ed, which are applied from the end on.
func (d *differ) ed(b *side, h hunk) {
	d.w.String(span(h.a0, h.a1, ",") + letter(h) + "\n")
	if h.b0 == h.b1 {
		return
	}
	inserting := true
	for _, line := range b.lines[h.b0:h.b1] {
		if !inserting {
			d.w.String("a\n")
			inserting = true
		}
		if string(bytes.TrimSuffix(line, []byte{'\n'})) == "." {
			d.w.String("..\n.\ns/.//\n")
			inserting = false
			continue
		}
		d.raw(line)
	}
	if inserting {
		d.w.String(".\n")
	}
}

// raw writes a line with a newline in any case.
func (d *differ) raw(line []byte) {
	d.w.Bytes(line)
	if len(line) == 0 || line[len(line)-1] != '\n' {
		d.w.Byte('\n')
	}
}

func (d *differ) forward(b *side, h hunk) {
	d.w.String(letter(h) + span(h.a0, h.a1, " ") + "\n")
	if h.b0 == h.b1 {
		return
	}
	for _, line := range b.lines[h.b0:h.b1] {
		d.raw(line)
	}
	d.w.String(".\n")
}

func (d *differ) rcs(b *side, h hunk) {
	if h.a1 > h.a0 {
		d.w.String("d" + strconv.Itoa(h.a0+1) + " " + strconv.Itoa(h.a1-h.a0) + "\n")
	}
	if h.b1 > h.b0 {
		d.w.String("a" + strconv.Itoa(h.a1) + " " + strconv.Itoa(h.b1-h.b0) + "\n")
		for _, line := range b.lines[h.b0:h.b1] {
			d.w.Bytes(line)
		}
	}
}

// merged writes both files in one, for a C preprocessor.
func (d *differ) merged(a, b *side, list []hunk) {
	lines := func(part [][]byte) {
		for _, line := range part {
			d.raw(line)
		}
	}
	i := 0
	for _, h := range list {
		lines(a.lines[i:h.a0])
		switch letter(h) {
		case "a":
			d.w.String("#ifdef " + d.name + "\n")
			lines(b.lines[h.b0:h.b1])
			d.w.String("#endif /* " + d.name + " */\n")
		case "d":
			d.w.String("#ifndef " + d.name + "\n")
			lines(a.lines[h.a0:h.a1])
			d.w.String("#endif /* ! " + d.name + " */\n")
		default:
			d.w.String("#ifndef " + d.name + "\n")
			lines(a.lines[h.a0:h.a1])
			d.w.String("#else /* " + d.name + " */\n")
			lines(b.lines[h.b0:h.b1])
			d.w.String("#endif /* " + d.name + " */\n")
		}
		i = h.a1
	}
	lines(a.lines[i:])
}
