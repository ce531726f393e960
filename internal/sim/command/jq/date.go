package jq

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/strftime"
)

// dates finds the functions of time.
func dates(name string, arity int) oneFn {
	switch signature(name, arity) {
	case "gmtime/0":
		return func(m *machine, v value, _ []value) (value, error) { return m.broken(v, time.UTC, "gmtime()") }
	case "localtime/0":
		return func(m *machine, v value, _ []value) (value, error) { return m.broken(v, m.location(), "localtime()") }
	case "mktime/0":
		return func(m *machine, v value, _ []value) (value, error) {
			if kind(v) != 5 {
				return nil, failf("mktime requires array of 6 numbers")
			}
			t, _, err := m.moment(v, time.UTC)
			if err != nil {
				return nil, failf("mktime requires parsed datetime inputs")
			}
			return float64(t.Unix()), nil
		}
	case "strftime/1", "strflocaltime/1":
		return func(m *machine, v value, args []value) (value, error) { return m.strftime(v, args[0], name) }
	case "strptime/1":
		return func(m *machine, v value, args []value) (value, error) {
			s, ok1 := v.(string)
			f, ok2 := args[0].(string)
			if !ok1 {
				return nil, failf("strptime/1 requires string inputs and arguments")
			}
			if !ok2 {
				return nil, failf("strptime/1 requires string inputs and arguments")
			}
			p := parsing{s: s}
			if !p.all(f, 0) || p.s != "" {
				return nil, failf("date \"%s\" does not match format \"%s\"", s, f)
			}
			return m.list(p.broken()), nil
		}
	}
	return nil
}

func (m *machine) location() *time.Location { return strftime.Zone(m.t.Getenv("TZ")) }

// broken takes a time apart.
func (m *machine) broken(v value, loc *time.Location, name string) (value, error) {
	f, ok := number(v)
	if !ok {
		return nil, failf("%s requires a number", name)
	}
	if math.IsNaN(f) || math.Abs(f) > 1e16 {
		return nil, failf("error converting number of seconds since epoch to datetime")
	}
	whole := math.Floor(f)
	t := time.Unix(int64(whole), 0).In(loc)
	return m.list([]value{
		float64(t.Year()), float64(t.Month() - 1), float64(t.Day()), float64(t.Hour()), float64(t.Minute()),
		float64(t.Second()) + (f - whole), float64(t.Weekday()), float64(t.YearDay() - 1),
	}), nil
}

// moment puts a time together.
func (m *machine) moment(v value, loc *time.Location) (time.Time, float64, error) {
	if f, ok := number(v); ok {
		if math.IsNaN(f) || math.Abs(f) > 1e16 {
			return time.Time{}, 0, failf("error converting number of seconds since epoch to datetime")
		}
		return time.Unix(int64(math.Floor(f)), 0).In(loc), f, nil
	}
	a, ok := v.(*array)
	if !ok || a.len() < 1 {
		return time.Time{}, 0, failf("requires parsed datetime inputs")
	}
	n := [6]int{2: 1}
	for i := range min(len(n), a.len()) {
		f, ok := number(a.own()[i])
		if !ok || math.IsNaN(f) || math.Abs(f) > 1<<31 {
			return time.Time{}, 0, failf("requires parsed datetime inputs")
		}
		n[i] = int(math.Trunc(f))
	}
	for _, x := range a.own() {
		if _, ok := number(x); !ok {
			return time.Time{}, 0, failf("requires parsed datetime inputs")
		}
	}
	return time.Date(n[0], time.Month(n[1]+1), n[2], n[3], n[4], n[5], 0, loc), 0, nil
}

