package date

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/strftime"
)

var calSpec = command.Spec{
	Name: "cal", Synopsis: "[-13bhjMNSwy] [-A number] [-B number] [-d yyyy-mm] [-m month] [[month] year]",
	About: "Display a calendar.",
	Options: []command.Option{
		{Short: '1', Help: "display only one month"}, {Short: '3', Help: "display the previous, current and next month"},
		{Short: 'A', Arg: command.Required, Name: "number", Help: "months after"}, {Short: 'B', Arg: command.Required, Name: "number", Help: "months before"},
		{Short: 'b', Help: "use cal's layout"}, {Short: 'N', Help: "use ncal's layout"}, {Short: 'C', Help: "use cal's layout"},
		{Short: 'd', Arg: command.Required, Name: "yyyy-mm", Help: "use that as the current month"},
		{Short: 'H', Arg: command.Required, Name: "yyyy-mm-dd", Help: "(ignored)"},
		{Short: 'h', Help: "turn off highlighting of today (it is always off)"}, {Short: 'j', Help: "display days of the year"},
		{Short: 'm', Arg: command.Required, Name: "month", Help: "display the specified month"},
		{Short: 'M', Help: "weeks start on Monday"}, {Short: 'S', Help: "weeks start on Sunday"},
		{Short: 'w', Help: "print the number of the week below each column"}, {Short: 'y', Help: "display a calendar for the specified year"},
	},
}

// mostMonths is how many months one call shows at most.
const mostMonths = 12 * 1000

// A calendar is what was asked for.
type calendar struct {
	vertical, julian, monday, weeks bool
}

func runCal(t *kernel.Task) int {
	spec := calSpec
	spec.Name = t.Name()
	a, status, ok := spec.Parse(t)
	if !ok {
		return status
	}
	now := t.K.Now().In(strftime.Zone(t.Getenv("TZ")))
	year, month := now.Year(), int(now.Month())
	before, after, whole := 0, 0, a.Has("y")
	c := &calendar{vertical: t.Name() == "ncal", julian: a.Has("j"), weeks: a.Has("w")}
	c.monday = c.vertical
	fail := func(err error) int {
		t.Errorf("%s", err)
		return 64
	}
	for _, f := range a.Flags {
		var err error
		switch f.Key {
		case "1":
			before, after = 0, 0
		case "3":
			before, after = 1, 1
		case "A":
			after, err = months(f.Value)
		case "B":
			before, err = months(f.Value)
		case "b", "C":
			c.vertical, c.monday = false, false
		case "N":
			c.vertical, c.monday = true, true
		case "M":
			c.monday = true
		case "S":
			c.monday = false
		case "d":
			y, m, ok := strings.Cut(f.Value, "-")
			if !ok {
				return fail(fmt.Errorf("%s is neither a month number (1..12) nor a name", f.Value))
			}
			if year, err = years(y); err == nil {
				month, err = monthOf(m)
			}
		case "m":
			month, err = monthOf(f.Value)
		}
		if err != nil {
			return fail(err)
		}
	}
	var err error
	switch len(a.Operands) {
	case 0:
	case 1:
		if year, err = years(a.Operands[0]); err == nil && !a.Has("m") {
			if _, e := strconv.Atoi(a.Operands[0]); e == nil {
				whole = true
			}
		} else if err != nil {
			if m, e := monthOf(a.Operands[0]); e == nil {
				year, month, err = now.Year(), m, nil
			}
		}
	case 2:
		if month, err = monthOf(a.Operands[0]); err == nil {
			year, err = years(a.Operands[1])
		}
	default:
		return spec.Usage(t, "too many arguments")
	}
	if err != nil {
		return fail(err)
	}
	w := command.Stdout(t)
	if whole {
		c.year(t, w, year)
		return 0
	}
	first := year*12 + month - 1 - before
	count := before + after + 1
	if first < 12 || first+count > 10000*12 || count > mostMonths {
		return fail(fmt.Errorf("year `%d' not in range 1..9999", (first+count)/12))
	}
	c.rows(t, w, first, count, false)
	return 0
}

func months(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > mostMonths {
		return 0, fmt.Errorf("argument must be a positive number: %s", s)
	}
	return n, nil
}

func years(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > 9999 {
		return 0, fmt.Errorf("year `%s' not in range 1..9999", s)
	}
	return n, nil
}

func monthOf(s string) (int, error) {
	if n, err := strconv.Atoi(s); err == nil && n >= 1 && n <= 12 {
		return n, nil
	}
	for m := time.January; m <= time.December && len(s) >= 3; m++ {
		if name := m.String(); len(s) <= len(name) && strings.EqualFold(name[:len(s)], s) {
			return int(m), nil
		}
	}
	return 0, errors.New(s + " is neither a month number (1..12) nor a name")
}

// A month is shown as days in weeks: a day is 0 where there is none.
type month struct {
	year, month int
	days        []int // of the month
	first       int   // weekday of the first, from the start of the week on
	before      int   // days of the year before the month
}

// reform is the month in which Britain changed its calendar: the days from 3
// to 13 are missing.
const reform = 1752*12 + 8

