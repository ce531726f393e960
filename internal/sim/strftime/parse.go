package strftime

import (
	"errors"
	"strings"
	"time"
)

// ErrInvalid is the error of a date that nobody can read.
var ErrInvalid = errors.New("invalid date")

// Parse reads a date as date -d does: "2024-01-15 10:30 UTC", "@123.5", "next
// friday", "2 days ago", "yesterday noon", 'TZ="Asia/Tokyo" 9:00', and all that
// stands between them. What it leaves out comes from now, which also says in
// which zone the date is meant.
func Parse(text string, now time.Time) (time.Time, error) {
	text = strings.TrimLeft(text, " \t\n\v\f\r")
	loc := now.Location()
	if strings.HasPrefix(text, `TZ="`) {
		name, rest, ok := quoted(text[4:])
		if !ok {
			return time.Time{}, ErrInvalid
		}
		loc = Zone(name)
		text = strings.TrimLeft(rest, " \t\n\v\f\r")
	}
	p := reader{now: now.In(loc), toks: lex(text, now.In(loc))}
	if strings.HasPrefix(text, "@") {
		return p.stamp(text[1:], now.Location())
	}
	if p.toks == nil || !p.items() {
		return time.Time{}, ErrInvalid
	}
	t, ok := p.resolve(loc)
	if !ok {
		return time.Time{}, ErrInvalid
	}
	return t.In(now.Location()), nil
}

// quoted reads up to a closing double quote.
func quoted(s string) (value, rest string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			return b.String(), s[i+1:], true
		case '\\':
			if i++; i == len(s) || s[i] != '\\' && s[i] != '"' {
				return "", "", false
			}
		}
		b.WriteByte(s[i])
	}
	return "", "", false
}

// reader holds what has been read of a date.
type reader struct {
	now  time.Time
	toks []tok
	at   int

	year, month, day  int
	yearDigits        int
	hour, minute, sec int
	nano              int
	meridian          meridian
	zone              int // seconds east
	weekday, ordinal  int
	dst               int // of a zone that was named as the local one

	rel relative

	dates, days, times, zones, locals, dsts, rels int
}

type meridian uint8

const (
	hours24 meridian = iota
	am
	pm
)

// relative is what is added in the end.
type relative struct {
	year, month, day, hour, minute, sec, nano int
}

// stamp reads what follows an @: seconds since 1970.
func (p *reader) stamp(_ string, loc *time.Location) (time.Time, error) {
	if len(p.toks) != 3 || !p.toks[1].number() {
		return time.Time{}, ErrInvalid
	}
	n := p.toks[1]
	if n.bad {
		return time.Time{}, ErrInvalid
	}
	return time.Unix(int64(n.value), int64(n.nano)).In(p.now.Location()).In(loc), nil
}

func (p *reader) tok(ahead int) tok {
	if i := p.at + ahead; i < len(p.toks) {
		return p.toks[i]
	}
	return tok{}
}

// items reads everything there is.
func (p *reader) items() bool {
	for p.tok(0).kind != tokEnd {
		before := p.at
		if !p.item() || p.at == before {
			return false
		}
	}
	return p.times <= 1 && p.dates <= 1 && p.days <= 1 && p.zones+p.locals <= 1 && p.dsts <= 1 &&
		p.dsts <= p.locals+p.zones
}

func (p *reader) item() bool {
	t := p.tok(0)
	if t.bad {
		return false
	}
	switch t.kind {
	case tokUnsigned:
		return p.number()
	case tokSigned:
		return p.relativeTo(t, 1)
	case tokDecimal, tokSignedDecimal:
		if p.tok(1).kind == tokUnit && p.tok(1).unit == second {
			return p.relativeTo(t, 1)
		}
		return false
	case tokMonth:
		return p.monthFirst()
	case tokDay:
		p.weekday, p.ordinal = t.value, 0
		p.days++
		p.at++
		if p.tok(0).is(',') {
			p.at++
		}
		return true
	case tokOrdinal:
		switch p.tok(1).kind {
		case tokDay:
			p.ordinal, p.weekday = t.value, p.tok(1).value
			p.days++
			p.at += 2
			return true
		case tokUnit:
			return p.relativeTo(t, 1)
		}
		return false
	case tokUnit:
		return p.relativeTo(tok{value: 1}, 0)
	case tokShift:
		p.rel.day += t.value
		p.rels++
		p.at++
		return true
	case tokLocal:
		p.locals++
		p.dst = t.value
		p.at++
		if p.tok(0).kind == tokDST {
			p.dst = 1
			p.dsts++
			p.at++
		}
		return true
	case tokZone, tokDayZone:
		return p.zoneName(t)
	}
	return false
}

