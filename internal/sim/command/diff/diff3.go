package diff

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

var diff3Spec = &command.Spec{
	Name: "diff3", Synopsis: "[OPTION]... MYFILE OLDFILE YOURFILE", Exit: 2, NoTry: true, About: "Compare three files line by line.",
	Options: []command.Option{
		{Short: 'A', Long: "show-all", Help: "output all changes, bracketing conflicts"},
		{Short: 'e', Long: "ed", Help: "output ed script incorporating changes from OLDFILE to YOURFILE into MYFILE"},
		{Short: 'E', Long: "show-overlap", Help: "like -e, but bracket conflicts"},
		{Short: '3', Long: "easy-only", Help: "like -e, but incorporate only nonoverlapping changes"},
		{Short: 'x', Long: "overlap-only", Help: "like -e, but incorporate only overlapping changes"},
		{Short: 'X', Help: "like -x, but bracket conflicts"},
		{Short: 'i', Help: "append 'w' and 'q' commands to ed scripts"},
		{Short: 'm', Long: "merge", Help: "output actual merged file, according to -A if no other options are given"},
		{Short: 'a', Long: "text", Help: "treat all files as text"},
		{Long: "strip-trailing-cr", Help: "strip trailing carriage return on input"},
		{Short: 'T', Long: "initial-tab", Help: "make tabs line up by prepending a tab"},
		{Short: 'L', Long: "label", Arg: command.Required, Name: "LABEL", Help: "use LABEL instead of file name (can be repeated up to three times)"},
	},
}

// A block is a place where the three files are not the same: ranges of lines of
// mine, the old one and yours.
type block struct {
	from, to [3]int
	kind     byte // '1', '2' and '3' where that file alone differs, 0 where all do
}

type three struct {
	t      *kernel.Task
	w      *command.Writer
	lines  [3][][]byte
	labels [3]string
	blocks []block
	tab    bool
}

func runDiff3(t *kernel.Task) int {
	a, status, ok := diff3Spec.Parse(t)
	if !ok {
		if status != 0 {
			return tryHelp(t)
		}
		return 0
	}
	x := &three{t: t, w: command.StdoutStatus(t, 2), tab: a.Has("T")}
	how, labels := byte(0), 0
	for _, f := range a.Flags {
		switch f.Key {
		case "A", "e", "E", "3", "x", "X":
			if how != 0 {
				return usage(t, "incompatible options")
			}
			how = f.Key[0]
		case "L":
			if labels == 3 {
				return usage(t, "too many file label options")
			}
			x.labels[labels] = f.Value
			labels++
		}
	}
	switch n := len(a.Operands); {
	case n < 3:
		return usage(t, "missing operand after '%s'", t.Args[len(t.Args)-1])
	case n > 3:
		return usage(t, "extra operand '%s'", a.Operands[3])
	}
	if status := x.load(a, labels); status != 0 {
		return status
	}
	switch {
	case a.Has("m"):
		if how == 0 {
			how = 'A'
		}
		return x.merge(how)
	case how != 0:
		return x.script(how, a.Has("i"))
	}
	x.show()
	x.w.Flush()
	return 0
}

func (x *three) load(a *command.Args, labels int) int {
	d := &differ{t: x.t, w: x.w, context: -1, tab: 8, stripCR: a.Has("strip-trailing-cr")}
	var sides [3]side
	for i, name := range a.Operands {
		if i >= labels {
			x.labels[i] = name
		}
		sides[i] = d.look(name)
		if err := sides[i].read(x.t); err != nil {
			x.t.Errorf("%s: %s", name, reason(err))
			return 2
		}
		if !a.Has("a") && sides[i].binary() {
			x.t.Errorf("%s", "diff failed: Binary files differ")
			return 2
		}
	}
	old, again := sides[1], sides[1]
	mine := d.hunks(&old, &sides[0])
	yours := d.hunks(&again, &sides[2])
	x.lines = [3][][]byte{sides[0].lines, old.lines, sides[2].lines}
	x.join(mine, yours)
	return 0
}

// join makes blocks of the changes of both sides that touch or overlap.
func (x *three) join(mine, yours []hunk) {
	shiftMine, shiftYours := 0, 0
	for len(mine) > 0 || len(yours) > 0 {
		x.t.Step(4)
		lo := len(x.lines[1]) + 1
		if len(mine) > 0 {
			lo = mine[0].a0
		}
		if len(yours) > 0 {
			lo = min(lo, yours[0].a0)
		}
		hi, inMine, inYours := lo, 0, 0
		b := block{}
		b.from = [3]int{lo + shiftMine, lo, lo + shiftYours}
		for more := true; more; {
			switch {
			case inMine < len(mine) && mine[inMine].a0 <= hi:
				hi = max(hi, mine[inMine].a1)
				shiftMine = mine[inMine].b1 - mine[inMine].a1
				inMine++
			case inYours < len(yours) && yours[inYours].a0 <= hi:
				hi = max(hi, yours[inYours].a1)
				shiftYours = yours[inYours].b1 - yours[inYours].a1
				inYours++
			default:
				more = false
			}
		}
		b.to = [3]int{hi + shiftMine, hi, hi + shiftYours}
		switch {
		case inYours == 0:
			b.kind = '1'
		case inMine == 0:
			b.kind = '3'
		case x.same(b, 0, 2):
			b.kind = '2'
		}
		mine, yours = mine[inMine:], yours[inYours:]
		x.t.Grow(56)
		x.blocks = append(x.blocks, b)
	}
}

