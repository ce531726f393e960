package text

import (
	"math"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

var fmtSpec = command.Spec{
	Name: "fmt", Synopsis: "[-WIDTH] [OPTION]... [FILE]...",
	About: "Reformat each paragraph in the FILE(s), writing to standard output.",
	Options: []command.Option{
		{Short: 'c', Long: "crown-margin", Help: "preserve indentation of first two lines"},
		{Short: 'p', Long: "prefix", Arg: command.Required, Name: "STRING", Help: "reformat only lines beginning with STRING, reattaching the prefix to reformatted lines"},
		{Short: 's', Long: "split-only", Help: "split long lines, but do not refill"},
		{Short: 't', Long: "tagged-paragraph", Help: "indentation of first line different from second"},
		{Short: 'u', Long: "uniform-spacing", Help: "one space between words, two after sentences"},
		{Short: 'w', Long: "width", Arg: command.Required, Name: "WIDTH", Help: "maximum line width (default of 75 columns)"},
		{Short: 'g', Long: "goal", Arg: command.Required, Name: "WIDTH", Help: "goal width (default of 93% of width)"},
	},
}

// What the choice of line breaks is measured by; the numbers are squares.
const (
	lineCost       = 70 * 70
	sentenceBonus  = 50 * 50
	noBreakCost    = 600 * 600
	parenBonus     = 40 * 40
	punctBonus     = 40 * 40
	lineCredit     = 3 * 3
	mostCost       = math.MaxInt64
	mostWords      = 1000
	mostCharacters = 5000
	mostWidth      = mostCharacters / 2
)

func shortCost(n int) int64  { return int64(n) * 10 * int64(n) * 10 }
func raggedCost(n int) int64 { return shortCost(n) / 2 }
func widowCost(n int) int64  { return 200 * 200 / (int64(n) + 2) }
func orphanCost(n int) int64 { return 150 * 150 / (int64(n) + 2) }

// A fmtWord is a word of a paragraph.
type fmtWord struct {
	text                 []byte
	space                int // behind it
	paren, period, punct bool
	final                bool // ends a sentence

	length   int // of the line that begins with it
	cost     int64
	nextLine int // the word that begins the next one
}

// A formatter fills paragraphs. A byte is an int here, and -1 the end.
type formatter struct {
	t *kernel.Task
	w *command.Writer
	r *command.Reader

	crown, tagged, split, uniform bool
	width, goal                   int
	prefix                        string
	prefixLead, prefixFull        int // blanks before it; its length with those behind it

	tabs                              bool
	in, out                           int // columns
	prefixIndent, nextPrefixIndent    int
	firstIndent, otherIndent, lastLen int
	next                              int
	words                             []fmtWord
	text                              []byte
}

func runFmt(t *kernel.Task) int {
	args := t.Args[1:]
	f := &formatter{t: t, w: command.Stdout(t), width: 75}
	width, goal := "", ""
	if len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && args[0][1] >= '0' && args[0][1] <= '9' {
		width = args[0][1:]
		args = args[1:]
	}
	spec := fmtSpec
	for c := byte('0'); c <= '9'; c++ {
		spec.Options = append(spec.Options[:len(spec.Options):len(spec.Options)], command.Option{Short: c})
	}
	a, status, ok := spec.ParseArgs(t, args)
	if !ok {
		return status
	}
	for _, o := range a.Flags {
		switch o.Key {
		case "c":
			f.crown = true
		case "s":
			f.split = true
		case "t":
			f.tagged = true
		case "u":
			f.uniform = true
		case "w":
			width = o.Value
		case "g":
			goal = o.Value
		case "p":
			f.setPrefix(o.Value)
		default:
			return fmtSpec.Usage(t, "invalid option -- %s; -WIDTH is recognized only when it is the first\noption; use -w N instead", o.Key)
		}
	}
	if width != "" {
		n, err := command.ParseUintWithin(width, "", 0, mostWidth)
		if err != nil {
			command.BadNumber(t, "invalid width", width, err)
			return 1
		}
		f.width = int(n)
	}
	f.goal = f.width * (2*(100-7) + 1) / 200
	if goal != "" {
		most := uint64(f.width)
		if width == "" {
			most = 75
		}
		n, err := command.ParseUintWithin(goal, "", 0, most)
		if err != nil {
			command.BadNumber(t, "invalid width", goal, err)
			return 1
		}
		f.goal = int(n)
		if width == "" {
			f.width = f.goal + 10
		}
	}
	status = 0
	for _, name := range command.InputNames(a.Operands) {
		if !f.file(name) {
			status = 1
		}
	}
	return status
}

// file formats a file.
func (f *formatter) file(name string) bool {
	r, err := command.OpenReader(f.t, name)
	if err != nil {
		command.ComplainFile(f.t, "cannot open %s for reading", name, err)
		return false
	}
	defer r.Close()
	f.r = r
	f.tabs, f.otherIndent = false, 0
	f.next = f.linePrefix()
	for f.paragraph() {
		f.choose()
		f.write(len(f.words))
	}
	if r.Err() != nil {
		f.t.Errorf("read error")
		return false
	}
	return true
}

func (f *formatter) setPrefix(p string) {
	trimmed := strings.TrimLeft(p, " ")
	f.prefixLead = len(p) - len(trimmed)
	f.prefixFull = len(trimmed)
	f.prefix = strings.TrimRight(trimmed, " ")
}

func (f *formatter) get() int {
	c, err := f.r.ReadByte()
	if err != nil {
		return -1
	}
	return int(c)
}

// blanks passes over blanks from c on, and gives what follows.
func (f *formatter) blanks(c int) int {
	for {
		switch c {
		case ' ':
			f.in++
		case '\t':
			f.tabs = true
			f.in = (f.in/8 + 1) * 8
		default:
			return c
		}
		c = f.get()
	}
}

// linePrefix reads the beginning of a line, with the prefix if it is there.
func (f *formatter) linePrefix() int {
	f.t.Step(1)
	f.in = 0
	c := f.blanks(f.get())
	if f.prefix == "" {
		f.nextPrefixIndent = min(f.prefixLead, f.in)
		return c
	}
	f.nextPrefixIndent = f.in
	for i := range len(f.prefix) {
		if c != int(f.prefix[i]) {
			return c
		}
		f.in++
		c = f.get()
	}
	return f.blanks(c)
}

func (f *formatter) same(c int) bool {
	return f.nextPrefixIndent == f.prefixIndent && f.in >= f.nextPrefixIndent+f.prefixFull && c != '\n' && c != -1
}

// paragraph reads one, and shows what stands before it as it is.
func (f *formatter) paragraph() bool {
	f.lastLen = 0
	c := f.next
	for c == '\n' || c == -1 || f.nextPrefixIndent < f.prefixLead || f.in < f.nextPrefixIndent+f.prefixFull {
		c = f.pass(c)
		if c == -1 {
			f.next = -1
			return false
		}
		f.w.Byte('\n')
		c = f.linePrefix()
	}
	f.prefixIndent = f.nextPrefixIndent
	f.firstIndent = f.in
	f.words, f.text = f.words[:0], f.text[:0]
	c = f.line(c)
	f.setIndent(f.same(c))
	switch {
	case f.split:
	case f.crown:
		if f.same(c) {
			for ok := true; ok; ok = f.same(c) && f.in == f.otherIndent {
				c = f.line(c)
			}
		}
	case f.tagged:
		if f.same(c) && f.in != f.firstIndent {
			for ok := true; ok; ok = f.same(c) && f.in == f.otherIndent {
				c = f.line(c)
			}
		}
	default:
		for f.same(c) && f.in == f.otherIndent {
			c = f.line(c)
		}
	}
	last := &f.words[len(f.words)-1]
	last.period, last.final = true, true
	f.next = c
	return true
}

// pass shows the rest of a line that is no part of a paragraph.
func (f *formatter) pass(c int) int {
	f.out = 0
	if f.in > f.nextPrefixIndent || c != '\n' && c != -1 {
		f.space(f.nextPrefixIndent)
		for i := 0; f.out != f.in && i < len(f.prefix); i++ {
			f.w.Byte(f.prefix[i])
			f.out++
		}
		if c != -1 && c != '\n' {
			f.space(f.in - f.out)
		}
		if c == -1 && f.in >= f.nextPrefixIndent+len(f.prefix) {
			f.w.Byte('\n')
		}
	}
	for c != '\n' && c != -1 {
		f.w.Byte(byte(c))
		c = f.get()
	}
	return c
}

func (f *formatter) setIndent(same bool) {
	switch {
	case f.split:
		f.otherIndent = f.firstIndent
	case f.crown:
		f.otherIndent = f.firstIndent
		if same {
			f.otherIndent = f.in
		}
	case f.tagged:
		if same && f.in != f.firstIndent {
			f.otherIndent = f.in
		} else if f.otherIndent == f.firstIndent {
			f.otherIndent = 0
			if f.firstIndent == 0 {
				f.otherIndent = 3
			}
		}
	default:
		f.otherIndent = f.firstIndent
	}
}

// line reads the words of a line.
func (f *formatter) line(c int) int {
	for {
		start := len(f.text)
		for {
			if len(f.text) == mostCharacters {
				f.setIndent(true)
				start = f.overflow(start)
			}
			f.text = append(f.text, byte(c))
			c = f.get()
			if c == -1 || c == ' ' || c >= '\t' && c <= '\r' {
				break
			}
		}
		w := fmtWord{text: f.text[start:len(f.text):len(f.text)]}
		f.in += len(w.text)
		w.punctuation()
		before := f.in
		c = f.blanks(c)
		w.space = f.in - before
		w.final = c == -1 || w.period && (c == '\n' || w.space > 1)
		if c == '\n' || c == -1 || f.uniform {
			w.space = 1
			if w.final {
				w.space = 2
			}
		}
		f.t.Step(1)
		if len(f.words) == mostWords-2 {
			f.setIndent(true)
			f.flush()
		}
		f.words = append(f.words, w)
		if c == '\n' || c == -1 {
			return f.linePrefix()
		}
	}
}

func (w *fmtWord) punctuation() {
	b := w.text
	w.paren = strings.IndexByte("(['`\"", b[0]) >= 0
	last := b[len(b)-1]
	w.punct = last > ' ' && last < 127 && (last < '0' || last > '9') && (last|0x20 < 'a' || last|0x20 > 'z')
	i := len(b) - 1
	for i > 0 && strings.IndexByte(")]'\"", b[i]) >= 0 {
		i--
	}
	w.period = strings.IndexByte(".?!", b[i]) >= 0
}

// overflow makes room for the rest of a word that begins at start, and tells
// where it begins then.
func (f *formatter) overflow(start int) int {
	if len(f.words) == 0 {
		f.w.Bytes(f.text)
		f.text = f.text[:0]
		return 0
	}
	rest := append([]byte(nil), f.text[start:]...)
	f.flush()
	at := len(f.text)
	f.text = append(f.text, rest...)
	return at
}

// flush writes a part of a paragraph that is too long, up to a good break.
func (f *formatter) flush() {
	f.choose()
	split, best := len(f.words), int64(mostCost)
	for i := f.words[0].nextLine; i != len(f.words); i = f.words[i].nextLine {
		if d := f.words[i].cost - f.costOf(f.words[i].nextLine); d < best {
			split, best = i, d
		}
		if best <= mostCost-lineCredit {
			best += lineCredit
		}
	}
	f.write(split)
	rest := append([]fmtWord(nil), f.words[split:]...)
	var text []byte
	for i := range rest {
		at := len(text)
		text = append(text, rest[i].text...)
		rest[i].text = text[at:len(text):len(text)]
	}
	f.words, f.text = append(f.words[:0], rest...), text
}

// costOf is the cost of what begins with a word; nothing costs nothing.
func (f *formatter) costOf(i int) int64 {
	if i == len(f.words) {
		return 0
	}
	return f.words[i].cost
}

// choose finds the line breaks that cost least.
func (f *formatter) choose() {
	n := len(f.words)
	for start := n - 1; start >= 0; start-- {
		best := int64(mostCost)
		length := f.otherIndent
		if start == 0 {
			length = f.firstIndent
		}
		length += len(f.words[start].text)
		w := start
		for {
			w++
			cost := f.lineCost(w, length) + f.costOf(w)
			if start == 0 && f.lastLen > 0 {
				cost += raggedCost(length - f.lastLen)
			}
			if cost < best {
				best = cost
				f.words[start].nextLine, f.words[start].length = w, length
			}
			if w == n {
				break
			}
			length += f.words[w-1].space + len(f.words[w].text)
			if length >= f.width {
				break
			}
		}
		f.t.Step(4 + w - start)
		f.words[start].cost = best + f.baseCost(start)
	}
}

func (f *formatter) baseCost(i int) int64 {
	cost := int64(lineCost)
	if i > 0 {
		switch last := &f.words[i-1]; {
		case last.period && last.final:
			cost -= sentenceBonus
		case last.period:
			cost += noBreakCost
		case last.punct:
			cost -= punctBonus
		case i > 1 && f.words[i-2].final:
			cost += widowCost(len(last.text))
		}
	}
	switch w := &f.words[i]; {
	case w.paren:
		cost -= parenBonus
	case w.final:
		cost += orphanCost(len(w.text))
	}
	return cost
}

func (f *formatter) lineCost(next, length int) int64 {
	if next == len(f.words) {
		return 0
	}
	cost := shortCost(f.goal - length)
	if w := &f.words[next]; w.nextLine != len(f.words) {
		cost += raggedCost(length - w.length)
	}
	return cost
}

// write writes the lines before a word that begins one.
func (f *formatter) write(end int) {
	indent := f.firstIndent
	for i := 0; i != end; i = f.words[i].nextLine {
		f.writeLine(i, indent)
		indent = f.otherIndent
	}
}

func (f *formatter) writeLine(i, indent int) {
	f.out = 0
	f.space(f.prefixIndent)
	f.w.String(f.prefix)
	f.out += len(f.prefix)
	f.space(indent - f.out)
	for end := f.words[i].nextLine; ; i++ {
		w := &f.words[i]
		f.w.Bytes(w.text)
		f.out += len(w.text)
		if i == end-1 {
			break
		}
		f.space(w.space)
	}
	f.lastLen = f.out
	f.w.Byte('\n')
}

func (f *formatter) space(n int) {
	target := f.out + n
	f.t.Step(n >> 4)
	if f.tabs {
		tab := target / 8 * 8
		if f.out+1 < tab {
			for f.out < tab {
				f.w.Byte('\t')
				f.out = (f.out/8 + 1) * 8
			}
		}
	}
	for f.out < target {
		f.w.Byte(' ')
		f.out++
	}
}
