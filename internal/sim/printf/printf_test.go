package printf_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/printf"
	"github.com/paddock-sandbox/paddock/internal/sim/quote"
)

// mine formats, with the messages where the originals show them: bash holds back
// what is no whole line yet.
func mine(d printf.Dialect, args []string) string {
	var messages []string
	var places []int
	env := &printf.Env{
		Limit: 1 << 20, Quote: quote.Curly,
		Warn:  func(at int, m string) { messages, places = append(messages, "printf: "+m+"\n"), append(places, at) },
		Store: func(string, int) error { return nil },
	}
	out, status, err := printf.Compile(args[0], d).Append(nil, args[1:], env)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	at := 0
	for i, m := range messages {
		to := places[i]
		if d == printf.Bash {
			to = at + bytes.LastIndexByte(out[at:to], '\n') + 1
		}
		b.Write(out[at:to])
		at = to
		b.WriteString(m)
	}
	b.Write(out[at:])
	fmt.Fprintf(&b, "<%d>", status)
	return b.String()
}

var where = regexp.MustCompile(`(?m)[^\n:]*: line [0-9]+: printf: `)

// original runs the real printf for each list of arguments.
func original(t *testing.T, d printf.Dialect, cases [][]string) []string {
	t.Helper()
	path, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash to compare with")
	}
	command := "builtin printf"
	if d == printf.GNU {
		if _, err = exec.LookPath("/usr/bin/printf"); err != nil {
			t.Skip("no printf to compare with")
		}
		command = "env printf" // whose messages begin with the name that it was called by
	}
	const end = "\x1e\x1d\x1e"
	var script strings.Builder
	for _, args := range cases {
		script.WriteString(command)
		if strings.HasPrefix(args[0], "-") {
			script.WriteString(" --")
		}
		for _, a := range args {
			script.WriteString(" '" + strings.ReplaceAll(a, "'", `'\''`) + "'")
		}
		script.WriteString("; echo \"<$?>" + end + "\"\n")
	}
	cmd := exec.CommandContext(t.Context(), path, "-c", `exec 2>&1; . /dev/stdin`)
	cmd.Env = []string{"LC_ALL=C.UTF-8", "PATH=/usr/bin:/bin", "TZ=UTC"}
	cmd.Stdin = strings.NewReader(script.String())
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("bash: %v", err)
	}
	list := strings.Split(string(out), end+"\n")
	if len(list) != len(cases)+1 {
		t.Fatalf("%d answers for %d cases", len(list)-1, len(cases))
	}
	for i := range list {
		list[i] = where.ReplaceAllString(list[i], "printf: ")
	}
	return list
}

func compare(t *testing.T, d printf.Dialect, cases [][]string) {
	t.Helper()
	bad := 0
	for i, want := range original(t, d, cases)[:len(cases)] {
		if got := mine(d, cases[i]); got != want {
			if bad++; bad <= 25 {
				t.Errorf("%q\n theirs: %q\n mine:   %q", cases[i], want, got)
			}
		}
	}
	if bad > 0 {
		t.Errorf("%d of %d differ", bad, len(cases))
	}
}

func TestHandPickedFormatsAgreeWithBash(t *testing.T) {
	compare(t, printf.Bash, table())
}

func TestHandPickedFormatsAgreeWithTheTool(t *testing.T) {
	compare(t, printf.GNU, table())
}

func TestRandomFormatsAgreeWithBash(t *testing.T) {
	compare(t, printf.Bash, random(4000))
}

func TestRandomFormatsAgreeWithTheTool(t *testing.T) {
	compare(t, printf.GNU, random(600))
}

