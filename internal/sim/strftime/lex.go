package strftime

import (
	"strings"
	"time"
)

type tokKind uint8

const (
	tokEnd tokKind = iota
	tokUnsigned
	tokSigned
	tokDecimal // with a fraction, of seconds
	tokSignedDecimal
	tokChar
	tokMonth
	tokDay
	tokMeridian
	tokUnit
	tokOrdinal // last, next, third
	tokShift   // yesterday, tomorrow
	tokAgo
	tokZone
	tokDayZone // a zone of summer time: value is without that
	tokLocal   // the name of the zone of the box
	tokDST
)

type unit uint8

const (
	second unit = iota
	minute
	hour
	day
	month
	year
)

type tok struct {
	kind     tokKind
	char     byte
	negative bool
	bad      bool // too large
	unit     unit
	value    int
	nano     int
	digits   int
}

func (t tok) is(c byte) bool { return t.kind == tokChar && t.char == c }

func (t tok) number() bool {
	return tokUnsigned <= t.kind && t.kind <= tokSignedDecimal
}

func (t tok) meridian() meridian {
	if t.value > 0 {
		return pm
	}
	return am
}

func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isAlpha(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// lex cuts a date into tokens; nil says that some word means nothing.
func lex(s string, now time.Time) []tok {
	toks := make([]tok, 0, 16)
	for i := 0; ; {
		for i < len(s) && isSpace(s[i]) {
			i++
		}
		if i == len(s) {
			return append(toks, tok{})
		}
		switch c := s[i]; {
		case isDigit(c):
			t, n := lexNumber(s[i:])
			toks = append(toks, t)
			i += n
		case c == '-' || c == '+':
			for i++; i < len(s) && isSpace(s[i]); i++ {
			}
			if i == len(s) || !isDigit(s[i]) {
				continue // a sign of nothing is nothing
			}
			t, n := lexNumber(s[i:])
			if t.kind == tokUnsigned {
				t.kind = tokSigned
			} else {
				t.kind = tokSignedDecimal
			}
			if t.negative = c == '-'; t.negative {
				t.value = -t.value
				if t.nano > 0 {
					t.value--
					t.nano = 1e9 - t.nano
				}
			}
			toks = append(toks, t)
			i += n
		case isAlpha(c):
			start := i
			for i < len(s) && (isAlpha(s[i]) || s[i] == '.') {
				i++
			}
			const longest = 19
			t, ok := lookUp(s[start:min(i, start+longest)], now)
			if !ok {
				return nil
			}
			toks = append(toks, t)
		case c == '(':
			nest := 0
			for ; i < len(s); i++ {
				switch s[i] {
				case '(':
					nest++
				case ')':
					nest--
				}
				if nest == 0 {
					i++
					break
				}
			}
			if nest > 0 {
				return append(toks, tok{})
			}
		default:
			toks = append(toks, tok{kind: tokChar, char: c})
			i++
		}
	}
}

// lexNumber reads a number, and a fraction if there is one.
func lexNumber(s string) (tok, int) {
	t := tok{kind: tokUnsigned}
	i := 0
	for ; i < len(s) && isDigit(s[i]); i++ {
		if t.value > 1<<58 {
			t.bad = true
			continue
		}
		t.value = t.value*10 + int(s[i]-'0')
	}
	t.digits = i
	if i+1 < len(s) && (s[i] == '.' || s[i] == ',') && isDigit(s[i+1]) {
		t.kind = tokDecimal
		i++
		scale := int(1e8)
		for ; i < len(s) && isDigit(s[i]); i++ {
			t.nano += int(s[i]-'0') * scale
			scale /= 10
		}
	}
	return t, i
}

// lookUp returns what a word means.
func lookUp(word string, now time.Time) (tok, bool) {
	w := strings.ToUpper(word)
	switch w {
	case "AM", "A.M.":
		return tok{kind: tokMeridian}, true
	case "PM", "P.M.":
		return tok{kind: tokMeridian, value: 1}, true
	}
	if t, ok := named(w); ok {
		return t, true
	}
	if t, ok := zoneOf(w, now); ok {
		return t, true
	}
	if w == "DST" {
		return tok{kind: tokDST}, true
	}
	if t, ok := unitOf(w); ok {
		return t, true
	}
	if s, found := strings.CutSuffix(w, "S"); found {
		if t, ok := unitOf(s); ok {
			return t, true
		}
	}
	if t, ok := step(w); ok {
		return t, true
	}
	if len(w) == 1 {
		return military(w[0])
	}
	if strings.Contains(w, ".") {
		return zoneOf(strings.ReplaceAll(w, ".", ""), now)
	}
	return tok{}, false
}

// named returns the months and the days of the week, which may be cut to three
// letters.
func named(w string) (tok, bool) {
	short := w
	if len(w) == 4 && w[3] == '.' {
		short = w[:3]
	}
	for m := time.January; m <= time.December; m++ {
		if full := strings.ToUpper(m.String()); w == full || short == full[:3] {
			return tok{kind: tokMonth, value: int(m)}, true
		}
	}
	if w == "SEPT" || w == "SEPT." {
		return tok{kind: tokMonth, value: 9}, w == "SEPT"
	}
	for d := time.Sunday; d <= time.Saturday; d++ {
		if full := strings.ToUpper(d.String()); w == full || short == full[:3] {
			return tok{kind: tokDay, value: int(d)}, true
		}
	}
	switch w {
	case "TUES":
		return tok{kind: tokDay, value: 2}, true
	case "WEDNES":
		return tok{kind: tokDay, value: 3}, true
	case "THUR", "THURS":
		return tok{kind: tokDay, value: 4}, true
	}
	return tok{}, false
}

func unitOf(w string) (tok, bool) {
	switch w {
	case "YEAR":
		return tok{kind: tokUnit, unit: year}, true
	case "MONTH":
		return tok{kind: tokUnit, unit: month}, true
	case "FORTNIGHT":
		return tok{kind: tokUnit, unit: day, value: 14}, true
	case "WEEK":
		return tok{kind: tokUnit, unit: day, value: 7}, true
	case "DAY":
		return tok{kind: tokUnit, unit: day, value: 1}, true
	case "HOUR":
		return tok{kind: tokUnit, unit: hour}, true
	case "MINUTE", "MIN":
		return tok{kind: tokUnit, unit: minute}, true
	case "SECOND", "SEC":
		return tok{kind: tokUnit, unit: second}, true
	}
	return tok{}, false
}

func step(w string) (tok, bool) {
	switch w {
	case "TOMORROW":
		return tok{kind: tokShift, value: 1}, true
	case "YESTERDAY":
		return tok{kind: tokShift, value: -1}, true
	case "TODAY", "NOW":
		return tok{kind: tokShift}, true
	case "AGO":
		return tok{kind: tokAgo, value: -1}, true
	case "HENCE":
		return tok{kind: tokAgo, value: 1}, true
	}
	for i, name := range []string{
		"LAST", "THIS", "NEXT", "", "THIRD", "FOURTH", "FIFTH", "SIXTH", "SEVENTH", "EIGHTH", "NINTH", "TENTH", "ELEVENTH", "TWELFTH",
	} {
		if w == name {
			return tok{kind: tokOrdinal, value: i - 1}, true
		}
	}
	if w == "FIRST" {
		return tok{kind: tokOrdinal, value: 1}, true
	}
	return tok{}, false
}

// zoneOf returns the zones that have a name of their own, and those of the box.
func zoneOf(w string, now time.Time) (tok, bool) {
	switch w {
	case "GMT", "UT", "UTC":
		return tok{kind: tokZone}, true
	}
	for month := range 12 {
		t := time.Date(now.Year(), time.Month(month+1), 1, 0, 0, 0, 0, now.Location())
		if name, _ := t.Zone(); w == strings.ToUpper(name) {
			dst := 0
			if t.IsDST() {
				dst = 1
			}
			return tok{kind: tokLocal, value: dst}, true
		}
	}
	std := func(minutes int) (tok, bool) { return tok{kind: tokZone, value: 60 * minutes}, true }
	summer := func(minutes int) (tok, bool) { return tok{kind: tokDayZone, value: 60 * minutes}, true }
	switch w {
	case "WET":
		return std(0)
	case "WEST", "BST":
		return summer(0)
	case "ART", "BRT":
		return std(-180)
	case "BRST":
		return summer(-180)
	case "NST":
		return std(-210)
	case "NDT":
		return summer(-210)
	case "AST", "CLT":
		return std(-240)
	case "ADT", "CLST":
		return summer(-240)
	case "EST":
		return std(-300)
	case "EDT":
		return summer(-300)
	case "CST":
		return std(-360)
	case "CDT":
		return summer(-360)
	case "MST":
		return std(-420)
	case "MDT":
		return summer(-420)
	case "PST":
		return std(-480)
	case "PDT":
		return summer(-480)
	case "AKST":
		return std(-540)
	case "AKDT":
		return summer(-540)
	case "HST", "HAST":
		return std(-600)
	case "HADT":
		return summer(-600)
	case "SST":
		return std(-720)
	case "WAT", "CET", "MET", "MEZ":
		return std(60)
	case "CEST", "MEST", "MESZ":
		return summer(60)
	case "EET", "CAT", "SAST":
		return std(120)
	case "EEST":
		return summer(120)
	case "EAT", "MSK":
		return std(180)
	case "MSD":
		return summer(180)
	case "IST":
		return std(330)
	case "SGT":
		return std(480)
	case "KST", "JST":
		return std(540)
	case "GST":
		return std(600)
	case "NZST":
		return std(720)
	case "NZDT":
		return summer(720)
	}
	return tok{}, false
}

// military returns the zones of one letter. T also stands before a time.
func military(c byte) (tok, bool) {
	hours := 0
	switch {
	case 'A' <= c && c <= 'I':
		hours = int(c-'A') + 1
	case 'K' <= c && c <= 'M':
		hours = int(c-'K') + 10
	case 'N' <= c && c <= 'Y':
		hours = -int(c-'N') - 1
	case c == 'Z':
	default:
		return tok{}, false
	}
	return tok{kind: tokZone, char: c, value: 3600 * hours}, true
}
