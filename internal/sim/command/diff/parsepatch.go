package diff

import (
	"bytes"
	"strconv"
	"strings"
)

// A change is one file's part of a patch.
type change struct {
	names      [3]string // old, new, Index:
	stamps     [2]string // what stands behind the names
	git        bool
	newMode    uint32
	created    bool // git says so
	deleted    bool
	renameFrom string
	renameTo   string
	copied     bool
	kind       style // normal, contextual or unified
	hunks      []piece
	lead       []string // what came before, for a complaint
	line       int      // where the hunks begin, from 1
}

// A piece is a hunk of a patch. Marks are ' ', '-' and '+'.
type piece struct {
	from, to int // first lines, from 1; of an empty range the line before
	lines    []patchLine
	function string
}

type patchLine struct {
	mark byte
	text []byte // with its newline, if it has one
}

// A patchReader reads a patch.
type patchReader struct {
	lines [][]byte
	at    int
	err   string // what is wrong, as patch says it
}

func (r *patchReader) peek(n int) []byte {
	if r.at+n < len(r.lines) {
		return r.lines[r.at+n]
	}
	return nil
}

func chomp(b []byte) []byte { return bytes.TrimSuffix(bytes.TrimSuffix(b, []byte("\n")), []byte("\r")) }

// headName takes the name out of a header line.
func headName(b []byte) (name, stamp string) {
	s := string(chomp(b))
	if strings.HasPrefix(s, `"`) {
		if end := strings.LastIndexByte(s, '"'); end > 0 {
			if v, err := strconv.Unquote(s[:end+1]); err == nil {
				return v, s[end+1:]
			}
		}
	}
	if name, stamp, ok := strings.Cut(s, "\t"); ok {
		return name, "\t" + stamp
	}
	return strings.TrimRight(s, " "), ""
}

// next reads the next file's part; nil is the end.
func (r *patchReader) next() *change {
	c := &change{}
	begin := r.at
	for ; r.at < len(r.lines); r.at++ {
		line := r.peek(0)
		rest, ok := bytes.CutPrefix(line, []byte("diff --git "))
		switch {
		case ok:
			if c.git && (c.created || c.deleted || c.renameFrom != "" || c.newMode != 0) {
				c.line = r.at + 1
				return c // a part without hunks
			}
			*c = change{git: true}
			begin = r.at
			gitNames(c, string(chomp(rest)))
		case bytes.HasPrefix(line, []byte("Index:")):
			c.names[2] = strings.TrimSpace(string(line[6:]))
		case c.git && r.extended(c, string(chomp(line))):
		case bytes.HasPrefix(line, []byte("--- ")) && bytes.HasPrefix(r.peek(1), []byte("+++ ")) && bytes.HasPrefix(r.peek(2), []byte("@@ -")):
			c.names[0], c.stamps[0] = headName(line[4:])
			c.names[1], c.stamps[1] = headName(r.peek(1)[4:])
			r.at += 2
			return r.body(c, unified, begin)
		case bytes.HasPrefix(line, []byte("@@ -")) && unifiedHead(line) != nil:
			return r.body(c, unified, begin)
		case bytes.HasPrefix(line, []byte("*** ")) && bytes.HasPrefix(r.peek(1), []byte("--- ")) && bytes.HasPrefix(r.peek(2), []byte("********")):
			c.names[0], c.stamps[0] = headName(line[4:])
			c.names[1], c.stamps[1] = headName(r.peek(1)[4:])
			r.at += 2
			return r.body(c, contextual, begin)
		case normalHead(line) != nil && (len(r.lines) == r.at+1 || bytes.HasPrefix(r.peek(1), []byte("< ")) || bytes.HasPrefix(r.peek(1), []byte("> "))):
			return r.body(c, normal, begin)
		}
	}
	if c.git && (c.created || c.deleted || c.renameFrom != "" || c.newMode != 0) {
		c.line = r.at
		return c
	}
	return nil
}

func (r *patchReader) body(c *change, kind style, begin int) *change {
	c.kind = kind
	c.line = r.at + 1
	for _, l := range r.lines[begin:r.at] {
		c.lead = append(c.lead, string(chomp(l)))
	}
	for r.err == "" {
		var p *piece
		switch kind {
		case unified:
			p = r.unified()
		case contextual:
			p = r.context()
		default:
			p = r.normal()
		}
		if p == nil {
			break
		}
		c.hunks = append(c.hunks, *p)
	}
	return c
}