// zoneName reads a zone and what may stand right after it.
func (p *reader) zoneName(t tok) bool {
	p.zones++
	p.zone = t.value
	p.at++
	if t.kind == tokDayZone {
		p.zone += 3600
		return true
	}
	switch next := p.tok(0); {
	case next.kind == tokSigned && p.tok(1).kind == tokUnit:
		return p.noAgo(next)
	case next.kind == tokSigned:
		if t.char == 'T' || !p.zoneOffset() {
			return false
		}
		p.zones--
		p.zone += t.value
	case next.kind == tokDST:
		if t.char == 'T' {
			return false
		}
		p.zone += 3600
		p.at++
	}
	return true
}

// zoneOffset reads +hhmm and +hh:mm.
func (p *reader) zoneOffset() bool {
	t := p.tok(0)
	p.at++
	minutes := -1
	if p.tok(0).is(':') && p.tok(1).kind == tokUnsigned {
		minutes = p.tok(1).value
		p.at += 2
	}
	n := t.value
	switch {
	case t.digits <= 2 && minutes < 0:
		n *= 60
	case minutes < 0:
		n = n/100*60 + n%100
	default:
		n *= 60
		if t.negative {
			n -= minutes
		} else {
			n += minutes
		}
	}
	if t.bad || n < -24*60 || n > 24*60 {
		return false
	}
	p.zone = n * 60
	p.zones++
	return true
}

// relativeTo reads a unit after a number, a step or nothing, and an "ago".
func (p *reader) relativeTo(n tok, size int) bool {
	u := p.tok(size)
	if u.kind != tokUnit || n.bad {
		return false
	}
	p.at += size + 1
	sign := 1
	if p.tok(0).kind == tokAgo {
		sign = p.tok(0).value
		p.at++
	}
	return p.add(u, n, sign)
}

// noAgo is relativeTo where no "ago" may follow.
func (p *reader) noAgo(n tok) bool {
	u := p.tok(1)
	p.at += 2
	return !n.bad && p.add(u, n, 1)
}

// add adds so many units.
func (p *reader) add(u, n tok, sign int) bool {
	p.rels++
	amount := n.value * sign
	var to *int
	switch u.unit {
	case year:
		to = &p.rel.year
	case month:
		to = &p.rel.month
	case day:
		to = &p.rel.day
		amount *= u.value
	case hour:
		to = &p.rel.hour
	case minute:
		to = &p.rel.minute
	default:
		to = &p.rel.sec
		p.rel.nano += n.nano * sign
	}
	const most = 1 << 52
	if amount < -most || amount > most || *to+amount < -most || *to+amount > most {
		return false
	}
	*to += amount
	return true
}

// number reads what begins with a number without a sign.
func (p *reader) number() bool {
	n, next := p.tok(0), p.tok(1)
	switch next.kind {
	case tokMeridian:
		p.at += 2
		return p.setTime(n.value, 0, 0, 0, next.meridian())
	case tokChar:
		switch next.char {
		case ':':
			return p.clock()
		case '/':
			return p.slashes()
		}
	case tokSigned:
		switch after := p.tok(2); after.kind {
		case tokSigned:
			return p.isoDate()
		case tokUnit:
			if !p.plain(n) {
				return false
			}
			p.at++
			return p.noAgo(next)
		}
		p.at++
		return p.setTime(n.value, 0, 0, 0, hours24) && p.zoneOffset()
	case tokUnit:
		return p.relativeTo(n, 1)
	case tokDay:
		p.ordinal, p.weekday = n.value, next.value
		p.days++
		p.at += 2
		return true
	case tokMonth:
		p.day, p.month = n.value, next.value
		p.dates++
		p.at += 2
		if y := p.tok(0); y.kind == tokSigned || y.kind == tokUnsigned {
			if y.bad {
				return false
			}
			p.setYear(y)
			p.at++
		}
		return true
	}
	if !p.plain(n) {
		return false
	}
	p.at++
	return true
}