func TestRandomNumbersAgreeWithBash(t *testing.T) {
	rnd := rand.New(rand.NewPCG(4, 5))
	var cases [][]string
	for range 3000 {
		var n string
		switch rnd.IntN(6) {
		case 4:
			n = fmt.Sprintf("%d.999%d", rnd.IntN(100), rnd.IntN(100))
		case 5:
			n = fmt.Sprintf("0.000%d", rnd.IntN(1000))
		case 0:
			n = fmt.Sprintf("%d.%03d", rnd.IntN(1000), rnd.IntN(1000))
		case 1:
			n = fmt.Sprintf("%d.%de%d", rnd.IntN(10), rnd.IntN(1000000), rnd.IntN(80)-40)
		case 2:
			n = fmt.Sprintf("%d5", rnd.IntN(100000))
			n = n[:1] + "." + n[1:]
		default:
			n = fmt.Sprintf("0x%x.%xp%d", rnd.Uint64(), rnd.Uint32(), rnd.IntN(200)-100)
		}
		if rnd.IntN(3) == 0 {
			n = "-" + n
		}
		flags := []string{"", "", "+", "#", "0", "-"}[rnd.IntN(6)]
		width := []string{"", "", "12"}[rnd.IntN(3)]
		prec := []string{"", ".0", ".1", ".2", ".3", ".5", ".15", ".18", ".25"}[rnd.IntN(9)]
		verb := "fegaEGA"[rnd.IntN(7)]
		cases = append(cases, []string{"%" + flags + width + prec + string(verb) + "|", n})
	}
	compare(t, printf.Bash, cases)
}

func random(n int) [][]string {
	rnd := rand.New(rand.NewPCG(8, 1))
	pick := func(s string) string { f := strings.Fields(s); return f[rnd.IntN(len(f))] }
	cases := make([][]string, n)
	for i := range cases {
		var f string
		for range 1 + rnd.IntN(4) {
			switch rnd.IntN(5) {
			case 0:
				f += pick(`a \n \t \\ \x41 \101 \0101 \u00e9 %% \e b \q \c \" \' \? \x \u \8 é`)
			default:
				f += "%"
				for range rnd.IntN(3) {
					f += pick(`- + # 0 0 -`)
				}
				if rnd.IntN(6) == 0 {
					f += " "
				}
				f += pick(`_ _ _ 5 12 *`)
				f += pick(`_ _ _ . .0 .2 .5 .*`)
				f = strings.ReplaceAll(f, "_", "") + pick(`d i u o x X s s b q c f e g a d s ld % z`) + "|"
			}
		}
		cases[i] = []string{f}
		if strings.Contains(f, "*") { // a width of billions is tried by the originals
			for range rnd.IntN(4) {
				cases[i] = append(cases[i], pick(`0 1 -1 42 abc 12abc 0x1f 010 08 1.5 -2.25 'A 3 5 -7 \x a`))
			}
			continue
		}
		for range rnd.IntN(4) {
			cases[i] = append(cases[i], pick(`0 1 -1 42 abc 12abc 0x1f 010 08 1.5 -2.25 1e3 'A "é 'AB inf nan 9223372036854775808 -5 a\tb \0101\c x\x é a'b $x  +7 - 5\  18446744073709551616 1e5000 1e-5000`))
		}
	}
	return cases
}

func table() [][]string {
	var cases [][]string
	for _, line := range strings.Split(strings.TrimSpace(lines), "\n") {
		cases = append(cases, strings.Split(line, " ; "))
	}
	return append(cases, []string{"%s|%d|%c|", ""}, []string{"%q|", "", "a b", "a'b", "a\nb", "é", "\xff", "~", "#a", "{a,b}"}, []string{""}, []string{"%b|", "a\xff\\n"})
}