func (m *machine) strftime(v, layout value, name string) (value, error) {
	loc := time.UTC
	if name == "strflocaltime" {
		loc = m.location()
	}
	if k := kind(v); k != 3 && k != 5 {
		return nil, failf("%s/1 requires parsed datetime inputs", name)
	}
	s, ok := layout.(string)
	if !ok {
		return nil, failf("%s/1 requires a string format", name)
	}
	t, _, err := m.moment(v, loc)
	if err != nil {
		return nil, failf("%s/1 requires parsed datetime inputs", name)
	}
	b, err := strftime.Append(nil, s, t, strftime.Library)
	if err != nil {
		return nil, failf("%s/1: %s", name, err)
	}
	return m.made2(string(b)), nil
}

// A parsing is a date that is being read by a format.
type parsing struct {
	s                                string
	year, month, day, hour, min, sec int
	yday, wday                       int
	hasYday, hasWday, hasDay, hasMon bool
	pm, hasPM                        bool
	century                          int
	unix                             int64
	hasUnix                          bool
}

func (p *parsing) number(least, most, digits int) (int, bool) {
	p.s = strings.TrimLeft(p.s, " \t\n")
	i, neg := 0, false
	if least < 0 && i < len(p.s) && (p.s[i] == '-' || p.s[i] == '+') {
		neg = p.s[i] == '-'
		i++
	}
	n, from := 0, i
	for i < len(p.s) && i-from < digits && isDigit(p.s[i]) {
		n = n*10 + int(p.s[i]-'0')
		i++
	}
	if i == from {
		return 0, false
	}
	if neg {
		n = -n
	}
	p.s = p.s[i:]
	return n, n >= least && n <= most
}

func (p *parsing) name(list []string) (int, bool) {
	for i, full := range list {
		for _, n := range []string{full, full[:3]} {
			if len(p.s) >= len(n) && strings.EqualFold(p.s[:len(n)], n) {
				p.s = p.s[len(n):]
				return i, true
			}
		}
	}
	return 0, false
}