func (p *reader) setYear(t tok) {
	p.year, p.yearDigits = t.value, t.digits
	if t.kind == tokSigned {
		p.year = -t.value
	}
}

func (p *reader) setTime(h, m, s, nano int, mer meridian) bool {
	p.times++
	p.hour, p.minute, p.sec, p.nano, p.meridian = h, m, s, nano, mer
	return true
}

// clock reads hh:mm and what follows.
func (p *reader) clock() bool {
	m := p.tok(2)
	if m.kind != tokUnsigned || m.bad {
		return false
	}
	h, s := p.tok(0), tok{}
	p.at += 3
	if p.tok(0).is(':') {
		s = p.tok(1)
		if s.kind != tokUnsigned && s.kind != tokDecimal || s.bad {
			return false
		}
		p.at += 2
	}
	mer := hours24
	switch t := p.tok(0); t.kind {
	case tokMeridian:
		mer = t.meridian()
		p.at++
	case tokSigned:
		if !p.zoneOffset() {
			return false
		}
	}
	return p.setTime(h.value, m.value, s.value, s.nano, mer)
}

// slashes reads m/d, m/d/y and y/m/d.
func (p *reader) slashes() bool {
	a, b := p.tok(0), p.tok(2)
	if b.kind != tokUnsigned || b.bad {
		return false
	}
	p.dates++
	p.at += 3
	if !p.tok(0).is('/') {
		p.month, p.day = a.value, b.value
		return true
	}
	c := p.tok(1)
	if c.kind != tokUnsigned || c.bad {
		return false
	}
	p.at += 2
	if a.digits >= 4 {
		p.setYear(a)
		p.month, p.day = b.value, c.value
		return true
	}
	p.month, p.day = a.value, b.value
	p.setYear(c)
	return true
}

// isoDate reads y-m-d, and the time that follows after a T.
func (p *reader) isoDate() bool {
	y, m, d := p.tok(0), p.tok(1), p.tok(2)
	if m.bad || d.bad {
		return false
	}
	p.setYear(y)
	p.month, p.day = -m.value, -d.value
	p.dates++
	p.at += 3
	if t := p.tok(0); t.kind != tokZone || t.char != 'T' {
		return true
	}
	p.at++
	switch after := p.tok(1); {
	case p.tok(0).kind != tokUnsigned:
		return false
	case after.is(':'):
		return p.clock()
	case after.kind == tokSigned:
		return p.number()
	}
	return false
}

// monthFirst reads a date that begins with the name of a month.
func (p *reader) monthFirst() bool {
	m, a, b := p.tok(0), p.tok(1), p.tok(2)
	p.dates++
	p.month = m.value
	switch {
	case a.bad:
		return false
	case a.kind == tokSigned && b.kind == tokSigned:
		p.day = -a.value
		p.setYear(b)
		p.at += 3
		return true
	case a.kind != tokUnsigned:
		return false
	}
	p.day = a.value
	p.at += 2
	if b.is(',') && p.tok(1).kind == tokUnsigned {
		p.setYear(p.tok(1))
		p.at += 2
	}
	return true
}

// plain is a number on its own: a year, a date or a time.
func (p *reader) plain(n tok) bool {
	switch {
	case n.bad:
		return false
	case p.dates > 0 && p.yearDigits == 0 && p.rels == 0 && (p.times > 0 || n.digits > 2):
		p.setYear(n)
	case n.digits > 4:
		p.dates++
		p.day, p.month = n.value%100, n.value/100%100
		p.year, p.yearDigits = n.value/10000, n.digits-4
	case n.digits <= 2:
		return p.setTime(n.value, 0, 0, 0, hours24)
	default:
		return p.setTime(n.value/100, n.value%100, 0, 0, hours24)
	}
	return true
}