// leap tells leap years of the calendar of the time.
func leap(y int) bool {
	if y <= 1752 {
		return y%4 == 0
	}
	return y%4 == 0 && y%100 != 0 || y%400 == 0
}

func length(y, m int) int {
	switch m {
	case 2:
		if leap(y) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// weekday gives the day of the week of the first of a month, 0 for Sunday.
func weekday(y, m int) int {
	a := (14 - m) / 12
	yy, mm := y-a, m+12*a-2
	if y*12+m-1 <= reform {
		return (5 + 1 + yy + yy/4 + 31*mm/12) % 7
	}
	return (1 + yy + yy/4 - yy/100 + yy/400 + 31*mm/12) % 7
}

func (c *calendar) month(n int) *month {
	x := &month{year: n / 12, month: n%12 + 1}
	for d := 1; d <= length(x.year, x.month); d++ {
		if n != reform || d < 3 || d > 13 {
			x.days = append(x.days, d)
		}
	}
	x.first = weekday(x.year, x.month)
	if c.monday {
		x.first = (x.first + 6) % 7
	}
	for m := 1; m < x.month; m++ {
		x.before += length(x.year, m)
	}
	if x.year == 1752 && x.month > 9 {
		x.before -= 11
	}
	return x
}

// cell writes a day.
func (c *calendar) cell(x *month, i int) string {
	width := 2
	if c.julian {
		width = 3
	}
	if i < 0 || i >= len(x.days) {
		return strings.Repeat(" ", width)
	}
	d := x.days[i]
	if c.julian {
		d = x.before + i + 1
	}
	return fmt.Sprintf("%*d", width, d)
}

// width is that of a month without what separates it from the next.
func (c *calendar) width() int {
	cell := 3
	if c.julian {
		cell = 4
	}
	if c.vertical {
		return 6 * cell
	}
	return 7*cell - 1
}

func center(s string, width int) string {
	left := max(0, (width-len(s))/2)
	return strings.Repeat(" ", left) + s + strings.Repeat(" ", max(0, width-len(s)-left))
}

// lines writes a month; all months have the same number of lines.
func (c *calendar) lines(n int, yearless bool) []string {
	x := c.month(n)
	title := time.Month(x.month).String()
	if !yearless {
		title += " " + strconv.Itoa(x.year)
	}
	lines := []string{center(title, c.width())}
	names := []string{"Su", "Mo", "Tu", "We", "Th", "Fr", "Sa"}
	if c.monday {
		names = append(names[1:], names[0])
	}
	if c.vertical {
		for day := range 7 {
			line := ""
			for week := range 6 {
				line += " " + c.cell(x, week*7+day-x.first)
			}
			lines = append(lines, line)
		}
		return lines
	}
	pad := ""
	if c.julian {
		pad = " "
	}
	lines = append(lines, pad+strings.Join(names, " "+pad))
	for week := range 6 {
		cells := make([]string, 7)
		for day := range 7 {
			cells[day] = c.cell(x, week*7+day-x.first)
		}
		lines = append(lines, strings.Join(cells, " "))
	}
	return lines
}

// rows shows months side by side.
func (c *calendar) rows(t *kernel.Task, w *command.Writer, first, count int, yearless bool) {
	across := 3
	if c.julian && !c.vertical {
		across = 2
	}
	if c.vertical && yearless {
		across = 4
	}
	names := []string{"  ", "Su", "Mo", "Tu", "We", "Th", "Fr", "Sa"}
	if c.monday {
		names = append(append([]string{names[0]}, names[2:]...), names[1])
	}
	for i := 0; i < count; i += across {
		var side [][]string
		for k := i; k < min(i+across, count); k++ {
			t.Step(50)
			side = append(side, c.lines(first+k, yearless))
		}
		for row := range side[0] {
			if c.vertical {
				w.String(names[row])
			}
			for _, m := range side {
				w.String(m[row])
				w.Repeat(' ', max(0, c.width()-len(m[row])))
				w.String("  ")
			}
			w.Byte('\n')
		}
		if c.vertical && c.weeks {
			c.numbers(w, first+i, len(side))
		}
		if yearless && c.vertical && i+across < count {
			w.Byte('\n')
		}
	}
}

// numbers shows the numbers of the weeks.
func (c *calendar) numbers(w *command.Writer, first, count int) {
	w.String("  ")
	for k := range count {
		x := c.month(first + k)
		line := ""
		for week := 0; week*7-x.first < len(x.days); week++ {
			day := time.Date(x.year, time.Month(x.month), max(1, week*7-x.first+1), 0, 0, 0, 0, time.UTC)
			_, n := day.ISOWeek()
			line += fmt.Sprintf(" %2d", n)
		}
		w.String(line)
		w.Repeat(' ', max(0, c.width()-len(line))+2)
	}
	w.Byte('\n')
}

func (c *calendar) year(t *kernel.Task, w *command.Writer, year int) {
	across := 3
	if c.julian && !c.vertical {
		across = 2
	}
	if c.vertical {
		across = 4
	}
	w.String(strings.TrimRight(center(strconv.Itoa(year), across*(c.width()+2)), " ") + "\n")
	c.rows(t, w, year*12, 12, true)
}
