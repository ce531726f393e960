package file

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/quote"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// quote writes a name as the options want it.
func (l *lister) quote(name string) string {
	s := name
	switch l.quoting {
	case "shell":
		s = quote.Plain(name)
	case "shell-always":
		s = quote.PlainName(name)
	case "shell-escape":
		s = quote.Shell(name)
	case "shell-escape-always":
		s = quote.Name(name)
	case "c":
		s = quote.C(name)
	case "c-maybe":
		if c := quote.C(name); c != `"`+name+`"` {
			s = c
		}
	case "escape":
		s = quote.Escape(name)
	case "locale", "clocale":
		s = quote.Curly(name)
	}
	if l.hide && (l.quoting == "literal" || strings.HasPrefix(l.quoting, "shell")) {
		s = hidden(s)
	}
	return s
}

// hidden puts question marks in place of what cannot be shown.
func hidden(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 || !command.IsPrintable(r) {
			b.WriteByte('?')
		} else {
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// columnsOf tells how wide a text is on a screen.
func columnsOf(s string) int {
	n := 0
	for _, r := range s {
		n += command.RuneWidth(r)
	}
	return n
}

// sign is what is put behind a name to show what it is.
func (l *lister) sign(i vfs.Info) string {
	if l.classify == 0 {
		return ""
	}
	switch i.Mode & linux.S_IFMT {
	case linux.S_IFDIR:
		return "/"
	case linux.S_IFLNK:
		if l.classify != '/' {
			return "@"
		}
	case linux.S_IFIFO:
		if l.classify != '/' {
			return "|"
		}
	case linux.S_IFSOCK:
		if l.classify != '/' {
			return "="
		}
	case linux.S_IFREG:
		if l.classify == 'F' && i.Mode&0o111 != 0 {
			return "*"
		}
	}
	return ""
}

// show prints entries.
func (l *lister) show(items []item) {
	quoted := false
	for i := range items {
		it := &items[i]
		it.text = l.quote(it.name)
		quoted = quoted || it.text != it.name
	}
	align := quoted && (l.quoting == "shell-escape" || l.quoting == "shell") && (l.shape == detailed || (l.shape == columns || l.shape == across) && l.width > 0)
	for i := range items {
		it := &items[i]
		if align && it.text == it.name {
			it.text = " " + it.text
		}
	}
	if l.shape == detailed {
		l.long(items)
		return
	}
	for i := range items {
		it := &items[i]
		it.width = columnsOf(it.text)
		if it.known {
			s := l.sign(it.info)
			it.width += len(s)
			it.text = l.paint(it.text, it.info, it.broken) + s
		}
		if l.context {
			it.text = "? " + it.text
			it.width += 2
		}
	}
	switch l.shape {
	case columns, across:
		l.grid(items)
	case commas:
		l.commas(items)
	case onePerLine, detailed:
		l.withPrefixes(items)
		for i := range items {
			l.w.String(items[i].text)
			l.w.Byte(l.eol)
		}
	}
	if l.shape == commas && len(items) > 0 {
		l.w.Byte(l.eol)
	}
}

func (l *lister) prefixText(it *item, ino, blocks int) string {
	s := ""
	if l.inode {
		s = fmt.Sprintf("%*s ", ino, l.inoText(it))
	}
	if l.blocks {
		s += fmt.Sprintf("%*s ", blocks, l.blockText(it))
	}
	return s
}

func (l *lister) inoText(it *item) string {
	if !it.known {
		return "?"
	}
	return strconv.FormatUint(uint64(it.info.Ino), 10)
}

func (l *lister) blockText(it *item) string {
	if !it.known {
		return "?"
	}
	return l.blockUnit.Text(uint64(max(it.info.Blocks, 0)) * 512)
}

// withPrefixes puts number and blocks into the texts.
func (l *lister) withPrefixes(items []item) {
	if !l.inode && !l.blocks {
		return
	}
	ino, blocks := 0, 0
	if l.shape != commas {
		for k := range items {
			ino = max(ino, len(l.inoText(&items[k])))
			blocks = max(blocks, len(l.blockText(&items[k])))
		}
	}
	for i := range items {
		p := l.prefixText(&items[i], ino, blocks)
		items[i].text = p + items[i].text
		items[i].width += len(p)
	}
}

// commas fills lines with a list.
func (l *lister) commas(items []item) {
	l.withPrefixes(items)
	at := 0
	for i := range items {
		it := &items[i]
		if i > 0 {
			if l.width == 0 || at+it.width+2 < l.width {
				at += 2
				l.w.String(", ")
			} else {
				at = 0
				l.w.Byte(',')
				l.w.Byte(l.eol)
			}
		}
		l.w.String(it.text)
		at += it.width
	}
}

// grid prints entries in as many columns as fit.
func (l *lister) grid(items []item) {
	n := len(items)
	if n == 0 {
		return
	}
	l.withPrefixes(items)
	if l.width == 0 {
		for i := range items {
			if i > 0 {
				l.w.String("  ")
			}
			l.w.String(items[i].text)
		}
		l.w.Byte(l.eol)
		return
	}
	cols, widths := l.fit(items)
	rows := (n + cols - 1) / cols
	at := 0
	for r := range rows {
		at = 0
		for c := range cols {
			i := c*rows + r
			if l.shape == across {
				i = r*cols + c
			}
			if i >= n {
				break
			}
			l.w.String(items[i].text)
			next := i + rows
			last := c == cols-1 || next >= n
			if l.shape == across {
				last = c == cols-1 || i+1 >= n
			}
			if last {
				break
			}
			start := 0
			for k := range c + 1 {
				start += widths[k]
			}
			l.indent(at+items[i].width, start)
			at = start
		}
		l.w.Byte(l.eol)
	}
}

// indent goes from one column to another, by tabs where they help.
func (l *lister) indent(from, to int) {
	for from < to {
		if l.tab > 0 && to/l.tab > (from+1)/l.tab {
			l.w.Byte('\t')
			from += l.tab - from%l.tab
		} else {
			l.w.Byte(' ')
			from++
		}
	}
}

// fit finds the greatest number of columns for which the lines are short
// enough, and how wide each is.
func (l *lister) fit(items []item) (int, []int) {
	n := len(items)
	most := min(n, max(1, (l.width+2)/3))
	for cols := most; cols > 1; cols-- {
		l.t.Step(n >> 3)
		rows := (n + cols - 1) / cols
		widths := make([]int, cols)
		for k := range widths {
			widths[k] = 3
		}
		total := 3 * cols
		fits := true // looked at only where a name is wider than the least column, as ls does
		for i := range items {
			c := i / rows
			if l.shape == across {
				c = i % cols
			}
			w := items[i].width
			if c < cols-1 {
				w += 2
			}
			if w > widths[c] {
				total += w - widths[c]
				widths[c] = w
				fits = total < l.width
			}
			if !fits {
				break
			}
		}
		if fits {
			return cols, widths
		}
	}
	return 1, []int{0}
}

// long prints entries with all that is known of them.
func (l *lister) long(items []item) {
	type row struct{ ino, blocks, links, owner, group, size, major, minor string }
	var w struct{ ino, blocks, links, owner, group, size, major, minor int }
	rows := make([]row, len(items))
	for i := range items {
		it := &items[i]
		r := &rows[i]
		r.ino, r.blocks = l.inoText(it), l.blockText(it)
		r.links, r.owner, r.group, r.size = "?", "?", "?", "?"
		if it.known {
			r.links = strconv.Itoa(it.info.Nlink)
			r.owner, r.group = strconv.Itoa(it.info.UID), strconv.Itoa(it.info.GID)
			if !l.numeric {
				r.owner, r.group = l.book.UserText(it.info.UID), l.book.GroupText(it.info.GID)
			}
			if k := it.info.Mode & linux.S_IFMT; k == linux.S_IFCHR || k == linux.S_IFBLK {
				r.major, r.minor = strconv.Itoa(int(it.info.Rdev>>8&0xfff)), strconv.Itoa(int(it.info.Rdev&0xff|it.info.Rdev>>12&0xfff00))
				w.major, w.minor = max(w.major, len(r.major)), max(w.minor, len(r.minor))
				w.size = max(w.size, w.major+2+w.minor)
				r.size = ""
			} else {
				r.size = l.unit.Text(uint64(it.info.Size))
			}
		}
		w.ino, w.blocks, w.links = max(w.ino, len(r.ino)), max(w.blocks, len(r.blocks)), max(w.links, len(r.links))
		w.owner, w.group, w.size = max(w.owner, len(r.owner)), max(w.group, len(r.group)), max(w.size, len(r.size))
	}
	for i := range items {
		it, r := &items[i], &rows[i]
		if l.inode {
			l.w.Printf("%*s ", w.ino, r.ino)
		}
		if l.blocks {
			l.w.Printf("%*s ", w.blocks, r.blocks)
		}
		perms := "-?????????"
		if it.known {
			perms = command.ModeString(it.info.Mode)
		}
		l.w.Printf("%s %*s ", perms, w.links, r.links)
		if !l.noOwner {
			l.w.Printf(l.nameFormat(), w.owner, r.owner)
		}
		if !l.noGroup {
			l.w.Printf(l.nameFormat(), w.group, r.group)
		}
		if l.author {
			l.w.Printf(l.nameFormat(), w.owner, r.owner)
		}
		if l.context {
			l.w.String("? ")
		}
		if r.major != "" {
			l.w.Printf("%*s, %*s ", max(w.major, w.size-2-w.minor), r.major, w.minor, r.minor)
		} else {
			l.w.Printf("%*s ", w.size, r.size)
		}
		l.w.String(l.stamp(it))
		l.w.Byte(' ')
		l.w.String(l.paint(it.text, it.info, it.broken))
		if it.info.IsLink() {
			if it.target != "" {
				l.w.String(" -> ")
				l.w.String(l.paintTarget(it))
				if l.classify != 0 && !it.broken {
					l.w.String(l.sign(it.to))
				}
			}
		} else {
			l.w.String(l.sign(it.info))
		}
		l.w.Byte(l.eol)
	}
}

func (l *lister) nameFormat() string {
	if l.numeric {
		return "%*s "
	}
	return "%-*s "
}

func (l *lister) stamp(it *item) string {
	if !it.known {
		switch l.style {
		case "full-iso":
			return fmt.Sprintf("%35s", "?")
		case "long-iso":
			return fmt.Sprintf("%16s", "?")
		case "iso":
			return fmt.Sprintf("%11s", "?")
		}
		return fmt.Sprintf("%12s", "?")
	}
	m := l.moment(it.info).In(l.zone)
	recent := !m.After(l.now) && l.now.Sub(m) < 31556952/2*time.Second
	switch l.style {
	case "full-iso":
		return m.Format("2006-01-02 15:04:05.000000000 -0700")
	case "long-iso":
		return m.Format("2006-01-02 15:04")
	case "iso":
		if recent {
			return m.Format("01-02 15:04")
		}
		return m.Format("2006-01-02 ")
	case "locale":
		if recent {
			return m.Format("Jan _2 15:04")
		}
		return m.Format("Jan _2  2006")
	}
	old, young, two := strings.Cut(l.style[1:], "\n")
	if two && recent {
		old = young
	}
	return moment(m, old)
}
