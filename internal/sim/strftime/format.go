// Package strftime formats and parses dates: the conversions of strftime with
// the additions of GNU date, and the language of date -d.
//
// The locale is C: names are English. Zones come from the data that Go brings
// along or finds on the host, and from POSIX rules in TZ.
package strftime

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// Flavour says whose strftime it is.
type Flavour uint8

// The flavours.
const (
	Date    Flavour = iota // GNU date: %N, %q, %:z and the flag +
	Library                // the C library, as in bash's printf and in awk
)

// ErrLimit is the error of a result that would be longer than its limit.
var ErrLimit = errors.New("strftime: the date is too long")

// Limit is the length in bytes that no formatted date exceeds.
const Limit = 1 << 20

// Append appends the time as the layout says. What is no conversion stands for
// itself.
func Append(dst []byte, layout string, t time.Time, f Flavour) ([]byte, error) {
	w := writer{out: dst, t: t, flavour: f, limit: len(dst) + Limit}
	w.layout(layout, false)
	if w.full {
		return dst, ErrLimit
	}
	return w.out, nil
}

type writer struct {
	out     []byte
	t       time.Time
	flavour Flavour
	limit   int
	full    bool
}

// conv is one conversion with its flags.
type conv struct {
	pad    byte // '_', '-', '0', '+', or 0 for the default
	upper  bool
	swap   bool // the flag #
	width  int  // -1 for none
	colons int
	mod    byte // E or O
	verb   byte
}

func (w *writer) layout(s string, upper bool) {
	for i := 0; i < len(s) && !w.full; {
		if s[i] != '%' {
			w.out = append(w.out, s[i])
			i++
			continue
		}
		c := conv{width: -1, upper: upper}
		n := c.parse(s[i:], w.flavour)
		if c.verb == 0 || !w.convert(&c) {
			w.text(&conv{width: c.width, pad: c.pad}, s[i:i+n])
		}
		i += n
		if len(w.out) > w.limit {
			w.full = true
		}
	}
}

// parse reads the conversion at the start of s and returns its length. The verb
// is zero if there is none.
func (c *conv) parse(s string, f Flavour) int {
	i := 1
flags:
	for ; i < len(s); i++ {
		switch s[i] {
		case '_', '-', '0':
			c.pad = s[i]
		case '+':
			if f != Date {
				break flags
			}
			c.pad = '+'
		case '^':
			c.upper = true
		case '#':
			c.swap = true
		default:
			break flags
		}
	}
	for i < len(s) && '0' <= s[i] && s[i] <= '9' {
		c.width = min(max(c.width, 0)*10+int(s[i]-'0'), Limit+1)
		i++
	}
	colon := i
	for f == Date && i < len(s) && s[i] == ':' {
		i++
	}
	if c.colons = i - colon; c.colons > 0 {
		if i < len(s) && s[i] == 'z' && c.colons <= 3 {
			c.verb = 'z'
			return i + 1
		}
		return colon + 1
	}
	if i < len(s) && (s[i] == 'E' || s[i] == 'O') {
		c.mod = s[i]
		i++
	}
	if i == len(s) {
		return i
	}
	c.verb = s[i]
	return i + 1
}

// takes reports whether the verb goes with its modifier.
func (c *conv) takes() bool {
	verbs := ""
	switch c.mod {
	case 'E':
		verbs = "cCxXyYntpPqrRsTuzZ"
	case 'O':
		verbs = "deHIklmMSuUVwWygGjbBhCNntpPrRsTzZ"
	default:
		return true
	}
	return strings.IndexByte(verbs, c.verb) >= 0
}

