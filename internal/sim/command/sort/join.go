package sort

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

var joinSpec = command.Spec{
	Name: "join", Synopsis: "[OPTION]... FILE1 FILE2",
	About: "For each pair of input lines with identical join fields, write a line to standard output.",
	Options: []command.Option{
		{Short: 'a', Arg: command.Required, Name: "FILENUM", Help: "also print unpairable lines from file FILENUM, where FILENUM is 1 or 2"},
		{Short: 'e', Arg: command.Required, Name: "STRING", Help: "replace missing input fields with STRING"},
		{Short: 'i', Long: "ignore-case", Help: "ignore differences in case when comparing fields"},
		{Short: 'j', Arg: command.Required, Name: "FIELD", Help: "equivalent to '-1 FIELD -2 FIELD'"},
		{Short: 'o', Arg: command.Required, Name: "FORMAT", Help: "obey FORMAT while constructing output line"},
		{Short: 't', Arg: command.Required, Name: "CHAR", Help: "use CHAR as input and output field separator"},
		{Short: 'v', Arg: command.Required, Name: "FILENUM", Help: "like -a FILENUM, but suppress joined output lines"},
		{Short: '1', Arg: command.Required, Name: "FIELD", Help: "join on this FIELD of file 1"},
		{Short: '2', Arg: command.Required, Name: "FIELD", Help: "join on this FIELD of file 2"},
		{Long: "check-order", Help: "check that the input is correctly sorted, even if all input lines are pairable"},
		{Long: "nocheck-order", Help: "do not check that the input is correctly sorted"},
		{Long: "header", Help: "treat the first line in each file as field headers, print them without trying to pair them"},
		{Short: 'z', Long: "zero-terminated", Help: "line delimiter is NUL, not newline"},
	},
}

// A record is a line and its fields.
type record struct {
	line   []byte
	fields [][]byte
	room   [4][]byte // for the fields of most
}

func (r *record) field(i int) ([]byte, bool) {
	if i >= len(r.fields) {
		return nil, false
	}
	return r.fields[i], true
}

// A place is a field of the output; file 0 is the join field.
type place struct{ file, field int }

// A side is one of the two files.
type side struct {
	name   string
	r      *command.Reader
	number int
	last   *record // that was read, to see whether the order is right
	told   bool    // of a wrong order
	paid   [2]int  // for the last record, and the one before it
}

type joiner struct {
	t        *kernel.Task
	w        *command.Writer
	field    [2]int
	alone    [2]bool // lines without a partner are shown
	pairs    bool
	fold     bool
	tab      int // -1 is blanks, -2 the whole line
	empty    string
	places   []place
	auto     bool
	counts   [2]int // of fields, for auto
	end      byte
	check    int // 0 is where it matters, 1 always, -1 never
	unpaired bool
	sides    [2]side
	group    [2][]*record // room for lines of one key
	status   int
}

func runJoin(t *kernel.Task) int {
	a, status, ok := joinSpec.Parse(t)
	if !ok {
		return status
	}
	j := &joiner{t: t, w: command.Stdout(t), pairs: true, tab: -1, end: command.Delimiter(a), field: [2]int{-1, -1}}
	if status := j.options(a); status != 0 {
		return status
	}
	operands := a.Operands
	switch {
	case len(operands) == 0:
		return joinSpec.Usage(t, "missing operand")
	case len(operands) == 1:
		return joinSpec.Usage(t, "missing operand after %s", command.Quote(operands[0]))
	case len(operands) > 2:
		return joinSpec.Usage(t, "extra operand %s", command.QuoteAlways(operands[2]))
	case operands[0] == "-" && operands[1] == "-":
		t.Errorf("both files cannot be standard input: %s", message(linux.ENOENT))
		return 1
	}
	for i := range j.field {
		j.field[i] = max(0, j.field[i])
	}
	for i, name := range operands {
		r, err := command.OpenReader(t, name)
		if err != nil {
			command.FailFile(t, name, err)
			return 1
		}
		defer r.Close()
		j.sides[i] = side{name: name, r: r}
	}
	j.run(a.Has("header"))
	for i := range j.sides {
		if err := j.sides[i].r.Err(); err != nil {
			t.Errorf("read error: %s", message(err))
			return 1
		}
	}
	if j.sides[0].told || j.sides[1].told {
		t.Errorf("input is not in sorted order")
		return 1
	}
	return j.status
}

