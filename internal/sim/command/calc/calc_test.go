package calc

import (
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
)

func TestBC(t *testing.T) {
	var cases []commandtest.Case
	for _, s := range []string{
		"1+2*3\n", "(1+2)*3\n", "2^10\n-2^2\n2^-2\n2^3^2\n", "scale=5;2^-2;1/3;10%3.3;-7/2;-7%2;7.5%2\n", "10/3;10%3;-10/3;-10%3\n", "scale=3;7/2;1.23456*2.1;1.5^3\n", "1.0*1.000;.5;1.50/1;0.0;-0.5;-.5*2\n", "1/0\n3\n", "ibase=16;FF;ibase=A;Z\n", "ibase=37;ibase\n", "obase=16;255.5;-255.5;.5;0;65535\n", "obase=20;123456.78\n", "obase=2;10;.5;.1\n", "ibase=2;101.11;obase=1010;11\n", "ibase=16;obase=10;A5.8\n",
		"obase=1000;123456789;.5\n", "a=5;(a=6);a++;++a;a--;--a;a\n", "a=3;a+=2;a;a*=4;a;a-=1;a;a/=3;a;a%=4;a;a^=3;a\n", "print \"x\\ty\\n\",1,\"q\\q\",2+2,\"\\n\"\n", "\"a b\\n\"\n", "2^1000\n", "1/3\nscale=80\n1/3\n", "define f(x){if(x<=1)return(1);return(x*f(x-1))}\nf(20)\n", "define f(x) {\nauto i,s\ns=0\nfor(i=1;i<=x;i++) s+=i\nreturn s\n}\nf(100);i;s\n", "if(1)2 else 3\nif(0)2 else 3\nif(0)5\n", "for(i=0;i<3;i++)i\nwhile(i>0){i--;if(i==1)break}\ni\n", "for(i=0;i<5;i++){if(i==2)continue;i}\n",
		"sqrt(2);scale=10;sqrt(2);sqrt(16);sqrt(.25)\n", "scale=10;sqrt(-1)\n5\n", "length(123.45);scale(1.500);length(.001);length(0);length(100)\n", "x[3]=5;x[3];x[0];x[1+2]+=2;x[3]\n", "1 2\n3\n", "1==1;2<1;!0;1&&0;1||0;3!=3;2>=2;1<=0\n", "!1==0;a=3<4;a\n", "last;5;last+1;.\n", "halt\n1\n", "quit\n1\n", "10;quit;20\n", "if(0)quit\n5\n", "/* c */ 1 # x\n2\n", "/* a\nb */ 3\n", "1\\\n2\n", "define void f(){print \"v\\n\"}\nf()\n", "abc=3;abc\n", "1e5\n", "f(1)\n2\n", "@\n2\n", "1+\n2\n", ")\n1\n",
		strings.Repeat("9", 76) + "\n", "x=1;{x=2;x};x\n", "define f(a,b){return a-b}\nf(5,3);f(1)\n7\n", "define f(x[]){x[1]=9;return x[1]}\na[1]=2;f(a[]);a[1]\n", "define f(x){x=5;return x}\nx=1;f(2);x\n", "define f(){return}\nf()\n", "define f(n){if(n<2)return n;return f(n-1)+f(n-2)}\nf(15)\n", "scale=20;4*a(1)\n", "limits\n", "scale=2;.1+.22;1.234+1;.5*.5;1.25*1.25\n", "a=1;b=2;a;b;a+b\n", "\n\n;;1;;\n", "1;2;3", "5%0\n1\n", "scale=-1;scale\n", "scale=4;x=10/4;x;scale=0;x/1\n", "while(1){i=i+1;if(i>5)break;};i\n", "i=3;while(i--)i\n", "print 1,2,3\nprint \"\\n\"\n", "obase=16;ibase=16;FF;ff=1\n", "0^0;0^5;1^999999;(-1)^3;(-1)^4\n", "a.b\n", "2^.5\n", "{1;2}\n", "if(1){\n2\n}else{\n3\n}\n", "for(;;){if(k++>3)break}\nk\n", "define f(x){return(x)\n}\nf(3)\n", "a[0]=1;a;a=7;a[0]\n", "12345678901234567890*98765432109876543210\n", "100000000000000000000/3\n", "-5;- -5;-(-5)\n", "3--2\n", "1.1^20\n", "scale=3;1.1^20;2.55^2\n", "AB;F;1F;9A\n", "ibase=2;12;9\n", "x = 5 ; x == 5\n", "1,2\n", "scale=6\n1/7*7\n", "e(1)\n", "a=b=3;a;b\n", "_x=1\n",
	} {
		c := commandtest.Case{Args: []string{"bc"}, Stdin: s}
		cases = append(cases, c)
		c.Args = []string{"bc", "-q"}
		c.Env = []string{"BC_LINE_LENGTH=0"}
		cases = append(cases, c)
	}
	var math []string
	for _, x := range []string{"0", "1", "-1", ".5", "2", "3.14159", "10", "-2.5", ".001", "100", ".2", "7"} {
		math = append(math, "s("+x+");c("+x+");a("+x+");j(0,"+x+");j(1,"+x+");j(-3,"+x+")")
		math = append(math, "e("+x+")")
		math = append(math, "l("+x+")")
	}
	for _, s := range math {
		for _, scale := range []string{"", "scale=10;", "scale=50;", "scale=100;"} {
			cases = append(cases, commandtest.Case{Args: []string{"bc", "-l"}, Stdin: scale + s + "\n"})
		}
	}
	file := commandtest.Case{Args: []string{"bc", "-q", "lib", "more"}, Stdin: "f(3)\n", Files: map[string]string{"lib": "define f(x){return x*2}\n", "more": "f(2)\n"}}
	cases = append(cases, file, commandtest.Case{Args: []string{"bc", "nosuch"}}, commandtest.Case{Args: []string{"bc", "-l"}, Stdin: "scale;10/3\n"}, commandtest.Case{Args: []string{"bc", "-Q"}}, commandtest.Case{Args: []string{"bc", "lib"}, Files: map[string]string{"lib": "1\nhalt\n"}})
	commandtest.Compare(t, Commands(), cases)
}

