package diff

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// A failure is what could not be applied.
type failure struct {
	list []int // hunks
	skip bool  // of all the change
}

// swapped gives a hunk for -R.
func (h piece) swapped() piece {
	s := piece{from: h.to, to: h.from, function: h.function}
	// Within a run of changes, what goes comes first.
	var add []patchLine
	for _, l := range h.lines {
		switch l.mark {
		case '-':
			add = append(add, patchLine{'+', l.text})
		case '+':
			s.lines = append(s.lines, patchLine{'-', l.text})
		default:
			s.lines = append(append(s.lines, add...), l)
			add = nil
		}
	}
	s.lines = append(s.lines, add...)
	return s
}

// sides gives the lines that a hunk expects, and the lengths of context at its
// ends.
func (h piece) sides() (old []patchLine, prefix, suffix int) {
	for _, l := range h.lines {
		if l.mark != '+' {
			old = append(old, l)
		}
	}
	for prefix < len(h.lines) && h.lines[prefix].mark == ' ' {
		prefix++
	}
	for suffix < len(h.lines)-prefix && h.lines[len(h.lines)-1-suffix].mark == ' ' {
		suffix++
	}
	return old, prefix, suffix
}

// hunks applies the hunks of a change.
func (p *patcher) hunks(c *change) (f *failure, inexact bool) {
	var failed []int
	for n := range c.hunks {
		h := c.hunks[n]
		if p.reverse {
			h = h.swapped()
		}
		at, fuzz := p.locate(h)
		if at == 0 && n == 0 && !p.force {
			// Perhaps it is applied already.
			back, _ := p.locateExact(h.swapped())
			if back != 0 {
				switch {
				case p.forward:
					if p.quiet {
						break
					}
					p.say("Reversed (or previously applied) patch detected!  Skipping patch.")
					return &failure{all(len(c.hunks)), true}, false
				case p.batch:
					p.say("Reversed (or previously applied) patch detected!  Assuming -R.")
					p.reverse = !p.reverse
					inexact = true
				default:
					if p.ask(p.detected()+" detected!  Assume -R? [n] ") == "y" {
						p.reverse = !p.reverse
						break
					}
					if p.ask("Apply anyway? [n] ") != "y" {
						p.say("Skipping patch.")
						return &failure{all(len(c.hunks)), true}, false
					}
				}
				h = c.hunks[n]
				if p.reverse {
					h = h.swapped()
				}
				at, fuzz = p.locate(h)
			}
		}
		if at == 0 {
			failed = append(failed, n)
			if !p.quiet {
				p.say("Hunk #%d FAILED at %d.", n+1, p.guess(h)+p.offset)
			}
			continue
		}
		off := at - p.guess(h)
		if fuzz > 0 || off != 0 {
			inexact = true
			if !p.quiet {
				s := fmt.Sprintf("Hunk #%d succeeded at %d", n+1, p.place(at))
				if fuzz > 0 {
					s += fmt.Sprintf(" with fuzz %d", fuzz)
				}
				if off != 0 {
					noun := "lines"
					if off == 1 {
						noun = "line"
					}
					s += fmt.Sprintf(" (offset %d %s)", off, noun)
				}
				p.say("%s.", s)
			}
		}
		p.put(h, at)
	}
	if failed != nil {
		return &failure{failed, false}, inexact
	}
	return nil, inexact
}

func (p *patcher) detected() string {
	if p.reverse {
		return "Unreversed patch"
	}
	return "Reversed (or previously applied) patch"
}

