package arith_test

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/arith"
)

var where = regexp.MustCompile(`(?m)^[^:\n]*: line [0-9]+: (let: )?`)

// bash evaluates expressions with the real shell: each from the same variables,
// printing the errors, the value and what the variables are afterwards.
func bash(t *testing.T, list []string) []string {
	t.Helper()
	path, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash to compare with")
	}
	var script strings.Builder
	script.WriteString("exec 2>&1\nv() { x=5 y=-3 z='x+1' u= i=1 a=(4 x 7); unset b; declare -gA m=(); e=$1; r=none; let r=e; }\nend() { echo \"$r|$x|$y|$z|$u|$i|${a[*]}|${b-}|${!m[*]}\"; printf '\\0'; }\n")
	for _, e := range list {
		fmt.Fprintf(&script, "v '%s'\nend\n", strings.ReplaceAll(e, "'", `'\''`))
	}
	cmd := exec.CommandContext(t.Context(), path, "--norc", "--noprofile", "-s")
	cmd.Env = []string{"LC_ALL=C.UTF-8", "PATH=/usr/bin:/bin"}
	cmd.Stdin = strings.NewReader(script.String())
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("bash: %v", err)
	}
	got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	if len(got) != len(list) {
		t.Fatalf("bash answered %d of %d", len(got), len(list))
	}
	for i := range got {
		got[i] = where.ReplaceAllString(strings.TrimSuffix(got[i], "\n"), "")
	}
	return got
}

// mine says the same of our own.
func mine(text string) string {
	s := newStore()
	s.ints["x"], s.ints["y"], s.ints["i"] = 5, -3, 1
	s.text["z"] = "x+1"
	s.arr["a"] = map[int64]string{0: "4", 1: "x", 2: "7"}
	s.keyed["m"] = map[string]string{}
	n, err := arith.Compile(text).Eval(s)
	var b strings.Builder
	for _, l := range s.log {
		b.WriteString(l + "\n")
	}
	r := fmt.Sprint(n)
	if err != nil {
		b.WriteString(err.Error() + "\n")
		r = "none"
	}
	get := func(name string) string {
		v, err := s.Text(name)
		if err != nil {
			return err.Error()
		}
		return v
	}
	var elems []string
	for i := range int64(200) {
		if e, ok := s.arr["a"][i]; ok {
			elems = append(elems, e)
		}
	}
	var keys []string
	for k := range s.keyed["m"] {
		keys = append(keys, k)
	}
	fmt.Fprintf(&b, "%s|%s|%s|%s|%s|%s|%s|%s|%s", r, get("x"), get("y"), get("z"), get("u"), get("i"), strings.Join(elems, " "), get("b"), strings.Join(keys, " "))
	return b.String()
}

func check(t *testing.T, list []string) {
	t.Helper()
	bad := 0
	for i, want := range bash(t, list) {
		got := mine(list[i])
		if got == want || strings.Contains(list[i], "**") && strings.Contains(want, "exponent less than 0") {
			continue // bash complains of an exponent even where it is skipped
		}
		if bad++; bad <= 30 {
			t.Errorf("%s\n bash: %s\n mine: %s", list[i], want, got)
		}
	}
	if bad > 0 {
		t.Errorf("%d of %d differ", bad, len(list))
	}
}

func TestHandPickedExpressionsAgreeWithBash(t *testing.T) {
	check(t, strings.Split(strings.TrimSpace(table), "\n"))
}

func TestRandomExpressionsAgreeWithBash(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 9))
	tokens := strings.Fields(`x y z u i b a[0] a[1] a[i] a[i++] a[x-4] m[k] 1 2 3 0 7 010 0x1f 2#101 64#z 9223372036854775807
		+ - * / % ** + - * << >> < > <= >= == != & | ^ && || ! ~ ++ -- ( ) ( ) ? : , = = += -= *= /= <<= x y 1 2 3`)
	list := make([]string, 6000)
	for i := range list {
		var b strings.Builder
		for range 1 + rnd.IntN(9) {
			tok := tokens[rnd.IntN(len(tokens))]
			if last := b.String(); rnd.IntN(3) == 0 || last != "" && isWord(tok[0]) && isWord(last[len(last)-1]) {
				b.WriteByte(' ')
			}
			b.WriteString(tok)
		}
		list[i] = b.String()
	}
	check(t, list)
}

func isWord(c byte) bool {
	return c == '_' || c == ']' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

func TestRandomWellFormedExpressionsAgreeWithBash(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 11))
	list := make([]string, 4000)
	for i := range list {
		list[i] = formed(rnd, 4)
	}
	check(t, list)
}

// formed makes an expression without syntax errors.
func formed(rnd *rand.Rand, depth int) string {
	pick := func(s string) string { f := strings.Fields(s); return f[rnd.IntN(len(f))] }
	if depth == 0 || rnd.IntN(5) == 0 {
		return pick("x y z u i b a[0] a[1] a[-1] 1 2 3 0 7 64 -5 0x1f x++ y-- ++i --x a[1]++ ++a[2]")
	}
	sub := func() string { return formed(rnd, depth-1) }
	switch rnd.IntN(8) {
	case 0:
		return "(" + sub() + ")"
	case 1:
		return pick("! ~ - +") + " " + sub()
	case 2:
		return sub() + " ? " + sub() + " : (" + sub() + ")"
	case 3:
		return "(" + pick("x y i b a[0] a[i&3] m[k]") + pick("= = += -= *= |= ^= &= <<= >>= /= %=") + sub() + ")"
	case 4:
		return sub() + pick(", && ||") + sub()
	}
	return sub() + " " + pick("+ - * / % << >> < > <= >= == != & | ^ && ||") + " " + sub()
}

// table holds an expression a line.
const table = `
1 + 
 1 2
1/0 + 5
5%0 
2 ** -1 + 3
08
1+08+2
3#3
65#1
1#0
0x
0xg
64#@_
5#
5# + 1
5#4#3
0#1
3##1
1 ? 2
1 ? 2 : 
1 ? : 3
1 ? 2 3
x?
(1
(1 + 2
(1 2)
((1)
1)
()
(,)
1 = 2
1++
++1
- -1
---1
x++ ++
++x++
++x--
--x ++
++x++5
++ x
5++x
5 ++ +x
5---x
x+++y
x ++ y
1 @ 2
@
( @
(1) @
y++ @
y == @
a.b
.5
1.5
"1"
'1'
!
~
1,
,1
1,,2
x=
=5
x+=
x==
x =+ 5
a[
a[1
a[1]]
a[1 2]
a[x=1]=2
a[i++]=i
a[i++]+=10
a[i++]++
++a[i++]
a[-1]
a[1]*2
b[3]=4
m[foo]=3
m[foo bar]+=3
0 && (1/0)
1 ? 2 : x=5
1 ? x=1 : (y=2)
x/=0 
x /= 0 + 0 
x/=0, 7
+x=5
x++=5
++x=5
-x=5
x**y=5
x=5, 
x=6 7
x=6, 7 8
x=6 08
x++ + 
0 && (x=7) 5
y=(x=3)+08
x = x++ + ++x
x += x *= 2
x &&= 1
x //= 2
1 <> 2
1 ! 2
1 # 2
#
1;2
{1}
[1]
x [0]
5 a[0]
f(3)
é
xé
\
$x
1:2
x<<=2+1
i=i+1
z*2
z+z
a[z-4]
`