func (j *joiner) options(a *command.Args) int {
	t := j.t
	empty := false
	for _, f := range a.Flags {
		switch f.Key {
		case "a", "v":
			if f.Key == "v" {
				j.pairs = false
			}
			n, err := command.ParseUint(f.Value, "")
			if err != nil || n != 1 && n != 2 {
				t.Errorf("invalid field number: %s", command.Quote(f.Value))
				return 1
			}
			j.alone[n-1] = true
		case "e":
			if empty && j.empty != f.Value {
				t.Errorf("conflicting empty-field replacement strings")
				return 1
			}
			j.empty, empty = f.Value, true
		case "i":
			j.fold = true
		case "1", "2", "j":
			n, status := j.number(f.Value)
			if status != 0 {
				return status
			}
			for i := range 2 {
				if f.Key == "j" || f.Key == strconv.Itoa(i+1) {
					if j.field[i] >= 0 && j.field[i] != n {
						t.Errorf("incompatible join fields %d, %d", j.field[i]+1, n+1)
						return 1
					}
					j.field[i] = n
				}
			}
		case "o":
			if f.Value == "auto" {
				j.auto = true
			} else if !j.format(f.Value) {
				return 1
			}
		case "t":
			if status := j.separator(f.Value); status != 0 {
				return status
			}
		case "check-order":
			j.check = 1
		case "nocheck-order":
			j.check = -1
		}
	}
	// -o takes more than one operand, as long as they look like places.
	for len(a.Operands) > 2 && a.Has("o") && !j.auto {
		if !j.format(a.Operands[0]) {
			return 1
		}
		a.Operands = a.Operands[1:]
	}
	return 0
}

func (j *joiner) number(s string) (int, int) {
	n, err := command.ParseUint(s, "")
	switch {
	case errors.Is(err, command.ErrLarge):
		return never, 0
	case err != nil || n == 0:
		j.t.Errorf("invalid field number: %s", command.Quote(s))
		return 0, 1
	}
	return int(min(n-1, never)), 0
}

func (j *joiner) separator(s string) int {
	tab := 0
	switch {
	case s == "":
		tab = -2
	case len(s) == 1:
		tab = int(s[0])
	case s == `\0`:
		tab = 0
	default:
		j.t.Errorf("multi-character tab %s", command.Quote(s))
		return 1
	}
	if j.tab != -1 && j.tab != tab {
		j.t.Errorf("incompatible tabs")
		return 1
	}
	j.tab = tab
	return 0
}

func (j *joiner) format(s string) bool {
	for _, word := range strings.FieldsFunc(s, func(c rune) bool { return c == ',' || c == ' ' || c == '\t' }) {
		switch {
		case word == "0":
			j.places = append(j.places, place{})
			continue
		case word[0] == '0':
			j.t.Errorf("invalid field specifier: %s", command.Quote(word))
			return false
		case word[0] != '1' && word[0] != '2':
			j.t.Errorf("invalid file number in field spec: %s", command.Quote(word))
			return false
		case len(word) < 2 || word[1] != '.':
			j.t.Errorf("invalid field specifier: %s", command.Quote(word))
			return false
		}
		n, status := j.number(word[2:])
		if status != 0 {
			return false
		}
		j.places = append(j.places, place{int(word[0] - '0'), n})
	}
	return true
}

// next reads a line of a side.
func (j *joiner) next(i int) *record {
	s := &j.sides[i]
	line, _, ok := s.r.Line(j.end)
	if !ok {
		return nil
	}
	s.number++
	j.t.Step(1)
	n := fieldCount(line, j.tab)
	j.t.Step(len(line) >> 6)
	s.pay(j.t, recordCost(len(line), n))
	rec := &record{line: bytes.Clone(line)}
	rec.fields = rec.room[:0]
	if n > len(rec.room) {
		rec.fields = make([][]byte, 0, n)
	}
	rec.split(j.tab)
	if s.last != nil {
		j.checkOrder(i, s.last, rec)
	}
	s.last = rec
	return rec
}

// recordCost is what a record takes.
func recordCost(line, fields int) int { return line + 24*fields + 160 }

// pay counts a record that is about to be there, in place of the one before the last: each is kept until the one after it is
// read. Those of a group are counted once more.
func (s *side) pay(t *kernel.Task, n int) {
	t.Grow(n)
	t.Shrink(s.paid[0])
	s.paid = [2]int{s.paid[1], n}
}

// fieldCount tells how many fields split finds.
func fieldCount(line []byte, tab int) int {
	switch {
	case tab == -2:
		return 1
	case tab >= 0:
		return bytes.Count(line, []byte{byte(tab)}) + 1
	}
	n, blank := 1, true
	for _, c := range line {
		if b := isBlank(c); b != blank {
			blank = b
			if !b {
				n++
			}
		}
	}
	return n
}

func (r *record) split(tab int) {
	b := r.line
	switch {
	case tab == -2:
		r.fields = [][]byte{b}
	case tab >= 0:
		if len(b) == 0 {
			return
		}
		for {
			i := bytes.IndexByte(b, byte(tab))
			if i < 0 {
				break
			}
			r.fields = append(r.fields, b[:i:i])
			b = b[i+1:]
		}
		r.fields = append(r.fields, b)
	default:
		for len(b) > 0 && isBlank(b[0]) {
			b = b[1:]
		}
		for len(b) > 0 {
			n := 0
			for n < len(b) && !isBlank(b[n]) {
				n++
			}
			r.fields = append(r.fields, b[:n:n])
			if b = b[n:]; len(b) == 0 {
				return
			}
			for len(b) > 0 && isBlank(b[0]) {
				b = b[1:]
			}
			if len(b) == 0 {
				r.fields = append(r.fields, b) // behind blanks at the end, an empty one
			}
		}
	}
}