func TestDC(t *testing.T) {
	for _, c := range []struct{ program, want string }{
		{"1 2+p", "3\n"}, {"5 3-p 2*p", "2\n4\n"}, {"10 3/p", "3\n"}, {"2k 10 3/p", "3.33\n"}, {"10 3%p", "1\n"}, {"10 3~f", "1\n3\n"}, {"2 100^p", "1267650600228229401496703205376\n"}, {"20k 2vp", "1.41421356237309504880\n"}, {"_5 3*p", "-15\n"}, {"1 2 3f", "3\n2\n1\n"}, {"1 2rf", "1\n2\n"}, {"5dp*p", "5\n25\n"},
		{"16o255p", "FF\n"}, {"2o10p", "1010\n"}, {"16iFFp", "255\n"}, {"16iFF Ap", "10\n"}, {"[hello]p", "hello\n"}, {"[1 2+p]x", "3\n"}, {"5sa la p lap", "5\n5\n"}, {"1Sa2SaLapLap", "2\n1\n"}, {"[1p]sa 1 2<a", ""}, {"[1p]sa 2 1<a", "1\n"}, {"[1p]sa 1 1=a", "1\n"}, {"[1p]sa 1 2!=a", "1\n"}, {"0si[lip1+dsi5>a]sali0 5>a", "0\n1\n2\n3\n4\n"}, {"[d1-d0<a]sa5lax f", "0\n1\n2\n3\n4\n5\n"},
		{"[ln1-dsn0<f]sf 3sn lfx ln p", "0\n"}, {"[la1+dsa*pla10>y]sy0sa1lyx", "1\n2\n6\n24\n120\n720\n5040\n40320\n362880\n3628800\n"}, {"3 4 zp", "2\n"}, {"12345Zp 1.234Xp [abc]Zp", "5\n3\n3\n"}, {"65an 66P", "AB"}, {"10n", "10"}, {"[a]n[b]n", "ab"}, {"1 2 3 3Rf", "1\n3\n2\n"}, {"1 2 3 _3Rf", "2\n1\n3\n"}, {"7 0:a 8 1:a 0;ap 1;ap 2;ap", "7\n8\n0\n"}, {"3 5 7|p", "5\n"},
		{"IpOpKp", "10\n10\n0\n"}, {"1.5 2.25*p", "3.37\n"}, {".5p", ".5\n"}, {"[[nested]p]xp", "nested\nnested\n"}, {"1p#comment\n2p", "1\n2\n"}, {"1 2cz p", "0\n"}, {"[q]sq 1p lqx 2p", "1\n"}, {"[[2Q]x 9p]x 3p", "3\n"}, {"q1p", ""}, {"1 0/p", "0\n"}, {"2 300^p", "203703597633448608626844568840937816105146839366593625063614044935438\\\n1299763336706183397376\n"},
	} {
		for _, args := range [][]string{{"dc", "-e", c.program}, {"dc"}} {
			k := commandtest.Case{Args: args}
			status := 0
			if len(args) == 1 {
				k.Stdin = c.program
				if c.program[0] == 'q' || strings.Contains(c.program, "lqx") {
					status = 1 // as the real one ends where it reads a file
				}
			}
			if r := commandtest.Run(t, Commands(), k); r.Stdout != c.want || r.Status != status {
				t.Errorf("%q: %q %q %d, want %q", c.program, r.Stdout, r.Stderr, r.Status, c.want)
			}
		}
	}
}