func gitNames(c *change, s string) {
	if i := strings.Index(s, " b/"); i > 0 && strings.HasPrefix(s, "a/") {
		c.names[0], c.names[1] = s[:i], s[i+1:]
	}
}

// extended reads a header line of git.
func (r *patchReader) extended(c *change, s string) bool {
	mode := func(t string) uint32 {
		n, err := strconv.ParseUint(t, 8, 32)
		if err != nil {
			return 0
		}
		return uint32(n)
	}
	for _, x := range []struct {
		prefix string
		take   func(string)
	}{
		{"new file mode ", func(v string) { c.created, c.newMode = true, mode(v) }},
		{"deleted file mode ", func(string) { c.deleted = true }},
		{"new mode ", func(v string) { c.newMode = mode(v) }},
		{"old mode ", func(string) {}},
		{"rename from ", func(v string) { c.renameFrom = v }},
		{"rename to ", func(v string) { c.renameTo = v }},
		{"copy from ", func(v string) { c.renameFrom, c.copied = v, true }},
		{"copy to ", func(v string) { c.renameTo, c.copied = v, true }},
		{"index ", func(string) {}}, {"similarity index ", func(string) {}}, {"dissimilarity index ", func(string) {}},
	} {
		if v, ok := strings.CutPrefix(s, x.prefix); ok {
			x.take(v)
			return true
		}
	}
	return false
}

// number reads digits.
func digits(s string) (n int, rest string, ok bool) {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' && n < 1<<40 {
		n = n*10 + int(s[i]-'0')
		i++
	}
	return n, s[i:], i > 0
}

// unifiedHead reads "@@ -1,2 +3,4 @@": first and count of both sides.
func unifiedHead(line []byte) []int {
	s, ok := strings.CutPrefix(string(chomp(line)), "@@ -")
	if !ok {
		return nil
	}
	out := []int{0, 1, 0, 1}
	for side := range 2 {
		if side == 1 {
			if s, ok = strings.CutPrefix(strings.TrimLeft(s, " "), "+"); !ok {
				return nil
			}
		}
		if out[2*side], s, ok = digits(s); !ok {
			return nil
		}
		if rest, comma := strings.CutPrefix(s, ","); comma {
			if out[2*side+1], s, ok = digits(rest); !ok {
				return nil
			}
		}
	}
	if !strings.HasPrefix(s, " @@") && !strings.HasPrefix(s, " @") {
		return nil
	}
	return out
}

func (r *patchReader) malformed() *piece {
	r.err = "malformed patch at line " + strconv.Itoa(r.at+1) + ": " + string(chomp(r.peek(0))) + "\n"
	return nil
}

// ending notes that the line before has no newline, where the patch says so.
func (r *patchReader) ending(lines []patchLine) {
	if bytes.HasPrefix(r.peek(0), []byte("\\ ")) && len(lines) > 0 {
		l := &lines[len(lines)-1]
		l.text = bytes.TrimSuffix(l.text, []byte("\n"))
		r.at++
	}
}

func (r *patchReader) unified() *piece {
	head := unifiedHead(r.peek(0))
	if head == nil {
		return nil
	}
	p := &piece{from: head[0], to: head[2]}
	if i := bytes.Index(r.peek(0)[3:], []byte("@@")); i >= 0 {
		p.function = string(chomp(r.peek(0)[i+5:]))
	}
	r.at++
	old, fresh := head[1], head[3]
	for old > 0 || fresh > 0 {
		line := r.peek(0)
		if line == nil {
			if old == fresh && old < 3 {
				break // empty lines at the end that were cut off
			}
			r.err = "malformed patch at line " + strconv.Itoa(len(r.lines)) + ":  \n"
			return nil
		}
		mark := line[0]
		if mark == '\n' || mark == '\t' {
			line = append([]byte{' '}, line...)
			mark = ' '
		}
		switch mark {
		case ' ':
			old--
			fresh--
		case '-':
			old--
		case '+':
			fresh--
		default:
			return r.malformed()
		}
		if old < 0 || fresh < 0 {
			return r.malformed()
		}
		p.lines = append(p.lines, patchLine{mark, line[1:]})
		r.at++
		r.ending(p.lines)
	}
	return p
}