func (x *three) same(b block, i, j int) bool {
	p, q := x.lines[i][b.from[i]:b.to[i]], x.lines[j][b.from[j]:b.to[j]]
	if len(p) != len(q) {
		return false
	}
	for n := range p {
		x.t.Step(1)
		if !bytes.Equal(p[n], q[n]) {
			return false
		}
	}
	return true
}

// show prints what differs for people.
func (x *three) show() {
	indent := "  "
	if x.tab {
		indent = "\t"
	}
	for _, b := range x.blocks {
		x.w.String("====")
		order := [3]int{0, 1, 2}
		skip := -1
		switch b.kind {
		case '1':
			skip = 1
		case '2':
			order, skip = [3]int{0, 2, 1}, 0
		case '3':
			skip = 0
		}
		if b.kind != 0 {
			x.w.Byte(b.kind)
		}
		x.w.Byte('\n')
		for _, i := range order {
			from, to := b.from[i], b.to[i]
			x.w.String(strconv.Itoa(i+1) + ":")
			switch to - from {
			case 0:
				x.w.String(strconv.Itoa(from) + "a\n")
			case 1:
				x.w.String(strconv.Itoa(from+1) + "c\n")
			default:
				x.w.String(strconv.Itoa(from+1) + "," + strconv.Itoa(to) + "c\n")
			}
			if i == skip {
				continue
			}
			for _, l := range x.lines[i][from:to] {
				x.w.String(indent)
				x.w.Bytes(l)
				if !bytes.HasSuffix(l, []byte("\n")) {
					x.w.String("\n\\ No newline at end of file\n")
				}
			}
		}
	}
}

func (x *three) put(lines [][]byte) {
	for _, l := range lines {
		x.w.Bytes(l)
	}
}

// wanted tells what becomes of a block: taken from yours, in conflict, or left.
func wanted(how, kind byte) (take, conflict bool) {
	switch how {
	case 'e':
		return kind == '3' || kind == 0, false
	case 'E':
		return kind == '3', kind == 0
	case '3':
		return kind == '3', false
	case 'x', 'X': // GNU's brackets nothing for -X either
		return kind == 0, false
	}
	return kind == '3', kind == 0 || kind == '2'
}

// merge prints the merged file.
func (x *three) merge(how byte) int {
	at, status := 0, 0
	for _, b := range x.blocks {
		take, conflict := wanted(how, b.kind)
		x.put(x.lines[0][at:b.from[0]])
		at = b.to[0]
		mine, old, yours := x.lines[0][b.from[0]:b.to[0]], x.lines[1][b.from[1]:b.to[1]], x.lines[2][b.from[2]:b.to[2]]
		switch {
		case conflict && b.kind == '2':
			x.w.String("<<<<<<< " + x.labels[1] + "\n")
			x.put(old)
			x.w.String("=======\n")
			x.put(yours)
			x.w.String(">>>>>>> " + x.labels[2] + "\n")
			status = 1
		case conflict:
			x.w.String("<<<<<<< " + x.labels[0] + "\n")
			x.put(mine)
			if how == 'A' {
				x.w.String("||||||| " + x.labels[1] + "\n")
				x.put(old)
			}
			x.w.String("=======\n")
			x.put(yours)
			x.w.String(">>>>>>> " + x.labels[2] + "\n")
			status = 1
		case take:
			x.put(yours)
		default:
			x.put(mine)
		}
	}
	x.put(x.lines[0][at:])
	x.w.Flush()
	return status
}

