package xan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The verbs that show tables to people.

// escapedBlanks shows what would break a line, and drops control characters.
func escapedBlanks(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == 0xad || r < ' ' && !strings.ContainsRune("\n\r\t\f", r) {
			return -1
		}
		return r
	}, s)
	return strings.NewReplacer("\r", `\r`, "\n", `\n`, "\t", `\t`, "\f", `\f`).Replace(s)
}

// shortened cuts a text to a number of places, with an ellipsis at its end.
func shortened(s string, places int) string {
	if width(s) <= places {
		return s
	}
	runes := []rune(s)
	n, w := 0, 0
	for n < len(runes) && w+width(string(runes[n])) <= places {
		w += width(string(runes[n]))
		n++
	}
	kept := string(runes[:max(0, n-1)])
	return padTo(kept, places-1, false) + "…"
}

// A shownColumn is one that view shows, perhaps in part.
type shownColumn struct{ index, width, full int }

// An arrangement is columns that fit the width of a screen: some from the
// left, and some from the right in reversed order.
type arrangement struct {
	left, right []shownColumn
	widest      int
}

func (a arrangement) columns() []shownColumn {
	right := slices.Clone(a.right)
	slices.Reverse(right)
	return append(slices.Clone(a.left), right...)
}

// better compares arrangements: by columns shown in full, then by columns, then
// by how wide one may be.
func (a arrangement) better(b arrangement) int {
	full := func(x arrangement) (n int) {
		for _, c := range x.columns() {
			if c.width == c.full {
				n++
			}
		}
		return n
	}
	return cmp.Or(cmp.Compare(full(a), full(b)), cmp.Compare(len(a.left)+len(a.right), len(b.left)+len(b.right)), cmp.Compare(a.widest, b.widest))
}

// arranged finds the best arrangement, as the real xan does: it tries several
// widths that a column may have at most.
func arranged(places int, widths []int, expand bool, lead int) arrangement {
	if expand {
		a := arrangement{widest: places}
		for i, w := range widths {
			a.left = append(a.left, shownColumn{i, min(w, places*3/4), min(w, places*3/4)})
		}
		return a
	}
	dividers := []float64{1.05, 1.1, 2.5}
	for i := range widths {
		dividers = append(dividers, float64(i+1))
	}
	slices.Sort(dividers)
	var best arrangement
	for i, d := range dividers {
		widest := int(float64(places) / d)
		if widest <= 3 {
			break
		}
		if a := attempt(places, widest, widths, lead); i == 0 || a.better(best) >= 0 {
			best = a
		}
	}
	return best
}

// attempt takes columns from both ends in turns, until the screen is full.
func attempt(places, widest int, widths []int, lead int) arrangement {
	const perCell, ellipsis = 3, 8
	a := arrangement{widest: widest}
	budget := places - ellipsis
	from, to, left := 0, len(widths)-1, true
	for from <= to && budget > 0 {
		i := from
		if left {
			from++
		} else {
			i = to
			to--
		}
		side := &a.right
		if left {
			side = &a.left
		}
		if lead > 0 {
			lead--
		} else {
			left = !left
		}
		w := min(widths[i], widest)
		if w+perCell > budget {
			if budget > 7 {
				*side = append(*side, shownColumn{i, budget, widths[i]})
			}
			break
		}
		budget -= w + perCell
		*side = append(*side, shownColumn{i, w, widths[i]})
	}
	return a
}

// A viewer draws a table with borders.
type viewer struct {
	j       *job
	columns []shownColumn
	split   int // the column that an ellipsis follows; -1 is none
	right   []bool
}

func (v *viewer) rule(left, middle, right string) error {
	parts := []string{}
	for i, c := range v.columns {
		parts = append(parts, strings.Repeat("─", c.width+2))
		if i == v.split {
			parts = append(parts, "───")
		}
	}
	return v.j.out.text("%s%s%s\n", left, strings.Join(parts, middle), right)
}

func (v *viewer) row(cells []string, align bool) error {
	parts := []string{}
	for i, c := range v.columns {
		s := shortened(cells[c.index], c.width)
		parts = append(parts, padTo(s, c.width, align && v.right[c.index]))
		if i == v.split {
			parts = append(parts, "…")
		}
	}
	return v.j.out.text("│ %s │\n", strings.Join(parts, " │ "))
}

// places gives the width of the screen.
func (j *job) places() (int, error) {
	n, err := j.number("cols", 80)
	if err == nil && n < 10 {
		err = &usageError{"the screen is too narrow"}
	}
	return n, err
}

