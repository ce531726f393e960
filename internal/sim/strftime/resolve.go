package strftime

import "time"

// resolve works out the time from what has been read.
func (p *reader) resolve(loc *time.Location) (time.Time, bool) {
	y, mo, d := p.now.Date()
	h, mi, s := p.now.Clock()
	nano := p.now.Nanosecond()
	m := int(mo)
	if p.dates > 0 {
		if p.yearDigits > 0 || p.year != 0 {
			y = fullYear(p.year, p.yearDigits)
		}
		m, d = p.month, p.day
	}
	switch {
	case p.times > 0:
		var ok bool
		if h, ok = to24(p.hour, p.meridian); !ok {
			return time.Time{}, false
		}
		mi, s, nano = p.minute, p.sec, p.nano
	case p.rels == 0 || p.dates > 0 || p.days > 0:
		h, mi, s, nano = 0, 0, 0, 0
	}
	if !sane(y) {
		return time.Time{}, false
	}
	// Without any field of its own it is now, as the clock of the box shows it.
	fixed := p.times == 0 && p.dates == 0 && p.days == 0
	in := loc
	if p.zones > 0 && !fixed {
		// Fields that the zone of the box skips exist in the one that is meant.
		in = time.FixedZone("", p.zone)
	}
	t := time.Date(y, time.Month(m), d, h, mi, s, nano, in)
	if ty, tm, td := t.Date(); ty != y || int(tm) != m || td != d {
		return time.Time{}, false
	}
	if th, tmi, ts := t.Clock(); th != h || tmi != mi || ts != s {
		return time.Time{}, false
	}
	t = twin(t)
	if p.locals > 0 && p.zones == 0 {
		if t.IsDST() != (p.dst > 0) {
			if t = later(t); t.IsDST() != (p.dst > 0) {
				return time.Time{}, false
			}
		}
	}
	if p.days > 0 && p.dates == 0 {
		wday := int(t.Weekday())
		steps := p.ordinal
		if p.ordinal > 0 && wday != p.weekday {
			steps--
		}
		t = twin(t.AddDate(0, 0, (p.weekday-wday+7)%7+7*steps))
	}
	if r := p.rel; r.year != 0 || r.month != 0 || r.day != 0 {
		if !sane(t.Year()+r.year) || !sane(r.month/12) || !sane(r.day/366) {
			return time.Time{}, false
		}
		t = twin(t.AddDate(r.year, r.month, r.day))
		if fixed && t.IsDST() != p.now.IsDST() {
			// The original takes the time of day for one of now's kind.
			t = otherKind(t, p.now)
		}
	}
	if fixed && p.zones > 0 {
		_, offset := t.Zone()
		t = t.Add(time.Duration(offset-p.zone) * time.Second)
	}
	return p.after(t)
}

// sane reports whether time can count with a year.
func sane(y int) bool { return -200_000_000 < y && y < 200_000_000 }

// otherKind returns the time that is called like t in the summer or standard
// time of now.
func otherKind(t, now time.Time) time.Time {
	if u := later(t); u.IsDST() == now.IsDST() {
		return u
	}
	_, is := t.Zone()
	_, was := now.Zone()
	return t.Add(time.Duration(is-was) * time.Second)
}

// twin returns the first of the two times of the same name, where the clocks
// are set back.
func twin(t time.Time) time.Time {
	const most = 3 * time.Hour
	_, offset := t.Zone()
	_, before := t.Add(-most).Zone()
	if u := t.Add(time.Duration(offset-before) * time.Second); before > offset && same(t, u) {
		return u
	}
	return t
}

// later returns the second of the two times of the same name.
func later(t time.Time) time.Time {
	const most = 3 * time.Hour
	_, offset := t.Zone()
	_, after := t.Add(most).Zone()
	if u := t.Add(time.Duration(offset-after) * time.Second); after < offset && same(t, u) {
		return u
	}
	return t
}

func same(t, u time.Time) bool {
	return t.Format(time.DateTime) == u.Format(time.DateTime)
}

// after adds hours, minutes and seconds, which are always as long as they are.
func (p *reader) after(t time.Time) (time.Time, bool) {
	r := p.rel
	secs, ok := t.Unix(), true
	for _, n := range [][2]int{{r.hour, 3600}, {r.minute, 60}, {r.sec, 1}} {
		const most = 1 << 52
		if n[0] > most/n[1] || n[0] < -most/n[1] {
			ok = false
			continue
		}
		secs += int64(n[0]) * int64(n[1])
	}
	if secs > 1<<52 || secs < -1<<52 {
		ok = false
	}
	return time.Unix(secs, int64(t.Nanosecond())+int64(r.nano)).In(t.Location()), ok
}

// fullYear completes a year of two digits.
func fullYear(y, digits int) int {
	if digits == 2 && y >= 0 && y < 100 {
		if y < 69 {
			return y + 2000
		}
		return y + 1900
	}
	if y < 0 {
		return -y
	}
	return y
}

func to24(h int, m meridian) (int, bool) {
	switch m {
	case hours24:
		return h, h < 24
	case am:
		return h % 12, 0 < h && h <= 12
	}
	return h%12 + 12, 0 < h && h <= 12
}