// One program a row, by the real dc: output, messages and status.
func TestDCSaysWhatDCDoes(t *testing.T) {
	var cases []commandtest.Case
	for _, s := range []string{
		"1 2+p", "5 3-p 2*p", "10 3/p", "2k 10 3/p", "10 3%p", "2k 10 3%p", "10 3~f", "_10 3~f", "2 100^p", "2 _2^p", "4k 2 _2^p", "1.5 2^p", "20k 2vp", "16vp", "_4vp", "0vp", "_5 3*p", "- 3p", "1 2 3f", "1 2rf", "5dp*p", "3 5 7|p", "3 _5 7|p", "3 5 0|p",
		"16o255p", "16o_255.5p", "2o10p", "8o64p", "20o123456p", "100o123456.78p", "16iFFp", "16iff p", "16iFF Ap", "2i101p", "1op", "0op", "1i", "17i", "Ap", "FFp", "_Ap", "1.A p", "IpOpKp", "16iIp", "_1k", "1000kKp", "3k1 3/p", "3k.1234 .5*p", "1.5 2.25*p", "2k1.5 2.25*p", ".5p", "_.5p", "00012p", "1.500p", "0.0p", "_0p", "1e3p", "12.34.56f",
		"[hello]p", "[hello]n", "[[nested]p]xp", "[a[b]c]p", "[unclosed", "[1 2+p]x", "[]x", "3x p", "1[a]f", "[a]1+p", "[a][b]+", "[a]Zp", "12345Zp", "0Zp", "1.234Zp", "1.234Xp", "[a]Xp", "zp", "1 2 3zp", "65aP", "65an 66P", "256P", "16706P", "0P", "[abc]P", "[abc]a n", "_5P", "5.7P", "[]an", "0a n", "300a n",
		"5sa la p lap", "laf", "lZp", "1Sa2SaLapLap", "1SaLap Lap", "1sa2SaLaplap", "7 0:a 8 1:a 0;ap 1;ap 2;ap", "7 _1:a", "_1;a", "7 1.5:a 1;ap", "7 9999:a 9999;ap", "1 0:a 2Sa 0;ap", "[x]0:a 0;ap", "7 [a]:b",
		"[1p]sa 1 2<a", "[1p]sa 2 1<a", "[1p]sa 1 1=a", "[1p]sa 1 1!=a", "[1p]sa 1 2!<a", "[1p]sa 2 1>a", "[1p]sa 1 2>a", "[1p]sa 1 2!>a", "[1p]sa [2p]sb 1 1=aeb", "[a]1=a", "1=a", "0si[lip1+dsi5>a]sali0 5>a", "[d1-d0<a]sa5lax f", "[la1+dsa*pla10>y]sy0sa1lyx", "[q]sq 1p lqx 2p", "[[2Q]x 9p]x 3p", "[1Q2p]x3p", "0Q", "_1Q", "q1p", "[[q]x1p]x2p",
		"1 0/p", "1 0%p", "1 0~f", "0 0^p", "0 _1^p", "+", "1+", "p", "f", "c p", "1 2cz p", "d", "r", "1r", "R", "3 4 zp", "1 2 3 3Rf", "1 2 3 _3Rf", "1 2 3R", "n", "P", "x", "v", "sa", ":a", ";a", "k", "i", "o", "|", "Z", "X", "a", "10n", "[a]n[b]n",
		"1p#comment\n2p", "1 2 + p # x", "!", "y", "\x01", "&", "1 2(f", "1 2)f", "{", "N1Np0Np", "1 2Gp", "h", "m", "u", "\\", "'", "@", "1,2p", "1 2 3 4 5 6 7 8 9 0f", "2 300^p", "16o2 200^p", "10k 1 7/ps.f", "?p",
	} {
		why := ""
		if strings.ContainsAny(s, "ey\x01&()@{}NGhmu\\',") && !strings.HasPrefix(s, "[hello]") && !strings.HasPrefix(s, "[[nested]") && s != "[unclosed" {
			why = "the real one writes half of a complaint about an unknown command to standard output"
		}
		cases = append(cases, commandtest.Case{Args: []string{"dc"}, Stdin: s + "\n", Stderr: true, Why: why}, commandtest.Case{Args: []string{"dc", "-e", s}, Stderr: true, Why: why})
	}
	cases = append(
		cases, commandtest.Case{Args: []string{"dc", "-f", "f"}, Files: map[string]string{"f": "1 2+p"}}, commandtest.Case{Args: []string{"dc", "f", "-"}, Stdin: "p", Files: map[string]string{"f": "1 2+"}}, commandtest.Case{Args: []string{"dc", "nosuch"}, Stderr: true},
		commandtest.Case{Args: []string{"dc", "-e", "1", "-e", "p"}}, commandtest.Case{Args: []string{"dc", "--expression=5p"}}, commandtest.Case{Args: []string{"dc", "-x"}, Why: "its help is its own"}, commandtest.Case{Args: []string{"dc", "-e", "2 300^p"}, Env: []string{"DC_LINE_LENGTH=0"}}, commandtest.Case{Args: []string{"dc", "-e", "2 300^p"}, Env: []string{"DC_LINE_LENGTH=20"}},
	)
	commandtest.Compare(t, Commands(), cases)
}