// grouped writes an integer with commas between thousands.
func grouped(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func (j *job) view() error {
	limit, err := j.number("l", 100)
	if err != nil {
		return err
	}
	if j.a.Has("A") {
		limit = 0
	}
	places, err := j.places()
	if err != nil {
		return err
	}
	name := "<stdin>"
	if len(j.rest) > 0 {
		name = j.rest[0]
	}
	x, err := j.input()
	if err != nil {
		return err
	}
	columns, err := j.columns(x.head)
	if err != nil {
		return err
	}
	lead := 1 // the index of rows
	if j.a.Has("I") {
		lead = 0
	}
	shape := func(cells []string, index string) []string {
		out := append([]string{index}, pick(cells, columns)...)[1-lead:]
		for i, c := range out {
			out[i] = escapedBlanks(c)
		}
		return out
	}
	head := shape(x.head, "-")
	var rows [][]string
	more := false
	if err := x.each(func(row []string) error {
		if more = limit > 0 && len(rows) == limit; more {
			return errEnough
		}
		j.t.Grow(cost(row) + 24)
		rows = append(rows, shape(row, strconv.Itoa(len(rows))))
		return nil
	}); err != nil {
		return err
	}
	if x.head == nil {
		return errors.New("there is nothing")
	}
	v := &viewer{j: j, split: -1, right: make([]bool, len(head))}
	bare := j.bare || j.a.Has("H")
	a := arranged(places, v.measure(head, rows, bare, lead), j.a.Has("e"), lead)
	v.columns = a.columns()
	if len(v.columns) < len(head) {
		v.split = len(a.left) - 1
	}
	shown := grouped(len(head) - lead)
	if v.split >= 0 || len(v.columns) < len(head) {
		shown = grouped(len(v.columns)-lead) + "/" + shown
	}
	plural, which := "", ""
	if len(head) > 2 {
		plural = "s"
	}
	if more {
		which = " first"
	}
	info := fmt.Sprintf("Displaying %s col%s from %s%s rows of %s\n", shown, plural, grouped(len(rows)), which, name)
	if j.a.Has("M") {
		info = ""
	}
	return v.draw(head, rows, info, bare, more)
}

// measure finds the width of each column, and which are of integers.
func (v *viewer) measure(head []string, rows [][]string, bare bool, lead int) []int {
	widths := make([]int, len(head))
	for i, h := range head {
		if !bare {
			widths[i] = width(h)
		}
		v.right[i] = i >= lead
		for _, r := range rows {
			if r[i] == "" {
				r[i] = "<empty>"
			} else if _, err := strconv.ParseInt(r[i], 10, 64); err != nil {
				v.right[i] = false
			}
			widths[i] = max(widths[i], width(r[i]))
		}
	}
	return widths
}

func (v *viewer) draw(head []string, rows [][]string, info string, bare, more bool) error {
	dots := slices.Repeat([]string{"…"}, len(head))
	steps := []func() error{
		func() error { return v.j.out.text("\n%s", info) },
		func() error { return v.rule("┌", "┬", "┐") },
	}
	middle := func() error { return v.rule("├", "┼", "┤") }
	title := func() error { return v.row(head, false) }
	if !bare {
		steps = append(steps, title, middle)
	}
	for _, r := range rows {
		steps = append(steps, func() error { return v.row(r, true) })
	}
	if more {
		steps = append(steps, func() error { return v.row(dots, true) })
	}
	if !bare {
		steps = append(steps, middle, title)
	}
	steps = append(steps, func() error { return v.rule("└", "┴", "┘") }, func() error { return v.j.out.text("%s\n", info) })
	for _, f := range steps {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

func (j *job) flatten() error {
	more, err := j.limited("l", 0)
	if err != nil {
		return err
	}
	if s, _ := j.a.Value("l"); s == "0" {
		return &usageError{"invalid number '0'"}
	}
	places, err := j.places()
	if err != nil {
		return err
	}
	x, err := j.input()
	if err != nil {
		return err
	}
	columns, err := j.columns(x.head)
	if err != nil {
		return err
	}
	if j.a.Has("csv") {
		return j.flattenCSV(x, columns, more)
	}
	if len(columns) == 0 {
		return errors.New("the file is empty")
	}
	names := pick(x.head, columns)
	widest := 0
	for i, h := range names {
		names[i] = escapedBlanks(h)
		widest = max(widest, width(names[i]))
	}
	for i, h := range names {
		names[i] = padTo(h, widest+1, false)
	}
	if places < widest+2 {
		return errors.New("the screen is too narrow")
	}
	rule := strings.Repeat("─", places)
	separator, separated := j.a.Value("row-separator")
	return x.each(func(row []string) error {
		var b strings.Builder
		switch {
		case x.rows > 1 && separated && separator != "":
			b.WriteString(separator + "\n")
		case x.rows > 1 && !separated:
			b.WriteString("\n")
		}
		if !separated {
			fmt.Fprintf(&b, "Row n°%d\n%s\n", x.rows-1, rule)
		}
		for i, c := range columns {
			s := row[c]
			if s == "" {
				if j.a.Has("N") {
					continue
				}
				s = "<empty>"
			}
			b.WriteString(names[i])
			if j.a.Has("F") {
				s = "\n" + s + "\n"
			}
			b.WriteString(s + "\n")
		}
		if err := j.out.text("%s", b.String()); err != nil || more() {
			return err
		}
		return errEnough
	})
}

// flattenCSV writes a row of each cell.
func (j *job) flattenCSV(x *table, columns []int, more func() bool) error {
	if err := j.out.row([]string{"row", "field", "value"}); err != nil {
		return err
	}
	return x.each(func(row []string) error {
		for _, c := range columns {
			if err := j.out.row([]string{strconv.Itoa(x.rows - 1), x.head[c], row[c]}); err != nil {
				return err
			}
		}
		if more() {
			return nil
		}
		return errEnough
	})
}