// lines holds a format and its arguments a line.
const lines = `
a\cb ; x
%b ; a\cb ; x
%b| ; \0101 ; \101 ; \x41 ; \u00e9 ; \U0001F600 ; \xZ ; \q ; \\ ; \" ; \' ; \? ; \e ; \E ; \1234
\0101|\101|\x41|\u00e9|\xZ|\q|\\|\"|\'|\?|\e|\E|\1234|\x414|\u41|\uZ|\8
%d ; abc
%d| ; 12abc ; 0x1f ; 010 ; 08 ; 0x ; 0b11 ; 1e3 ;  5 ; 5  ; 'A ; "A ; 'é ; ' ; +5 ; -5 ; 9223372036854775808 ; -9223372036854775809 ; 'AB ; 1 2 ; - ; + ; --5 ; 0x-5 ; - 5 ; 0xg ; 0x1g
%u|%x|%o|%X ; -1 ; -1 ; -1 ; 255
%u ; -18446744073709551616
%5d|%-5d|%05d|%+d|% d|%.3d|%5.3d|%-+5d|%+05d|%x|%#x|%#o|%#X ; 1 ; 2 ; 3 ; 4 ; 5 ; 6 ; 7 ; 8 ; 9 ; 10 ; 11 ; 12 ; 13
%*d|%-*d|%*d|%.*d|%.*d ; 5 ; 1 ; 5 ; 2 ; -5 ; 3 ; 3 ; 4 ; -3 ; 5
%*d ; abc ; 5
%z
%
a%5
%-
%s|%5s|%-5s|%.2s|%.*s|%c|%5c|%c ; abc ; abc ; abc ; abc ; 1 ; abc ; xyz ; abc
%s|%.1s|%5s|%-5s|%c ; é ; é ; é ; é ; é
%Q|%.2Q|%.3q|%10q|%-10q| ; a b ; a b ; a bcd ; a b ; a b
%f|%.2f|%e|%g|%G|%E|%a|%A|%F ; 1.5 ; 2.345 ; 12345.678 ; 0.0001 ; 1e-10 ; 3 ; 1 ; 255 ; inf
%.20f|%.30g|%.40e ; 0.1 ; 0.1 ; 0.1
%f| ; abc ; 1.5x ; nan ; inf ; -inf ; infinity ; 0x1p3 ; 1e5000 ; 1e-5000 ; 'A ; 1,5 ; nan(12) ; nan(-) ; 1e ; 1e+ ; .5 ; 5. ; . ; 0x.8 ; 0x ; -.5e1 ; infin
%g| ; 100000 ; 1000000 ; 123456789 ; 0.00001234 ; 1e100 ; 0 ; -0 ; 0.1 ; 1e4932
%#g|%#.0f|%.0f|%.0f|%+g|% g|%010.3f|%-10.3fx ; 1 ; 1 ; 0.5 ; 1.5 ; 2 ; 3 ; -3.14159 ; 2.5
%a| ; 0.1 ; 1.5 ; 0 ; -0 ; 1e-4940 ; 3 ; 1e4932 ; 3.3621031431120935063e-4932
%.3a|%.0a|%#.0a|%20a|%020a|%+a|%.0a|%.20a|%.1a|%.14a ; 0.1 ; 1.5 ; 1.5 ; 1 ; 1 ; 1 ; 1.99 ; 1 ; 1.999 ; 1.99999999999999999
%.2f|%.2f|%.2f|%.2f|%.1f|%.3f ; 2.675 ; 1.005 ; 2.665 ; 1.115 ; 0.25 ; 1.0005
%f ; 99999999999999999999.5
%.0f|%.0e|%.0g ; 1e30 ; 15 ; 25
%(abc
%(%Y)d ; 1
ab%ncd%n ; x ; y
%n
%s %s\n ; a ; b ; c
no args\n ; a ; b ; c
%s\n
%d %s|
%ld %lld %hd %hhd %jd %zd %td %Lf %lf %qd ; 1 ; 2 ; 3 ; 4 ; 5 ; 6 ; 7 ; 8 ; 9 ; 10
%ls|%lc ; abc ; abc
%1$s ; a
%'d ; 1234567
%'s ; a
%I d ; 5
%.d|%.s|%.f ; 5 ; abc ; 2.5
%+s|%0s|%05s|% s ; a ; b ; d ; e
%#s ; a
%#d ; 5
%b ; a\0
a\0b\000c
%b|%5b|%.2b ; a\tb ; a\n ; abcd
%s%b%s ; a ; b\cc ; d ; e ; f ; g
%5%
%5c|%-5c ; a ; b
%.0c ; c
%x|%u|%d ; 0xffffffffffffffff ; 18446744073709551615 ; 18446744073709551616
%s\n ; -- ; a
%c%c ; a
\U0000d800|\U00110000
\u0041
%d %d\n ; 1 ; 2 ; 3
%.0d|%.0x|%#.0o|%5.0d| ; 0 ; 0 ; 0 ; 0
%#x|%#o|%#X ; 0 ; 0 ; 0
%+x|% u|%+o ; 1 ; 1 ; 1
%-05d|%- 5d|%+ d ; 1 ; 2 ; 3
%%|%%%d ; 5
-%s ; a
--%s ; a
`

