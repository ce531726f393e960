package strftime_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/strftime"
)

// original runs a real command with lines on its standard input.
func original(t *testing.T, zone, in, name string, arg ...string) []string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("no %s to compare with", name)
	}
	cmd := exec.CommandContext(t.Context(), path, arg...)
	cmd.Env = []string{"LC_ALL=C.UTF-8", "PATH=/usr/bin:/bin", "TZ=" + zone}
	cmd.Stdin = strings.NewReader(in)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) { // dates that are none make it end with 1
		t.Fatalf("%s: %v", name, err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}

func zones() []string {
	return []string{"UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "XXX3:04:05", "CET-1CEST,M3.5.0,M10.5.0/3", "<+03>-3"}
}

// conversions are conversions of all kinds, with flags and widths.
func conversions() []string {
	var list []string
	for _, v := range "aAbBcCdDeFgGhHIjklmMnNpPqrRsStTuUVwWxXyYzZ" {
		for _, flags := range []string{"", "-", "_", "0", "^", "#", "+", "5", "12", "_8", "-8", "08", "^12", "+6", "3", "E", "O"} {
			list = append(list, "%"+flags+string(v))
		}
	}
	return append(list, "%:z", "%::z", "%:::z", "%_:z", "%-:z", "%10::z", "%_10:z", "%::::z", "%%", "%i", "%Q", "%", "x%", "%-", "%5Q", "%:d", "plain", "é%dü")
}

func stamps() []int64 {
	rnd := rand.New(rand.NewPCG(1, 9))
	list := []int64{0, -1, 1709622489, 951782400, 1700000000, -61995801600, 253402300800, 1711846800, 1729990800, -2208988800, 1704067199, 1735603200}
	for range 12 {
		list = append(list, rnd.Int64N(8e9)-4e9)
	}
	return list
}

func TestConversionsAreThoseOfDate(t *testing.T) {
	list := conversions()
	for i, zone := range zones() {
		for k, stamp := range stamps() {
			if i > 1 && k%4 != 0 {
				continue
			}
			when := time.Unix(stamp, 12_300_000).In(strftime.Zone(zone))
			layout := strings.Join(list, "\x01")
			in := fmt.Sprintf("@%d.0123\n", stamp)
			if stamp < 0 {
				in = fmt.Sprintf("@%d\n", stamp)
				when = time.Unix(stamp, 0).In(when.Location())
			}
			got := original(t, zone, in, "date", "-f", "-", "+"+layout)
			check(t, list, strings.Split(strings.Join(got, "\n"), "\x01"), when, strftime.Date)
		}
	}
}

func TestConversionsAreThoseOfTheLibrary(t *testing.T) {
	var list []string
	for _, c := range conversions() {
		switch {
		case strings.ContainsAny(c, "+(:q") || strings.HasSuffix(c, "z") && len(c) > 2 || strings.HasSuffix(c, "%") || c == "%-" || strings.Contains(c, "\\"):
			continue // not of the library, or without much sense there
		case strings.ContainsAny(c[1:], "nNsFDcrRTxXC") && len(c) > 2 || c == "%n":
			continue
		}
		list = append(list, c)
	}
	for _, stamp := range stamps() {
		if stamp == -1 { // which is now
			continue
		}
		for some := range slices.Chunk(list, 8) { // bash has a buffer that is not large
			got := original(t, "Europe/Berlin", "", "bash", "-c", `printf "%(`+strings.Join(some, "|")+`)T" `+strconv.FormatInt(stamp, 10))
			check(t, some, strings.Split(strings.Join(got, "\n"), "|"), time.Unix(stamp, 0).In(strftime.Zone("Europe/Berlin")), strftime.Library)
		}
	}
}

func check(t *testing.T, list, want []string, when time.Time, f strftime.Flavour) {
	t.Helper()
	if len(want) != len(list) {
		t.Fatalf("%d answers for %d conversions", len(want), len(list))
	}
	for i, c := range list {
		out, err := strftime.Append([]byte("x"), c, when, f)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(out[1:]); got != want[i] {
			t.Errorf("%s of %d in %s: theirs %q, mine %q", c, when.Unix(), when.Location(), want[i], got)
		}
	}
}

// dates are dates as people write them.
const dates = `
2024-01-15
2024-01-15 10:30
2024-01-15 10:30:45
2024-01-15 10:30:45.5
2024-01-15T10:30:45Z
2024-01-15T10:30:45+02:00
2024-01-15T10:30:45.123456789-0500
2024-01-15T10+02
2024-01-15 10:30 UTC
2024-01-15 10:30 EST
2024-01-15 10:30 PDT
2024-01-15 10:30 EST DST
2024-01-15 10:30 A
2024-01-15 10:30 CET
2024-07-15 10:30 CEST
2024-07-15 10:30 CET
2024-01-15 10:30 UTC+2
2024-01-15 10:30 UTC +1 day
2024-01-15 +1 day
2024-01-15 1 day
2024-01-15 -1 month
2024-01-31 +1 month
2024-02-29 +1 year
2024-01-15 10:30 +2 days
2024-01-15 + 2 days
2024-01-15 10:30 2 days ago
2024-01-15 10:30 PM
2024-01-15 10 PM
2024-01-15 12:30 a.m.
2024-01-15 12pm
2024-01-15 13pm
2024-1-5
24-1-5
69-1-5
68-1-5
99-12-31
1/15/2024
1/15/24
1/15
2024/1/15
13/1/2024
15 January 2024
15 Jan 2024
15 Jan
15-Jan-2024
15Jan2024
Jan 15, 2024
Jan 15 2024
Jan 15
Jan 15 10:30 2024
January 15 2024 10:30:00
Jan-15-2024
Sept 5 2024
Sept. 5 2024
Sep. 5 2024
Mon, 15 Jan 2024 10:30:00 +0000
Mon 15 Jan 2024 10:30:00 AM UTC
Mon Jan 15 10:30:00 UTC 2024
Mon Jan 15 10:30:00 2024
Tue, 15 Jan 2024
20240115
20240115 1030
20240115T1030
20240115T103045
1030
0930
9
930
12345
240115
@0
@123
@-123
@1.5
@-1.5
@1700000000 
@12 13
@abc
@
now
today
yesterday
tomorrow
tomorrow 14:00
14:00 tomorrow
yesterday 10:00
noon
monday
friday
next friday
last friday
this friday
friday next week
third friday
2 friday
first monday
fri 10:00
next week
last month
next month
last year
this year
next day
2 days ago
1 week ago
1 week ago 3 hours
1 week ago 3 hours ago
3 hours
-3 hours
+3 hours
3 hours ago
90 seconds
1.5 seconds
-1.5 sec
1 fortnight ago
12 months ago
10 years ago
2 days hence
third day
year
day
week ago
1 month 2 days 3 hours 4 minutes 5 seconds
1 month -2 days +3 hours
10:30
10:30:61
25:00
24:00
23:60
10:30 (a comment) UTC
(nothing)
(open
2024-13-01
2024-02-30
2024-01-32
2024-00-10
abc
2024-01-15 abc
2024-01-15 2024-01-16
10:00 11:00
monday tuesday
UTC UTC
UTC
Z
z
T
J
10:00 Z
10:00 GMT
10:00 +02
10:00 +0230
10:00 +02:30
10:00 -02:30
10:00 +25
10:00 +2400
10:00 Europe/Berlin
TZ="Asia/Tokyo" 2024-01-15 10:00
TZ="Asia/Tokyo" now
TZ="America/New_York" 2024-07-04 09:00 next day
TZ="UTC"
TZ="unclosed
2024-03-31 02:30
2024-10-27 02:30
2024-03-10 02:30
2024-11-03 01:30
2024-11-03 01:30 EST
2024-11-03 01:30 EDT
2024-10-27 02:30 CET
2024-10-27 02:30 CEST
2024-01-15 10:30 CEST
6 months ago
3 months ago 10:00
2024-03-30 02:30 24 hours
99999999999999999999 days
2024-01-15 99999999999 years
- 5 days
-
+
2024-01-15,
2024.01.15
15.01.2024
2024-015
2024-W03
10h
1d
5 min
5 mins
5 minute ago
2 weeks
2 week ago
Thurs
Tues 10:00
wednes
2024-01-15 10:30:45 +0100
2024-01-15 10:30:45.25 +0100
2024-01-15 10:30:45,25
1 Jan 1970 00:00:00 GMT
31 Dec 1969 23:59:59 UTC
12/25
0000-01-01
0001-01-01
9999-12-31
10000-01-01
2024-01-15 10:30:60
2024-01-15 this week
2024-01-15 monday
monday 2024-01-15
2024-01-15 next monday
eleventh hour
12 noon
last day
Jan 2024
January
15
00:00
0:0
1:2:3
1:2:3.4 pm
2005-05-05 12:00 -0400 1 day ago
2 months ago 10:00
10:00 2 months ago
10:00 yesterday EST
EST5EDT
PST8
`

func TestDatesAreReadAsByDate(t *testing.T) {
	list := strings.Split(strings.Trim(dates, "\n"), "\n")
	list = append(list, "", " ", "\t2024-01-15")
	for _, zone := range zones()[:4] {
		compareDates(t, zone, list)
	}
}

func TestRandomDatesAreReadAsByDate(t *testing.T) {
	rnd := rand.New(rand.NewPCG(6, 2))
	parts := strings.Split(`2024-01-15|10:30|10:30:15|pm|am|UTC|EST|+02|+0200|-5|3|15|2023|Jan|Mar|5 Feb|monday|next friday|last week|2 days|3 hours ago|1 month|yesterday|tomorrow|today|ago|,|1/2/2023|1/2|20230405|1545|Z|CET|DST|(x)|next month|-1 year|+ 2 weeks|T|:|/|third|sat|week|12|0`, "|")
	list := make([]string, 1500)
	for i := range list {
		for range 1 + rnd.IntN(4) {
			list[i] += parts[rnd.IntN(len(parts))] + " "
		}
	}
	compareDates(t, "UTC", list)
	compareDates(t, "Europe/Berlin", list[:700])
}

func compareDates(t *testing.T, zone string, list []string) {
	t.Helper()
	loc := strftime.Zone(zone)
	var in strings.Builder
	for i, d := range list {
		fmt.Fprintf(&in, "@%d\n%s\n", 5_000_000_000_000+int64(i), d)
	}
	before := time.Now().In(loc)
	lines := original(t, zone, in.String(), "date", "-f", "-", "+%s %N")
	after := time.Now().In(loc)
	theirs := map[int]string{}
	at := -1
	for _, l := range lines {
		if n, err := strconv.ParseInt(strings.Fields(l)[0], 10, 64); err == nil && n >= 5_000_000_000_000 && n < 5_000_000_000_000+int64(len(list)) {
			at = int(n - 5_000_000_000_000)
			continue
		}
		theirs[at] = l
	}
	bad := 0
	for i, d := range list {
		mine, mine2 := read(d, before), read(d, after)
		want, ok := theirs[i]
		if !ok {
			want = "invalid"
		}
		if mine == want || mine2 == want || mine < want && want < mine2 {
			continue
		}
		if bad++; bad < 40 {
			t.Errorf("%q in %s: theirs %s, mine %s%s", d, zone, want, mine, show(want, mine, loc))
		}
	}
	if bad > 0 {
		t.Errorf("%d of %d differ", bad, len(list))
	}
}

func read(d string, now time.Time) string {
	when, err := strftime.Parse(d, now)
	if err != nil {
		return "invalid"
	}
	return fmt.Sprintf("%d %09d", when.Unix(), when.Nanosecond())
}

func show(want, mine string, loc *time.Location) string {
	var b strings.Builder
	for _, s := range []string{want, mine} {
		if n, err := strconv.ParseInt(strings.Fields(s)[0], 10, 64); err == nil {
			b.WriteString(" " + time.Unix(n, 0).In(loc).Format(time.DateTime))
		}
	}
	return b.String()
}

func TestALayoutHasALimit(t *testing.T) {
	for _, layout := range []string{"%1000000000d", "%_99999999999999999999Y", "%1000000000N", "%1000000000A", "%1000000000z", "%1000000000F", "%1000000000c", strings.Repeat("%100000d", 50)} {
		out, err := strftime.Append([]byte("x"), layout, time.Unix(0, 0), strftime.Date)
		if !errors.Is(err, strftime.ErrLimit) || !bytes.Equal(out, []byte("x")) {
			t.Errorf("%.20s: %d bytes, %v", layout, len(out), err)
		}
	}
}

func TestZonesDoNotLeadOutOfTheDatabase(t *testing.T) {
	for _, name := range []string{"Local", "/etc/localtime", "../../etc/localtime", "localtime", "posixrules", "a", strings.Repeat("A", 5000), "<", "<>", "\n", "AAA\n5"} {
		when := time.Unix(1720000000, 0).In(strftime.Zone(name))
		if _, offset := when.Zone(); offset != 0 {
			t.Errorf("%.20q has offset %d", name, offset)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, d := range strings.Split(strings.Trim(dates, "\n"), "\n") {
		f.Add(d)
	}
	now := time.Unix(1720000000, 5).In(strftime.Zone("Europe/Berlin"))
	f.Fuzz(func(t *testing.T, d string) {
		when, err := strftime.Parse(d, now)
		if err != nil {
			return
		}
		if again, err := strftime.Parse(d, now); err != nil || !again.Equal(when) {
			t.Fatalf("%q is %v and %v, %v", d, when, again, err)
		}
		if _, err := strftime.Append(nil, d+"%c %F %s %N %:::z", when, strftime.Date); err != nil && len(d) < 8 {
			t.Fatalf("%q: %v", d, err)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	now := time.Unix(1720000000, 5).UTC()
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf, _ = strftime.Append(buf[:0], "%Y-%m-%d %H:%M:%S", now, strftime.Date)
	}
}