func all(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// place is the line of the result at which a hunk stands.
func (p *patcher) place(at int) int { return at + len(p.result) - p.frozen }

// guess is the line, from 1, at which a hunk should begin.
func (p *patcher) guess(h piece) int {
	old, _, _ := h.sides()
	if len(old) == 0 {
		return h.from + 1
	}
	return h.from
}

// locate finds the line at which a hunk can be applied, with as little fuzz as
// possible; 0 is none.
func (p *patcher) locate(h piece) (at, fuzz int) {
	_, prefix, suffix := h.sides()
	for fuzz := range min(p.fuzz, max(prefix, suffix)) + 1 {
		if at = p.search(h, fuzz); at != 0 {
			return at, fuzz
		}
	}
	return 0, 0
}

func (p *patcher) locateExact(h piece) (at, fuzz int) {
	offset := p.offset
	at = p.search(h, 0)
	p.offset = offset
	return at, 0
}

func (p *patcher) search(h piece, fuzz int) int {
	old, prefix, suffix := h.sides()
	context := max(prefix, suffix)
	guess := p.guess(h) + p.offset
	if len(old) == 0 {
		if guess-1 > len(p.lines) || guess-1 < p.frozen {
			return 0
		}
		return guess
	}
	most := len(p.lines) - guess - len(old) + 1
	least := guess - p.frozen - 1
	least = min(least, guess-1)
	pf, sf := fuzz+prefix-context, fuzz+suffix-context
	found := func(off int) int {
		p.offset += off
		return guess + off
	}
	switch {
	case pf < 0 && p.guess(h) <= 1:
		if sf < 0 && (len(old) != len(p.lines) || prefix < p.frozen) {
			return 0
		}
		off := 1 - guess
		if p.frozen <= prefix && off <= most && p.match1(old, guess+off, 0, max(0, sf)) {
			return found(off)
		}
		return 0
	case pf < 0:
		pf = 0
	}
	if sf < 0 {
		off := guess - (len(p.lines) - len(old) + 1)
		if off <= least && p.match1(old, guess-off, pf, 0) {
			return found(-off)
		}
		return 0
	}
	for off := 0; off <= max(most, least); off++ {
		p.t.Step(1)
		if off <= most && guess+off > p.frozen && p.match1(old, guess+off, pf, sf) {
			return found(off)
		}
		if off > 0 && off <= least && p.match1(old, guess-off, pf, sf) {
			return found(-off)
		}
	}
	return 0
}

// match1 reports whether the file has a hunk's lines at a line, from 1, but for
// some at both ends.
func (p *patcher) match1(old []patchLine, at, prefix, suffix int) bool {
	if at < 1 || at-1+len(old) > len(p.lines) || at-1 < p.frozen {
		return false
	}
	for i := prefix; i < len(old)-suffix; i++ {
		p.t.Step(1)
		if !p.same(p.lines[at-1+i], old[i].text) {
			return false
		}
	}
	return true
}

func (p *patcher) same(line, want []byte) bool {
	if bytes.Equal(line, want) {
		return true
	}
	if !p.loose {
		return false
	}
	x, y := bytes.Fields(line), bytes.Fields(want)
	return bytes.Equal(bytes.Join(x, []byte(" ")), bytes.Join(y, []byte(" ")))
}

// put writes a hunk's lines to the result. Lines of context are those of the
// file.
func (p *patcher) put(h piece, at int) {
	p.result = append(p.result, p.lines[p.frozen:at-1]...)
	p.frozen = at - 1
	for _, l := range h.lines {
		switch l.mark {
		case '+':
			p.result = append(p.result, l.text)
		case '-':
			p.frozen++
		default:
			p.result = append(p.result, p.lines[p.frozen])
			p.frozen++
		}
	}
	p.t.Step(len(h.lines))
}

// store writes the result.
func (p *patcher) store(c *change, name string, text []byte, info vfs.Info, exists, inexact bool) bool {
	if p.dry {
		return true
	}
	t := p.t
	to := name
	if p.out != "" {
		to = p.out
	} else if c.renameTo != "" {
		to = p.renamed(c)
		if !safe(to) {
			p.say("Ignoring potentially dangerous file name %s", to)
			p.status = 1
			return true
		}
	}
	if (p.backup || p.match && inexact && !p.posix) && p.out == "" && !p.kept[name] {
		p.kept[name] = true
		if err := p.keepBackup(name, text, info, exists); err != nil {
			t.Errorf("**** Can't create file %s : %s", name, reason(err))
			return false
		}
	}
	p.kept[name] = true
	b := bytes.Join(p.result, nil)
	if p.out == "-" {
		_, _ = t.Out().Write(b)
		return true
	}
	empty := len(b) == 0 && (p.deletes(c) || p.remove)
	if p.deletes(c) && len(b) > 0 && c.names[0] != "" && p.out == "" && len(c.hunks) > 0 && !inexact {
		p.say("Not deleting file %s as content differs from patch", name)
		p.status = 1
	}
	if empty && p.out == "" {
		if exists {
			if err := t.View.Unlink(name); err != nil {
				t.Errorf("**** Can't remove file %s : %s", name, reason(err))
				return false
			}
			p.prune(name)
		}
		return true
	}
	bits := uint32(0o666)
	if i := strings.LastIndexByte(to, '/'); i > 0 {
		if err := t.View.MkdirAll(to[:i], 0o777); err != nil {
			t.Errorf("**** Can't create directory %s : %s", to[:i], reason(err))
			return false
		}
	}
	if exists && to == name && info.Mode&0o222 == 0 {
		p.say("File %s is read-only; trying to patch anyway", name)
	}
	// A new file takes the old one's place, as where that cannot be written.
	if i, err := t.View.Lstat(to); err == nil && i.IsRegular() && p.out == "" {
		if err := t.View.Unlink(to); err != nil {
			t.Errorf("**** Can't rename file %s to %s : %s", to, to, reason(err))
			return false
		}
	}
	if err := t.View.WriteFile(to, b, bits); err != nil {
		t.Errorf("**** Can't create file %s : %s", to, reason(err))
		return false
	}
	if exists && p.out == "" {
		_ = t.View.Chmod(to, info.Mode&command.ModeBits) // it is ours
	}
	if c.newMode != 0 && !p.reverse && p.out == "" {
		_ = t.View.Chmod(to, c.newMode&0o777) // it is ours
	}
	if to != name && p.out == "" && !c.copied {
		if err := t.View.Unlink(name); err != nil && err != linux.ENOENT {
			t.Errorf("**** Can't remove file %s : %s", name, reason(err))
			return false
		}
		p.prune(name)
	}
	return true
}

// prune removes the directories that a removed file has left empty.
func (p *patcher) prune(name string) {
	for {
		i := strings.LastIndexByte(name, '/')
		if i <= 0 {
			return
		}
		if name = name[:i]; p.t.View.Rmdir(name) != nil {
			return
		}
	}
}

func (p *patcher) keepBackup(name string, text []byte, info vfs.Info, exists bool) error {
	to := p.before + name
	if p.prefix != "" {
		i := strings.LastIndexByte(to, '/') + 1
		to = to[:i] + p.prefix + to[i:]
	}
	to += p.suffix
	if i := strings.LastIndexByte(to, '/'); i > 0 {
		if err := p.t.View.MkdirAll(to[:i], 0o777); err != nil {
			return err
		}
	}
	bits := info.Mode & 0o777
	if !exists {
		bits, text = 0o000, nil
	}
	if err := p.t.View.RemoveAll(to); err != nil {
		return err
	}
	return p.t.View.WriteFile(to, text, bits)
}

// rejects writes the hunks that failed, and says so.
func (p *patcher) rejects(c *change, name string, failed []int, what string) {
	rej := p.reject
	if rej == "" {
		to := name
		if p.out != "" {
			to = p.out
		}
		rej = to + ".rej"
	}
	verb := fmt.Sprintf("%d out of %d hunk%s %s", len(failed), len(c.hunks), plural(len(c.hunks)), what)
	if p.dry || rej == "-" {
		p.say("%s", verb)
		return
	}
	p.say("%s -- saving rejects to file %s", verb, rej)
	var b bytes.Buffer
	kind := c.kind
	if kind == normal {
		kind = contextual
	}
	if p.format != unset {
		kind = p.format
	}
	names := [2]string{c.names[0] + c.stamps[0], c.names[1] + c.stamps[1]}
	for i := range names {
		if names[i] == "" {
			names[i] = "/dev/null"
		}
	}
	if p.reverse {
		names[0], names[1] = names[1], names[0]
	}
	marks := [2]string{"---", "+++"}
	if kind == contextual {
		marks = [2]string{"***", "---"}
	}
	fmt.Fprintf(&b, "%s %s\n%s %s\n", marks[0], names[0], marks[1], names[1])
	for _, n := range failed {
		h := c.hunks[n]
		if p.reverse {
			h = h.swapped()
		}
		switch {
		case c.kind == normal && p.format == unset:
			h.writeNormal(&b)
		case kind == unified:
			h.writeUnified(&b)
		default:
			h.writeContext(&b)
		}
	}
	if err := p.t.View.RemoveAll(rej); err == nil {
		err = p.t.View.WriteFile(rej, b.Bytes(), 0o666)
		if err != nil {
			p.t.Errorf("**** Can't create file %s : %s", rej, reason(err))
		}
	}
}

func (h piece) count() (old, fresh int) {
	for _, l := range h.lines {
		if l.mark != '+' {
			old++
		}
		if l.mark != '-' {
			fresh++
		}
	}
	return old, fresh
}

func writeLine(b *bytes.Buffer, mark string, text []byte) {
	b.WriteString(mark)
	b.Write(text)
	if !ended(text) {
		b.WriteString("\n\\ No newline at end of file\n")
	}
}

func (h piece) writeUnified(b *bytes.Buffer) {
	old, fresh := h.count()
	span := func(from, n int) string {
		if n == 1 {
			return fmt.Sprint(from)
		}
		return fmt.Sprintf("%d,%d", from, n)
	}
	fmt.Fprintf(b, "@@ -%s +%s @@%s\n", span(h.from, old), span(h.to, fresh), h.function)
	for _, l := range h.lines {
		writeLine(b, string(l.mark), l.text)
	}
}

// writeNormal writes a hunk without context, as patch rejects one.
func (h piece) writeNormal(b *bytes.Buffer) {
	old, fresh := h.count()
	span := func(from, n int) string {
		if n <= 1 {
			return fmt.Sprint(from)
		}
		return fmt.Sprintf("%d,%d", from, from+n-1)
	}
	fmt.Fprintf(b, "***************\n*** %s\n", span(h.from, old))
	for _, l := range h.lines {
		if l.mark == '-' {
			writeLine(b, "- ", l.text)
		}
	}
	fmt.Fprintf(b, "--- %s -----\n", span(h.to, fresh))
	for _, l := range h.lines {
		if l.mark == '+' {
			writeLine(b, "+ ", l.text)
		}
	}
}

func (h piece) writeContext(b *bytes.Buffer) {
	old, fresh := h.count()
	span := func(from, n int) string {
		if n <= 1 {
			return fmt.Sprint(from)
		}
		return fmt.Sprintf("%d,%d", from, from+n-1)
	}
	// A run with both kinds of changes is marked as changed.
	marks := make([]byte, len(h.lines))
	for i := 0; i < len(h.lines); {
		j, minus, plus := i, false, false
		for j < len(h.lines) && h.lines[j].mark != ' ' {
			minus = minus || h.lines[j].mark == '-'
			plus = plus || h.lines[j].mark == '+'
			j++
		}
		for k := i; k < j; k++ {
			marks[k] = h.lines[k].mark
			if minus && plus {
				marks[k] = '!'
			}
		}
		if j == i {
			marks[i] = ' '
			j++
		}
		i = j
	}
	fmt.Fprintf(b, "***************%s\n*** %s ****\n", h.function, span(h.from, old))
	part := func(skip byte) {
		for i, l := range h.lines {
			if l.mark != skip {
				writeLine(b, string(marks[i])+" ", l.text)
			}
		}
	}
	only := func(mark byte) bool {
		for _, l := range h.lines {
			if l.mark == mark {
				return true
			}
		}
		return false
	}
	if only('-') {
		part('+')
	}
	fmt.Fprintf(b, "--- %s ----\n", span(h.to, fresh))
	if only('+') {
		part('-')
	}
}