// convert writes a conversion, and reports whether it is one.
func (w *writer) convert(c *conv) bool {
	if !c.takes() {
		return false
	}
	t := w.t
	switch c.verb {
	case '%':
		w.text(c, "%")
	case 'n':
		w.text(c, "\n")
	case 't':
		w.text(c, "\t")
	case 'a':
		w.name(c, t.Weekday().String()[:3])
	case 'A':
		w.name(c, t.Weekday().String())
	case 'b', 'h':
		w.name(c, t.Month().String()[:3])
	case 'B':
		w.name(c, t.Month().String())
	case 'p', 'P':
		w.meridian(c)
	case 'Z':
		zone := Abbreviation(t)
		if c.swap {
			c.swap, c.upper = false, false
			zone = lower(zone)
		}
		w.name(c, zone)
	case 'd':
		w.number(c, 2, t.Day())
	case 'e':
		w.spaced(c, t.Day())
	case 'H':
		w.number(c, 2, t.Hour())
	case 'I':
		w.number(c, 2, hour12(t))
	case 'k':
		w.spaced(c, t.Hour())
	case 'l':
		w.spaced(c, hour12(t))
	case 'j':
		w.number(c, 3, t.YearDay())
	case 'm':
		w.number(c, 2, int(t.Month()))
	case 'M':
		w.number(c, 2, t.Minute())
	case 'S':
		w.number(c, 2, t.Second())
	case 'u':
		w.number(c, 1, (int(t.Weekday())+6)%7+1)
	case 'w':
		w.number(c, 1, int(t.Weekday()))
	case 'U':
		w.number(c, 2, (t.YearDay()-1+7-int(t.Weekday()))/7)
	case 'W':
		w.number(c, 2, (t.YearDay()-1+7-(int(t.Weekday())+6)%7)/7)
	case 'V':
		_, week := t.ISOWeek()
		w.number(c, 2, week)
	case 'g':
		year, _ := t.ISOWeek()
		w.digits(c, 2, mod(year, 100), c.pad == '+' && c.width > 2)
	case 'G':
		year, _ := t.ISOWeek()
		w.year(c, 4, year)
	case 'y':
		w.digits(c, 2, mod(t.Year(), 100), c.pad == '+' && c.width > 2)
	case 'Y':
		w.year(c, 4, t.Year())
	case 'C':
		w.century(c)
	case 's':
		if w.flavour == Library {
			w.text(c, strconv.FormatInt(t.Unix(), 10))
		} else {
			w.number(c, 1, int(t.Unix()))
		}
	case 'z':
		w.offset(c)
	default:
		return w.compound(c)
	}
	return true
}

// compound writes the conversions that stand for several, and those that only
// date has.
func (w *writer) compound(c *conv) bool {
	switch c.verb {
	case 'c':
		w.sub(c, "%a %b %e %H:%M:%S "+strconv.Itoa(w.t.Year()))
	case 'x':
		w.sub(c, "%m/%d/%y")
	case 'D':
		year := "%y"
		if w.flavour == Date && (c.pad == '-' || c.pad == '_') {
			year = "%" + string([]byte{c.pad}) + "y"
		}
		w.sub(c, "%m/%d/"+year)
	case 'R':
		w.sub(c, "%H:%M")
	case 'r':
		w.sub(c, "%I:%M:%S %p")
	case 'T', 'X':
		w.sub(c, "%H:%M:%S")
	case 'F':
		w.date(c)
	case 'N':
		if w.flavour != Date {
			return false
		}
		w.nano(c)
	case 'q':
		if w.flavour != Date {
			return false
		}
		w.number(c, 1, (int(w.t.Month())-1)/3+1)
	default:
		return false
	}
	return true
}

func mod(a, b int) int { return (a%b + b) % b }

func hour12(t time.Time) int { return (t.Hour()+11)%12 + 1 }

func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

func upper(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'a' <= c && c <= 'z' {
			b[i] = c - 'a' + 'A'
		}
	}
	return string(b)
}

// fill writes padding.
func (w *writer) fill(pad byte, n int) {
	if n > w.limit-len(w.out) {
		w.full = true
		return
	}
	for range n {
		w.out = append(w.out, pad)
	}
}

// text writes a string that is filled up with spaces, or with zeros if it is
// asked for.
func (w *writer) text(c *conv, s string) {
	if c.pad != '-' || w.flavour == Library {
		pad := byte(' ')
		if c.pad == '0' || c.pad == '+' {
			pad = '0'
		}
		w.fill(pad, c.width-len(s))
	}
	w.out = append(w.out, s...)
}

func (w *writer) name(c *conv, s string) {
	if c.upper || c.swap {
		s = upper(s)
	}
	w.text(c, s)
}

func (w *writer) meridian(c *conv) {
	s := "AM"
	if w.t.Hour() >= 12 {
		s = "PM"
	}
	if c.verb == 'P' || c.swap {
		s = lower(s)
	}
	w.text(c, s)
}

// number writes a number of so many digits.
func (w *writer) number(c *conv, digits, n int) {
	w.digits(c, digits, n, false)
}

// spaced is number for those that are filled up with a space.
func (w *writer) spaced(c *conv, n int) {
	d := *c
	if d.pad == 0 {
		d.pad = '_'
	}
	w.digits(&d, 2, n, false)
}

// year is number for years: with the flag + one that has more digits than usual
// has a sign.
func (w *writer) year(c *conv, digits, n int) {
	if w.flavour == Library || c.mod != 0 {
		w.digits(c, 1, n, false)
		return
	}
	w.digits(c, digits, n, c.pad == '+' && (n > 9999 || c.width > digits))
}