// script prints the changes for ed, the last first.
func (x *three) script(how byte, quit bool) int {
	status := 0
	dotted := func(lines [][]byte) (double bool) {
		for _, l := range lines {
			if l[0] == '.' {
				x.w.Byte('.')
				double = true
			}
			x.w.Bytes(l)
			if !bytes.HasSuffix(l, []byte("\n")) {
				x.w.Byte('\n')
			}
		}
		return double
	}
	for i := len(x.blocks) - 1; i >= 0; i-- {
		b := x.blocks[i]
		take, conflict := wanted(how, b.kind)
		from, to := b.from[0]+1, b.to[0]
		old, yours := x.lines[1][b.from[1]:b.to[1]], x.lines[2][b.from[2]:b.to[2]]
		switch {
		case conflict:
			status = 1
			x.w.String(strconv.Itoa(to) + "a\n")
			var double bool
			if b.kind == 0 {
				if how == 'A' {
					x.w.String("||||||| " + x.labels[1] + "\n")
					double = dotted(old)
				}
				x.w.String("=======\n")
				double = dotted(yours) || double
				x.w.String(">>>>>>> " + x.labels[2] + "\n.\n")
			} else {
				x.w.String(">>>>>>> " + x.labels[2] + "\n.\n")
			}
			if double {
				x.span(to+2, to+2+len(old)+len(yours), "s/^\\.//\n")
			}
			if b.kind == 0 {
				x.w.String(strconv.Itoa(from-1) + "a\n<<<<<<< " + x.labels[0] + "\n.\n")
				continue
			}
			x.w.String(strconv.Itoa(from-1) + "a\n<<<<<<< " + x.labels[1] + "\n")
			double = dotted(old)
			x.w.String("=======\n.\n")
			if double {
				x.span(from+1, from+len(old), "s/^\\.//\n")
			}
		case take && len(yours) == 0:
			x.span(from, to, "d\n")
		case take:
			if to < from {
				x.w.String(strconv.Itoa(to) + "a\n")
			} else {
				x.span(from, to, "c\n")
			}
			double := dotted(yours)
			x.w.String(".\n")
			if double {
				x.span(from, from+len(yours)-1, "s/^\\.//\n")
			}
		}
	}
	if quit {
		x.w.String("w\nq\n")
	}
	x.w.Flush()
	return status
}

func (x *three) span(from, to int, what string) {
	x.w.String(strconv.Itoa(from))
	if to > from {
		x.w.String("," + strconv.Itoa(to))
	}
	x.w.String(what)
}

var sdiffSpec = &command.Spec{
	Name: "sdiff", Synopsis: "[OPTION]... FILE1 FILE2", Exit: 2, NoTry: true, About: "Side-by-side merge of differences between FILE1 and FILE2.",
	Options: []command.Option{
		{Short: 'o', Long: "output", Arg: command.Required, Name: "FILE", Help: "(refused: there is nobody to ask)"},
		{Short: 'i', Long: "ignore-case", Help: "consider upper- and lower-case to be the same"}, {Short: 'E', Long: "ignore-tab-expansion", Help: "ignore changes due to tab expansion"},
		{Short: 'Z', Long: "ignore-trailing-space", Help: "ignore white space at line end"}, {Short: 'b', Long: "ignore-space-change", Help: "ignore changes in the amount of white space"},
		{Short: 'W', Long: "ignore-all-space", Help: "ignore all white space"}, {Short: 'B', Long: "ignore-blank-lines", Help: "ignore changes whose lines are all blank"},
		{Short: 'I', Long: "ignore-matching-lines", Arg: command.Required, Name: "RE", Help: "ignore changes all whose lines match RE"}, {Long: "strip-trailing-cr", Help: "strip trailing carriage return on input"},
		{Short: 'a', Long: "text", Help: "treat all files as text"}, {Short: 'w', Long: "width", Arg: command.Required, Name: "NUM", Help: "output at most NUM (default 130) print columns"},
		{Short: 'l', Long: "left-column", Help: "output only the left column of common lines"}, {Short: 's', Long: "suppress-common-lines", Help: "do not output common lines"},
		{Short: 't', Long: "expand-tabs", Help: "expand tabs to spaces in output"}, {Long: "tabsize", Arg: command.Required, Name: "NUM", Help: "tab stops at every NUM (default 8) print columns"},
		{Short: 'd', Long: "minimal", Help: "try hard to find a smaller set of changes"}, {Short: 'H', Long: "speed-large-files", Help: "assume large files, many scattered small changes"},
	},
}

// runSdiff is diff -y under another name, with other names of options.
func runSdiff(t *kernel.Task) int {
	a, status, ok := sdiffSpec.Parse(t)
	if !ok {
		if status != 0 {
			return tryHelp(t)
		}
		return 0
	}
	args := []string{"-y"}
	for _, f := range a.Flags {
		switch f.Key {
		case "o":
			t.Errorf("-o asks at each difference, and there is nobody to ask in this sandbox")
			return 2
		case "W":
			args = append(args, "-w")
		case "w":
			args = append(args, "-W", f.Value)
		case "l":
			args = append(args, "--left-column")
		case "s":
			args = append(args, "--suppress-common-lines")
		case "I":
			args = append(args, "-I", f.Value)
		case "tabsize":
			args = append(args, "--tabsize="+f.Value)
		case "strip-trailing-cr":
			args = append(args, "--strip-trailing-cr")
		default:
			args = append(args, "-"+f.Key)
		}
	}
	switch n := len(a.Operands); {
	case n < 2:
		return usage(t, "missing operand after '%s'", t.Args[len(t.Args)-1])
	case n > 2:
		return usage(t, "extra operand '%s'", a.Operands[2])
	}
	t.Args = append(append([]string{strings.TrimSuffix(t.Args[0], "sdiff") + "sdiff"}, args...), append([]string{"--"}, a.Operands...)...)
	return runDiff(t)
}
