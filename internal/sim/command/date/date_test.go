package date

import (
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
)

// The real date must never get an operand without a plus, or -s: it would set
// the clock of the machine. Those cases have a Want.
func TestDate(t *testing.T) {
	const at = "-d @1700000000.123456789"
	var cases []commandtest.Case
	for _, o := range []string{
		"", "-u", "-R", "-I", "-Iseconds", "-Is", "-Ins", "-Ihours", "-Iminutes", "-Ix", "--rfc-3339=date", "--rfc-3339=seconds", "--rfc-3339=ns", "--rfc-3339=x", "--iso-8601=minutes", "--rfc-email", "-I -R", "+%Y-%m-%d", "+%s", "+%N", "+%3N", "+%A %B", "+%j%U%W%V%u%w", "+%T%n%t%%", "+%-d%_d%^a%#Z", "+", "-R +%Y", "+%Y +%m", "-u +%Z%z%:z%::z", "+%c|%x|%X|%r|%p|%P", "+%G-%g-%C-%y-%h-%e-%k-%l", "+%q%E%",
	} {
		c := commandtest.Case{Args: append([]string{"date"}, strings.Fields(at+" "+o)...), Stderr: true}
		if strings.HasPrefix(o, "+") && strings.Contains(o, " %B") {
			c.Args = []string{"date", "-d", "@1700000000", "+%A %B"}
		}
		cases = append(cases, c)
		c.Env = []string{"TZ=America/New_York"}
		cases = append(cases, c)
	}
	for _, d := range []string{
		"2024-01-15", "2024-02-30", "2024-01-15 10:30", "2024-01-15T10:30:00Z", "foo", "", "@0", "@-1", "2024-01-15 10:30 +0200", "2024-03-10 02:30 America/New_York", "1 Jan 2024 + 3 days", "2024-01-31 +1 month", "2024-06-01 last monday", "Jan 5 2024 3pm", "20240105", "2024-01-01 12:00 next week", "2024-01-01 -1 day", "TZ=\"Asia/Tokyo\" 2024-01-01 09:00",
	} {
		cases = append(cases, commandtest.Case{Args: []string{"date", "-d", d, "+%F %T %z"}, Stderr: true}, commandtest.Case{Args: []string{"date", "--date=" + d}, Stderr: true})
	}
	cases = append(cases,
		commandtest.Case{Args: []string{"date", "-f", "-", "+%F"}, Stdin: "2024-01-01\nbad\n2024-02-02", Stderr: true},
		commandtest.Case{Args: []string{"date", "-f", "list"}, Files: map[string]string{"list": "@0\n@86400\n"}, Stderr: true},
		commandtest.Case{Args: []string{"date", "-f", "nosuch"}, Stderr: true}, commandtest.Case{Args: []string{"date", "-r", "nosuch"}, Stderr: true},
		commandtest.Case{Args: []string{"date", "-d", "@0", "-f", "x"}, Stderr: true}, commandtest.Case{Args: []string{"date", "-d", "@0", "-r", "x"}, Stderr: true},
		commandtest.Case{Args: []string{"date", "--resolution"}, Stderr: true}, commandtest.Case{Args: []string{"date", "-Q"}, Stderr: true}, commandtest.Case{Args: []string{"date", "-d", "@0", "x"}, Stderr: true},
		commandtest.Case{Args: []string{"date", "-d"}, Stderr: true},
		commandtest.Case{Args: []string{"date", "-u", "-s", "2020-01-01"}, Stderr: true, Want: &commandtest.Result{Stdout: "Wed Jan  1 00:00:00 UTC 2020\n", Stderr: "date: cannot set date: Operation not permitted\n", Status: 1}},
		commandtest.Case{Args: []string{"date", "-u", "010112302020.05"}, Stderr: true, Want: &commandtest.Result{Stdout: "Wed Jan  1 12:30:05 UTC 2020\n", Stderr: "date: cannot set date: Operation not permitted\n", Status: 1}},
		commandtest.Case{Args: []string{"date", "13011230"}, Stderr: true, Want: &commandtest.Result{Stderr: "date: invalid date ‘13011230’\n", Status: 1}},
		commandtest.Case{Args: []string{"date", "foo"}, Stderr: true, Want: &commandtest.Result{Stderr: "date: invalid date ‘foo’\n", Status: 1}},
	)
	commandtest.Compare(t, Commands(), cases)
}

func TestCal(t *testing.T) {
	const november = "   November 2026      \nSu Mo Tu We Th Fr Sa  \n 1  2  3  4  5  6  7  \n 8  9 10 11 12 13 14  \n15 16 17 18 19 20 21  \n22 23 24 25 26 27 28  \n29 30                 \n                      \n"
	const reformed = "   September 1752     \nSu Mo Tu We Th Fr Sa  \n       1  2 14 15 16  \n17 18 19 20 21 22 23  \n24 25 26 27 28 29 30  \n                      \n                      \n                      \n"
	const vertical = "    February 2024     \nMo     5 12 19 26     \nTu     6 13 20 27     \nWe     7 14 21 28     \nTh  1  8 15 22 29     \nFr  2  9 16 23        \nSa  3 10 17 24        \nSu  4 11 18 25        \n"
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"cal", "11", "2026"}, november}, {[]string{"cal", "nov", "2026"}, november}, {[]string{"cal", "-d", "2026-11"}, november}, {[]string{"cal", "9", "1752"}, reformed},
		{[]string{"ncal", "2", "2024"}, vertical},
	} {
		if r := commandtest.Run(t, Commands(), commandtest.Case{Args: c.args}); r.Stdout != c.want || r.Status != 0 {
			t.Errorf("%q:\n%s%s\nwant\n%s", c.args, r.Stdout, r.Stderr, c.want)
		}
	}
	r := commandtest.Run(t, Commands(), commandtest.Case{Args: []string{"cal", "2024"}})
	if n := strings.Count(r.Stdout, "\n"); n != 33 || !strings.Contains(r.Stdout, "      January               February               March          \n") {
		t.Errorf("%d lines\n%s", n, r.Stdout)
	}
	for _, args := range [][]string{{"cal", "13", "2024"}, {"cal", "0"}, {"cal", "10000"}, {"cal", "-m", "x"}, {"cal", "-A", "99999999"}} {
		if r := commandtest.Run(t, Commands(), commandtest.Case{Args: args}); r.Status != 64 || r.Stdout != "" {
			t.Errorf("%q: %+v", args, r)
		}
	}
}