func days() []string {
	return []string{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"}
}

func months() []string {
	return []string{
		"January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
		"November", "December",
	}
}

// all reads by a whole format.
func (p *parsing) all(f string, depth int) bool {
	for f != "" {
		c := f[0]
		switch {
		case c == ' ' || c == '\t' || c == '\n':
			p.s = strings.TrimLeft(p.s, " \t\n\r\v\f")
			f = f[1:]
			continue
		case c != '%' || len(f) < 2:
			if !strings.HasPrefix(p.s, f[:1]) {
				return false
			}
			p.s, f = p.s[1:], f[1:]
			continue
		}
		f = f[1:]
		for len(f) > 1 && (f[0] == 'E' || f[0] == 'O' || f[0] == '_' || f[0] == '-' || f[0] == '0' || f[0] == '^' || f[0] == '#') {
			f = f[1:]
		}
		if !p.one(f[0], depth) {
			return false
		}
		f = f[1:]
	}
	return true
}

func (p *parsing) one(c byte, depth int) (ok bool) {
	switch c {
	case '%':
		ok = strings.HasPrefix(p.s, "%")
		p.s = strings.TrimPrefix(p.s, "%")
	case 'a', 'A':
		p.wday, ok = p.name(days())
		p.hasWday = true
	case 'b', 'B', 'h':
		p.month, ok = p.name(months())
		p.hasMon = true
	case 'd', 'e':
		p.day, ok = p.number(1, 31, 2)
		p.hasDay = true
	case 'm':
		p.month, ok = p.number(1, 12, 2)
		p.month--
		p.hasMon = true
	case 'Y':
		p.year, ok = p.number(-1<<31, 1<<31, 4)
	case 'C':
		p.century, ok = p.number(0, 99, 2)
	case 'y':
		p.year, ok = p.number(0, 99, 2)
		if p.year < 69 {
			p.year += 2000
		} else {
			p.year += 1900
		}
	case 'H', 'k':
		p.hour, ok = p.number(0, 23, 2)
	case 'I', 'l':
		p.hour, ok = p.number(1, 12, 2)
		p.hour %= 12
		p.hasPM = true
	case 'M':
		p.min, ok = p.number(0, 59, 2)
	case 'S':
		p.sec, ok = p.number(0, 61, 2)
	case 'j':
		p.yday, ok = p.number(1, 366, 3)
		p.yday--
		p.hasYday = true
	case 'u':
		p.wday, ok = p.number(1, 7, 1)
		p.wday %= 7
		p.hasWday = true
	case 'w':
		p.wday, ok = p.number(0, 6, 1)
		p.hasWday = true
	case 'U', 'W', 'V', 'g':
		_, ok = p.number(0, 99, 2)
	case 'G':
		_, ok = p.number(0, 9999, 4)
	case 'p', 'P':
		switch {
		case len(p.s) >= 2 && strings.EqualFold(p.s[:2], "AM"):
			p.pm, ok = false, true
		case len(p.s) >= 2 && strings.EqualFold(p.s[:2], "PM"):
			p.pm, ok = true, true
		}
		if ok {
			p.s = p.s[2:]
		}
	case 'n', 't':
		p.s, ok = strings.TrimLeft(p.s, " \t\n"), true
	case 's':
		n := 0
		for n < len(p.s) && (isDigit(p.s[n]) || n == 0 && p.s[n] == '-') {
			n++
		}
		v, err := strconv.ParseInt(p.s[:n], 10, 64)
		p.unix, p.hasUnix, ok = v, true, err == nil
		p.s = p.s[n:]
	case 'z':
		ok = p.offset()
	case 'Z':
		n := 0
		for n < len(p.s) && isLetter(p.s[n]) {
			n++
		}
		p.s, ok = p.s[n:], n > 0
	default:
		if depth > 3 {
			return false
		}
		switch c {
		case 'D', 'x':
			return p.all("%m/%d/%y", depth+1)
		case 'F':
			return p.all("%Y-%m-%d", depth+1)
		case 'T', 'X':
			return p.all("%H:%M:%S", depth+1)
		case 'R':
			return p.all("%H:%M", depth+1)
		case 'r':
			return p.all("%I:%M:%S %p", depth+1)
		case 'c':
			return p.all("%a %b %e %H:%M:%S %Y", depth+1)
		}
	}
	return ok
}

// offset passes over a zone, which jq reads and ignores.
func (p *parsing) offset() bool {
	p.s = strings.TrimLeft(p.s, " \t\n")
	if strings.HasPrefix(p.s, "Z") {
		p.s = p.s[1:]
		return true
	}
	if p.s == "" || p.s[0] != '+' && p.s[0] != '-' {
		return false
	}
	i, digits := 1, 0
	for i < len(p.s) && digits < 4 && (isDigit(p.s[i]) || p.s[i] == ':' && digits == 2) {
		if p.s[i] != ':' {
			digits++
		}
		i++
	}
	p.s = p.s[i:]
	return digits == 2 || digits == 4
}

// broken gives the date as jq has it.
func (p *parsing) broken() []value {
	if p.hasPM && p.pm {
		p.hour += 12
	}
	if p.hasUnix {
		t := time.Unix(p.unix, 0).UTC()
		p.year, p.month, p.day, p.hour, p.min, p.sec = t.Year(), int(t.Month())-1, t.Day(), t.Hour(), t.Minute(), t.Second()
		p.hasDay, p.hasMon = true, true
	}
	if p.year == 0 {
		p.year = 1900
	}
	if p.hasYday && !p.hasMon && !p.hasDay {
		t := time.Date(p.year, 1, 1+p.yday, 0, 0, 0, 0, time.UTC)
		p.month, p.day = int(t.Month())-1, t.Day()
	}
	t := time.Date(p.year, time.Month(p.month+1), p.day, 0, 0, 0, 0, time.UTC)
	return []value{
		float64(p.year), float64(p.month), float64(p.day), float64(p.hour), float64(p.min), float64(p.sec),
		float64(t.Weekday()), float64(t.YearDay() - 1),
	}
}