func (w *writer) century(c *conv) {
	n := w.t.Year()
	century := n / 100
	if n < 0 && n%100 != 0 {
		century--
	}
	if w.flavour == Library || c.mod != 0 {
		w.digits(c, 1, century, false)
		return
	}
	w.digits(c, 2, century, c.pad == '+' && (century > 99 || c.width > 2))
}

func (w *writer) digits(c *conv, digits, n int, plus bool) {
	sign := ""
	switch {
	case n < 0:
		sign = "-"
	case plus:
		sign = "+"
	}
	s := strconv.Itoa(n)
	if n < 0 {
		s = s[1:]
	}
	if c.width >= 0 {
		digits = max(digits, c.width)
		if c.width > 0 {
			digits = c.width
		}
	}
	digits = max(digits, 0)
	missing := digits - len(s) - len(sign)
	if n < 0 && c.width < 0 {
		missing = digits - len(s)
	}
	switch c.pad {
	case '-':
		if w.flavour == Library {
			w.fill(' ', c.width-len(s)-len(sign))
		}
		w.out = append(append(w.out, sign...), s...)
	case '_':
		w.fill(' ', missing)
		w.out = append(append(w.out, sign...), s...)
	default:
		w.out = append(w.out, sign...)
		w.fill('0', missing)
		w.out = append(w.out, s...)
	}
}

// sub writes a conversion that stands for others.
func (w *writer) sub(c *conv, layout string) {
	v := writer{t: w.t, flavour: w.flavour, limit: Limit}
	v.layout(layout, c.upper)
	w.text(c, string(v.out))
}

// date is %F. Its width is that of the year and what follows it.
func (w *writer) date(c *conv) {
	if w.flavour == Library {
		w.text(c, strconv.Itoa(w.t.Year())+w.t.Format("-01-02"))
		return
	}
	year := conv{pad: c.pad, width: 0}
	switch {
	case c.pad == 0 && c.width < 0:
		year.pad, year.width = '+', 4
	case c.width >= 0:
		year.width = max(c.width-6, 0)
	}
	n := w.t.Year()
	w.digits(&year, year.width, n, year.pad == '+' && (n > 9999 || year.width > 4))
	w.out = w.t.AppendFormat(w.out, "-01-02")
}

// nano is %N: as many digits as the width says, from the left.
func (w *writer) nano(c *conv) {
	digits := 9
	if c.width > 0 {
		digits = c.width
	}
	s := strconv.Itoa(w.t.Nanosecond())
	b := make([]byte, 0, 9)
	for range 9 - len(s) {
		b = append(b, '0')
	}
	b = append(b, s...)
	b = b[:min(digits, 9)]
	zeros := digits - len(b)
	if c.pad == '-' && c.width > 0 || c.pad == '_' {
		n := len(b)
		for n > 1 && b[n-1] == '0' {
			n--
		}
		zeros += len(b) - n
		b = b[:n]
	}
	w.out = append(w.out, b...)
	switch c.pad {
	case '-':
	case '_':
		w.fill(' ', zeros)
	default:
		w.fill('0', zeros)
	}
}

// offset is %z and its forms with colons.
func (w *writer) offset(c *conv) {
	_, secs := w.t.Zone()
	sign := byte('+')
	if secs < 0 {
		sign, secs = '-', -secs
	}
	h, m, s := secs/3600, secs/60%60, secs%60
	colons := c.colons
	if colons == 3 {
		switch {
		case s != 0:
			colons = 2
		case m != 0:
			colons = 1
		}
	}
	// The part before the first colon, and what comes after it.
	head, tail, digits := h, "", 2
	switch colons {
	case 0:
		head, digits = h*100+m, 4
	case 1:
		tail = ":" + two(m)
	case 2:
		tail = ":" + two(m) + ":" + two(s)
	}
	text := strconv.Itoa(head)
	width := digits + 1 + len(tail)
	if c.width > 0 {
		width = c.width
	}
	missing := width - 1 - len(text) - len(tail)
	switch c.pad {
	case '-':
		w.out = append(w.out, sign)
	case '_':
		w.fill(' ', missing)
		w.out = append(w.out, sign)
	default:
		w.out = append(w.out, sign)
		w.fill('0', missing)
	}
	w.out = append(append(w.out, text...), tail...)
}

func two(n int) string {
	return string([]byte{'0' + byte(n/10), '0' + byte(n%10)})
}
