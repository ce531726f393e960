package strftime

import (
	"encoding/binary"
	"strings"
	"time"
	_ "time/tzdata" // the box has all zones, whatever the host has: 450 KB
)

// Zone returns the zone that a value of TZ means, as the C library takes it: a
// name of the zone database, a rule like "CET-1CEST,M3.5.0,M10.5.0/3", or else
// UTC under the name that was given. The result should be kept: it takes some
// microseconds to make.
func Zone(tz string) *time.Location {
	tz = strings.TrimPrefix(tz, ":")
	if tz == "" || tz == "UTC" || tz == "UTC0" {
		return time.UTC
	}
	if known(tz) {
		if loc, err := time.LoadLocation(tz); err == nil {
			return loc
		}
	}
	if loc := rule(tz); loc != nil {
		return loc
	}
	name := tz
	for i := range len(tz) {
		if c := tz[i] | 0x20; c < 'a' || c > 'z' {
			name = tz[:i]
			break
		}
	}
	if len(name) < 3 {
		return time.UTC
	}
	return time.FixedZone(name, 0)
}

// known reports whether a name may be looked up: one that cannot lead out of
// the database, nor to the host's own zone.
func known(name string) bool {
	if len(name) > 64 || name == "Local" || name[0] < 'A' || name[0] > 'Z' {
		return false
	}
	for i := range len(name) {
		switch c := name[i]; {
		case '0' <= c && c <= '9', 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z', c == '/', c == '_', c == '-', c == '+':
		default:
			return false
		}
	}
	return true
}

// rule makes a zone of a POSIX rule, with its standard time alone before 1970,
// as the library has it.
func rule(tz string) *time.Location {
	std, ok := ruleName(tz)
	if !ok || len(tz) > 200 || strings.IndexByte(tz, '\n') >= 0 {
		return nil
	}
	name := strings.Trim(std, "<>")
	const year = 365 * 24 * time.Hour
	loc := ruleFrom(tz, name, 0, -1<<62)
	for _, when := range []time.Time{time.Unix(0, 0), time.Unix(0, 0).Add(year / 2)} {
		if loc == nil {
			return nil
		}
		if when = when.In(loc); !when.IsDST() {
			_, offset := when.Zone()
			return ruleFrom(tz, name, offset, 0)
		}
	}
	return loc
}

// ruleFrom makes a zone that follows a rule from a time on. Go reads such rules
// only at the end of a zone file, so this is one that has nothing else but the
// offset before.
func ruleFrom(tz, name string, offset int, from int64) *time.Location {
	header := func(times, types, chars uint32) []byte {
		b := append([]byte("TZif2"), make([]byte, 15)...)
		for _, n := range []uint32{0, 0, 0, times, types, chars} {
			b = binary.BigEndian.AppendUint32(b, n)
		}
		return b
	}
	data := header(0, 1, 1)
	data = append(data, 0, 0, 0, 0, 0, 0, 0) // a type and a name that nobody reads
	data = append(data, header(1, 1, uint32(len(name)+1))...)
	data = binary.BigEndian.AppendUint64(data, uint64(from))
	data = append(data, 0)
	data = binary.BigEndian.AppendUint32(data, uint32(int32(offset)))
	data = append(data, 0, 0)
	data = append(data, name...)
	data = append(data, 0, '\n')
	data = append(data, tz...)
	data = append(data, '\n')
	loc, err := time.LoadLocationFromTZData(tz, data)
	if err != nil {
		return nil
	}
	return loc
}

// ruleName returns the name that a rule begins with, if an offset follows it.
func ruleName(tz string) (string, bool) {
	i := 0
	if tz[0] == '<' {
		i = strings.IndexByte(tz, '>') + 1
		if i < 5 {
			return "", false
		}
	} else {
		for i < len(tz) && 'a' <= tz[i]|0x20 && tz[i]|0x20 <= 'z' {
			i++
		}
		if i < 3 {
			return "", false
		}
	}
	rest := strings.TrimLeft(tz[i:], "+-")
	return tz[:i], rest != "" && '0' <= rest[0] && rest[0] <= '9'
}

// Abbreviation returns the short name of the zone at a time: "CET", "+03".
func Abbreviation(t time.Time) string {
	name, _ := t.Zone()
	return name
}