func (j *joiner) compare(a, b *record, x, y int) int {
	one, ok1 := a.field(x)
	two, ok2 := b.field(y)
	switch {
	case !ok1 || len(one) == 0:
		if !ok2 || len(two) == 0 {
			return 0
		}
		return -1
	case !ok2 || len(two) == 0:
		return 1
	}
	if j.fold {
		one, two = bytes.ToUpper(one), bytes.ToUpper(two)
	}
	return bytes.Compare(one, two)
}

// checkOrder complains of a wrong order, once for each side.
func (j *joiner) checkOrder(i int, last, now *record) {
	s := &j.sides[i]
	if j.check < 0 || j.check == 0 && !j.unpaired || s.told {
		return
	}
	if j.compare(last, now, j.field[i], j.field[i]) <= 0 {
		return
	}
	j.t.Errorf("%s:%d: is not sorted: %s", command.QuoteFile(s.name), s.number, now.line)
	if j.check > 0 {
		j.t.Exit(1)
	}
	s.told = true
}

func (j *joiner) run(header bool) {
	one, two := j.next(0), j.next(1)
	if j.auto {
		for i, r := range []*record{one, two} {
			if r != nil {
				j.counts[i] = len(r.fields)
			}
		}
	}
	if header && (one != nil || two != nil) {
		j.show(one, two)
		for i := range j.sides {
			j.sides[i].last = nil
		}
		if one != nil {
			one = j.next(0)
		}
		if two != nil {
			two = j.next(1)
		}
	}
	for one != nil && two != nil {
		c := j.compare(one, two, j.field[0], j.field[1])
		switch {
		case c < 0:
			j.single(0, one)
			one = j.next(0)
			j.unpaired = true
		case c > 0:
			j.single(1, two)
			two = j.next(1)
			j.unpaired = true
		default:
			one, two = j.groups(one, two)
		}
	}
	j.rest(0, one, two == nil)
	j.rest(1, two, one == nil)
}

// groups pairs all lines of the same field.
func (j *joiner) groups(one, two *record) (nextOne, nextTwo *record) {
	counted := 0
	hold := func(r *record) {
		n := recordCost(len(r.line), cap(r.fields))
		j.t.Grow(n)
		counted += n
	}
	hold(one)
	hold(two)
	a, b := append(j.group[0][:0], one), append(j.group[1][:0], two)
	for nextOne = j.next(0); nextOne != nil && j.compare(nextOne, two, j.field[0], j.field[1]) == 0; nextOne = j.next(0) {
		hold(nextOne)
		a = append(a, nextOne)
	}
	for nextTwo = j.next(1); nextTwo != nil && j.compare(one, nextTwo, j.field[0], j.field[1]) == 0; nextTwo = j.next(1) {
		hold(nextTwo)
		b = append(b, nextTwo)
	}
	if j.pairs {
		for _, x := range a {
			for _, y := range b {
				j.t.Step(1)
				j.show(x, y)
			}
		}
	}
	j.t.Shrink(counted)
	j.group[0], j.group[1] = a[:1], b[:1] // for the next; of a large one nothing else is kept
	if cap(a)+cap(b) > 1024 {
		j.group = [2][]*record{}
	}
	return nextOne, nextTwo
}

func (j *joiner) single(i int, r *record) {
	if !j.alone[i] {
		return
	}
	if i == 0 {
		j.show(r, nil)
	} else {
		j.show(nil, r)
	}
}

// rest goes through what is left of a side.
func (j *joiner) rest(i int, r *record, otherEnded bool) {
	if r == nil || !j.alone[i] && (j.check < 0 || j.sides[i].told) {
		return
	}
	if otherEnded && j.sides[1-i].number > 0 {
		j.unpaired = true
	}
	for r != nil {
		j.single(i, r)
		if j.sides[i].told && !j.alone[i] {
			return
		}
		r = j.next(i)
	}
}

// show writes a line of the output; one of the records may be missing.
func (j *joiner) show(a, b *record) {
	sep := byte(' ')
	if j.tab >= 0 {
		sep = byte(j.tab)
	}
	if j.tab == -2 {
		sep = j.end
	}
	first := true
	put := func(text []byte, ok bool) {
		if !first {
			j.w.Byte(sep)
		}
		first = false
		if !ok || len(text) == 0 {
			j.w.String(j.empty)
			return
		}
		j.w.Bytes(text)
	}
	get := func(r *record, i int) ([]byte, bool) {
		if r == nil {
			return nil, false
		}
		return r.field(i)
	}
	key := func() ([]byte, bool) {
		if a != nil {
			return a.field(j.field[0])
		}
		return b.field(j.field[1])
	}
	if len(j.places) > 0 {
		for _, p := range j.places {
			switch p.file {
			case 0:
				put(key())
			case 1:
				put(get(a, p.field))
			case 2:
				put(get(b, p.field))
			}
		}
		j.w.Byte(j.end)
		return
	}
	put(key())
	for i, r := range []*record{a, b} {
		n := 0
		if j.auto {
			n = j.counts[i]
		} else if r != nil {
			n = len(r.fields)
		}
		for k := range n {
			if k != j.field[i] {
				put(get(r, k))
			}
		}
	}
	j.w.Byte(j.end)
}