func TestAResultHasALimit(t *testing.T) {
	for _, args := range [][]string{
		{"%1000000000d", "1"},
		{"%.1000000000d", "1"},
		{"%.1000000000f", "1"},
		{"%.1000000000e", "1"},
		{"%.1000000000g", "1"},
		{"%#.1000000000g", "1"},
		{"%.1000000000a", "1"},
		{"%*s", "1000000000", "a"},
		{"%-*s", "-1000000000", "a"},
		{"%99999999999999999999s", "a"},
		{"%.99999999999999999999x", "a"},
		{"%1000q%1000000s", "a", "b"},
	} {
		env := &printf.Env{Limit: 1 << 20}
		out, _, err := printf.Compile(args[0], printf.Bash).Append(nil, args[1:], env)
		if len(out) > 1<<20 || (err == nil) != (args[0][1] == '1' && args[0][5] == 'q') {
			t.Errorf("%q: %d bytes, %v", args, len(out), err)
		}
	}
	many := make([]string, 5000)
	if _, _, err := printf.Compile("%900s", printf.Bash).Append(nil, many, &printf.Env{Limit: 1 << 20}); !errors.Is(err, printf.ErrLimit) {
		t.Errorf("many arguments ended with %v", err)
	}
}

func TestLongNumbersAreRead(t *testing.T) {
	for _, n := range []string{strings.Repeat("9", 1<<20), "0." + strings.Repeat("0", 1<<20) + "1", "1e" + strings.Repeat("9", 1<<20), "0x" + strings.Repeat("f", 1<<20), strings.Repeat("1", 1<<20) + "e-1048570"} {
		out, _, err := printf.Compile("%.3g|%d", printf.Bash).Append(nil, []string{n, n}, &printf.Env{})
		if err != nil || len(out) > 40 {
			t.Errorf("%.10s…: %d bytes, %v", n, len(out), err)
		}
	}
}

func TestTimesAreFormattedByTheCaller(t *testing.T) {
	env := &printf.Env{Now: 7, Started: 3, Time: func(dst []byte, layout string, unix int64) []byte {
		return fmt.Appendf(dst, "%s@%d", layout, unix)
	}}
	out, status, err := printf.Compile("%(%Y)T|%()T|%10(a(b)c)T|%(x)T", printf.Bash).Append(nil, []string{"5", "-2", "9"}, env)
	if string(out) != "%Y@5|%X@3|   a(b)c@9|x@7" || status != 0 || err != nil {
		t.Errorf("%q, %d, %v", out, status, err)
	}
}

func FuzzAppend(f *testing.F) {
	for _, seed := range [][2]string{{"%5.2f|%x", "1.5"}, {"%b\\n", "\\0101"}, {"%(%Y)T", "-1"}, {"%*.*a", "5"}, {"%q%Q%c", "a'b"}, {"\\u00e9%%%n", "x"}, {"%g", "1e-4940"}, {"%.30e", "0x.1p-99"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, format, arg string) {
		for _, d := range []printf.Dialect{printf.Bash, printf.GNU} {
			out, status, err := printf.Compile(format, d).Append([]byte("x"), []string{arg, "3", arg}, &printf.Env{Limit: 4096})
			if len(out) > 4097 || out[0] != 'x' || status > 1 || err != nil && !errors.Is(err, printf.ErrLimit) {
				t.Fatalf("%q %q: %d bytes, %d, %v", format, arg, len(out), status, err)
			}
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	for _, c := range [][]string{{"%s\n", "hello"}, {"%d %s\n", "42", "x"}, {"%05.2f\n", "3.14159"}, {"%e\n", "3.14159"}, {"plain\n"}} {
		b.Run(strings.TrimSpace(c[0]), func(b *testing.B) {
			f := printf.Compile(c[0], printf.Bash)
			env := &printf.Env{}
			var buf []byte
			b.ReportAllocs()
			for b.Loop() {
				buf, _, _ = f.Append(buf[:0], c[1:], env)
			}
		})
	}
}