func normalHead(line []byte) []int {
	s := string(chomp(line))
	if s == "" || s[0] < '0' || s[0] > '9' {
		return nil
	}
	a0, s, _ := digits(s)
	a1 := a0
	if rest, ok := strings.CutPrefix(s, ","); ok {
		if a1, s, ok = digits(rest); !ok {
			return nil
		}
	}
	if s == "" || strings.IndexByte("acd", s[0]) < 0 {
		return nil
	}
	letter := s[0]
	b0, s, ok := digits(s[1:])
	b1 := b0
	if rest, comma := strings.CutPrefix(s, ","); comma && ok {
		b1, s, ok = digits(rest)
	}
	if !ok || s != "" {
		return nil
	}
	return []int{a0, a1, int(letter), b0, b1}
}

func (r *patchReader) normal() *piece {
	h := normalHead(r.peek(0))
	if h == nil {
		return nil
	}
	p := &piece{from: h[0], to: h[3]}
	r.at++
	take := func(mark string, sign byte, n int) bool {
		for range n {
			line, ok := bytes.CutPrefix(r.peek(0), []byte(mark))
			if !ok {
				if line, ok = bytes.CutPrefix(r.peek(0), []byte(mark[:1])); !ok {
					r.malformed()
					return false
				}
			}
			p.lines = append(p.lines, patchLine{sign, line})
			r.at++
			r.ending(p.lines)
		}
		return true
	}
	if h[2] != 'a' && !take("< ", '-', h[1]-h[0]+1) {
		return nil
	}
	if h[2] == 'c' {
		if !bytes.HasPrefix(r.peek(0), []byte("---")) {
			return r.malformed()
		}
		r.at++
	}
	if h[2] != 'd' && !take("> ", '+', h[4]-h[3]+1) {
		return nil
	}
	return p
}

// contextHead reads "*** 1,2 ****" or "--- 1,2 ----".
func contextHead(line []byte, mark string) (from, to int, ok bool) {
	s, ok := strings.CutPrefix(string(chomp(line)), mark+" ")
	if !ok {
		return 0, 0, false
	}
	if from, s, ok = digits(s); !ok {
		return 0, 0, false
	}
	to = from
	if rest, comma := strings.CutPrefix(s, ","); comma {
		to, s, ok = digits(rest)
	} else if from == 0 {
		to = -1
	}
	return from, to, ok && strings.HasPrefix(s, " "+mark[:1])
}

func (r *patchReader) context() *piece {
	if !bytes.HasPrefix(r.peek(0), []byte("********")) {
		return nil
	}
	p := &piece{function: string(chomp(bytes.TrimLeft(r.peek(0), "*")))}
	r.at++
	a0, a1, ok := contextHead(r.peek(0), "***")
	if !ok {
		return r.malformed()
	}
	r.at++
	read := func(n int, marks string) ([]patchLine, bool) {
		var list []patchLine
		for range n {
			line := r.peek(0)
			if len(line) < 2 && len(line) != 1 || line == nil || strings.IndexByte(marks, line[0]) < 0 && line[0] != '\n' {
				return list, len(list) == 0
			}
			if line[0] == '\n' {
				line = []byte("  \n")
			}
			if len(line) > 1 && line[1] == '\n' {
				line = append([]byte{line[0], ' '}, line[1:]...)
			}
			list = append(list, patchLine{line[0], line[2:]})
			r.at++
			r.ending(list)
		}
		return list, true
	}
	old, ok := read(a1-a0+1, " -!")
	if !ok {
		return r.malformed()
	}
	b0, b1, ok := contextHead(r.peek(0), "---")
	if !ok {
		return r.malformed()
	}
	r.at++
	fresh, ok := read(b1-b0+1, " +!")
	if !ok {
		return r.malformed()
	}
	p.from, p.to = a0, b0
	if a1 < a0 {
		p.from = 0
	}
	p.lines = weave(old, fresh)
	return p
}

// weave makes one list of the two of a context hunk.
func weave(old, fresh []patchLine) []patchLine {
	if len(old) == 0 {
		for i, l := range fresh {
			if l.mark == '!' {
				fresh[i].mark = '+'
			}
		}
		return fresh
	}
	if len(fresh) == 0 {
		for i, l := range old {
			if l.mark == '!' {
				old[i].mark = '-'
			}
		}
		return old
	}
	var out []patchLine
	i, j := 0, 0
	for i < len(old) || j < len(fresh) {
		switch {
		case i < len(old) && old[i].mark != ' ':
			out = append(out, patchLine{'-', old[i].text})
			i++
		case j < len(fresh) && fresh[j].mark != ' ':
			out = append(out, patchLine{'+', fresh[j].text})
			j++
		default:
			if i < len(old) {
				out = append(out, old[i])
			} else {
				out = append(out, fresh[j])
			}
			i++
			j++
		}
	}
	return out
}
