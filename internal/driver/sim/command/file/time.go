package file

import (
	"fmt"
	"strings"
	"time"
)

// moment writes a time by a format of date(1).
func moment(m time.Time, format string) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		b.WriteString(directive(m, format[i]))
	}
	return b.String()
}

func directive(m time.Time, c byte) string {
	switch c {
	case 'Y':
		return m.Format("2006")
	case 'y':
		return m.Format("06")
	case 'm':
		return m.Format("01")
	case 'd':
		return m.Format("02")
	case 'e':
		return m.Format("_2")
	case 'H':
		return m.Format("15")
	case 'I':
		return m.Format("03")
	case 'M':
		return m.Format("04")
	case 'S':
		return m.Format("05")
	case 'N':
		return fmt.Sprintf("%09d", m.Nanosecond())
	case 'p':
		return m.Format("PM")
	case 'a':
		return m.Format("Mon")
	case 'A':
		return m.Format("Monday")
	case 'b', 'h':
		return m.Format("Jan")
	case 'B':
		return m.Format("January")
	case 'F':
		return m.Format("2006-01-02")
	case 'T':
		return m.Format("15:04:05")
	case 'R':
		return m.Format("15:04")
	case 'D', 'x':
		return m.Format("01/02/06")
	case 'X':
		return m.Format("15:04:05")
	case 'c':
		return m.Format("Mon Jan _2 15:04:05 2006")
	case 'r':
		return m.Format("03:04:05 PM")
	case 'k':
		return fmt.Sprintf("%2d", m.Hour())
	case 'l':
		return fmt.Sprintf("%2d", (m.Hour()+11)%12+1)
	case 'j':
		return fmt.Sprintf("%03d", m.YearDay())
	case 's':
		return fmt.Sprint(m.Unix())
	case 'z':
		return m.Format("-0700")
	case 'Z':
		return m.Format("MST")
	case 'C':
		return fmt.Sprintf("%02d", m.Year()/100)
	case 'u':
		return fmt.Sprint((int(m.Weekday())+6)%7 + 1)
	case 'w':
		return fmt.Sprint(int(m.Weekday()))
	case 'U':
		return fmt.Sprintf("%02d", (m.YearDay()+6-int(m.Weekday()))/7)
	case 'W':
		return fmt.Sprintf("%02d", (m.YearDay()+6-(int(m.Weekday())+6)%7)/7)
	case 'V':
		_, w := m.ISOWeek()
		return fmt.Sprintf("%02d", w)
	case 'G':
		y, _ := m.ISOWeek()
		return fmt.Sprint(y)
	case 'n':
		return "\n"
	case 't':
		return "\t"
	case '%':
		return "%"
	}
	return "%" + string(c)
}

// parseTime reads a time as touch -d has it.
func parseTime(s string, now time.Time) (time.Time, error) {
	s = strings.TrimSpace(s)
	for _, layout := range []string{
		"2006-01-02 15:04:05.999999999 -0700", "2006-01-02 15:04:05 -0700", "2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999", "2006-01-02T15:04:05",
		"2006-01-02 15:04:05 MST", "2006-01-02 15:04", "2006-01-02T15:04", "2006-01-02", "20060102", "Jan 2 2006", "2 Jan 2006", "January 2, 2006", "Mon Jan _2 15:04:05 MST 2006", "Mon, 02 Jan 2006 15:04:05 -0700",
	} {
		if m, err := time.ParseInLocation(layout, s, now.Location()); err == nil {
			return m, nil
		}
	}
	if rest, ok := strings.CutPrefix(s, "@"); ok {
		var sec, nsec int64
		whole, frac, _ := strings.Cut(rest, ".")
		if _, err := fmt.Sscanf(whole, "%d", &sec); err == nil {
			if frac != "" {
				_, _ = fmt.Sscanf((frac + "000000000")[:9], "%d", &nsec) // no digits are zero
			}
			return time.Unix(sec, nsec).In(now.Location()), nil
		}
	}
	return relativeTime(s, now)
}

func relativeTime(s string, now time.Time) (time.Time, error) {
	m := now
	words := strings.Fields(strings.ToLower(s))
	for i := 0; i < len(words); i++ {
		switch words[i] {
		case "now", "today":
			continue
		case "yesterday":
			m = m.AddDate(0, 0, -1)
			continue
		case "tomorrow":
			m = m.AddDate(0, 0, 1)
			continue
		case "midnight":
			m = time.Date(m.Year(), m.Month(), m.Day(), 0, 0, 0, 0, m.Location())
			continue
		}
		n, unit := 1, words[i]
		if k, err := fmt.Sscanf(words[i], "%d", &n); k == 1 && err == nil {
			if i++; i == len(words) {
				return m, fmt.Errorf("invalid date format %s", s)
			}
			unit = words[i]
		} else if words[i] == "last" || words[i] == "next" {
			if words[i] == "last" {
				n = -1
			}
			if i++; i == len(words) {
				return m, fmt.Errorf("invalid date format %s", s)
			}
			unit = words[i]
		}
		if i+1 < len(words) && words[i+1] == "ago" {
			n = -n
			i++
		}
		if n > 1e6 || n < -1e6 {
			return m, fmt.Errorf("invalid date format %s", s)
		}
		switch strings.TrimSuffix(unit, "s") {
		case "year":
			m = m.AddDate(n, 0, 0)
		case "month":
			m = m.AddDate(0, n, 0)
		case "fortnight":
			m = m.AddDate(0, 0, 14*n)
		case "week":
			m = m.AddDate(0, 0, 7*n)
		case "day":
			m = m.AddDate(0, 0, n)
		case "hour":
			m = m.Add(time.Duration(n) * time.Hour)
		case "minute", "min":
			m = m.Add(time.Duration(n) * time.Minute)
		case "second", "sec":
			m = m.Add(time.Duration(n) * time.Second)
		default:
			return m, fmt.Errorf("invalid date format %s", s)
		}
	}
	return m, nil
}