func TestHostileProgramsEnd(t *testing.T) {
	limits := budget.Limits{Steps: 5_000_000, Heap: 64 << 20}
	for _, c := range []commandtest.Case{
		{Args: []string{"bc"}, Stdin: "while(1){}\n"}, {Args: []string{"bc"}, Stdin: "x=9;while(1)x=x*x\n"}, {Args: []string{"bc"}, Stdin: "define f(x){return f(x+1)}\nf(1)\n"}, {Args: []string{"bc"}, Stdin: "9^9^9^9\n"}, {Args: []string{"bc"}, Stdin: "scale=1000000000;1/3\n"}, {Args: []string{"bc"}, Stdin: strings.Repeat("(", 100000)},
		{Args: []string{"bc"}, Stdin: strings.Repeat("- ", 100000) + "1\n"}, {Args: []string{"bc"}, Stdin: strings.Repeat("{", 100000)}, {Args: []string{"bc"}, Stdin: "for(i=0;1;i++)a[i]=i\n"}, {Args: []string{"bc", "-l"}, Stdin: "e(99999999999)\n"}, {Args: []string{"bc", "-l"}, Stdin: "scale=100000;e(1.5);l(3);s(1)\n"}, {Args: []string{"bc", "-l"}, Stdin: "j(99999,99999)\n"}, {Args: []string{"bc"}, Stdin: "obase=2;9^99999\n"},
		{Args: []string{"dc"}, Stdin: "[lax]salax"}, {Args: []string{"dc"}, Stdin: "[lax 1]salax"}, {Args: []string{"dc"}, Stdin: "9[d*lax]salax"}, {Args: []string{"dc"}, Stdin: "[1lax]salax"}, {Args: []string{"dc"}, Stdin: "9 9 9 9^^^p"}, {Args: []string{"dc"}, Stdin: "[dSblax]sa1lax"},
	} {
		r := commandtest.RunWithin(t, Commands(), c, limits)
		if r.Status != 137 || !strings.Contains(r.Stderr, "is used up") {
			t.Errorf("%.40q: status %d, %.200q", c.Stdin, r.Status, r.Stderr)
		}
	}
}

func FuzzBC(f *testing.F) {
	for _, s := range []string{"1+2\n", "define f(x){auto a[];return x[1]}\nf(2)\n", "for(i=0;i<3;i++){print i,\"a\\n\"}\n", "/*", "\"", "a[b[c]]++", "ibase=2;obase=20;1.1\n", "\\\n", "if(1)2 else"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		commandtest.RunWithin(t, Commands(), commandtest.Case{Args: []string{"bc", "-l"}, Stdin: s}, budget.Limits{Steps: 200_000, Heap: 32 << 20, Calls: 50})
	})
}

func FuzzDC(f *testing.F) {
	for _, s := range []string{"1 2+p", "[d1-d0<a]sa5lax f", "16iFFp2o10p", "1:a2;a", "[x]dx", "_.5", "5Q", "!=", "3R|~"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		commandtest.RunWithin(t, Commands(), commandtest.Case{Args: []string{"dc"}, Stdin: s}, budget.Limits{Steps: 200_000, Heap: 32 << 20, Calls: 50})
	})
}
