package sed

import (
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
)

// in makes a case of arguments, with the usual files and input.
func in(args ...string) commandtest.Case {
	return commandtest.Case{
		Args: append([]string{"sed"}, args...), Stdin: "abc\nde/f\n", Stderr: true,
		Files: map[string]string{
			"nn": "l1\nl2", "ab": "A\nB\n", "e8": "1\n2\n3\n4\n5\n6\n7\n8\n", "bs": "a\\b/c]d\n", "empty": "", "nl": "\n", "dd/": "", "dd/f": "in d\n",
			"z": "a\x00b\nc\x00d", "utf": "héllo wörld ÀÉß\nbad\xff\xfebytes\n", "ctl": "a\tb\x01\x7f\\\r\b\n", "long": strings.Repeat("0123456789", 30) + "\n", "link": "-> ab",
			"html": "<a href=\"x\">one</a> <b>two</b>\n<p>three</p>\n", "conf": "# c\nkey=value\nname = some thing\n\n[sec]\nkey=other\n", "csv": "a,b,c\n1,2,3\n,,\n", "crlf": "a\r\nb\r\n",
			"script": "s/a/X/\n# comment\np\n", "hashn": "#n\np\n", "hashx": "#nx\np\n", "hashns": "#n x\np\n", "bad": "p\nk\n", "open": "p\n{\np\n", "text": "1a\\\n  one\\\n  two\n$i\\\nend\n", "noeol": "s/a/X/\n1a\\\nfoo", "late": "p;s//x/",
		},
	}
}

func ins(scripts ...string) []commandtest.Case {
	cases := make([]commandtest.Case, 0, len(scripts))
	for _, s := range scripts {
		cases = append(cases, in(s))
	}
	return cases
}

func on(file string, scripts ...string) []commandtest.Case {
	cases := make([]commandtest.Case, 0, len(scripts))
	for _, s := range scripts {
		cases = append(cases, in(s, file))
	}
	return cases
}

func on8(scripts ...string) []commandtest.Case {
	cases := make([]commandtest.Case, 0, 2*len(scripts))
	for _, s := range scripts {
		cases = append(cases, in(s, "e8"), in("-n", s, "e8"))
	}
	return cases
}

func TestTextsOfCommands(t *testing.T) {
	cases := ins(`a\`, "a", "a ", "1a\\\n", "1a\\\nfoo\\\nbar", "1a   foo", `1a\   foo`, "1a\\\n   foo", `1a\text`, `1a\ttext`, `1a foo\tbar`, `1a foo\nbar`, `1a fo\o`, `1a foo\`, "1a foo\\\nbar", "1a foo\\\\\np", "1a\\\n\\  foo", `1a \  foo`, `1a\\tx`, `1a\\\tx`, `1a a\x41b\d065\o101\cA`,
		"$!{a foo\n}", "1{a foo}", `1i\`, `1c\`, "1i", "1i  ", `1i\  `, "1a\\\n\\\nx", "1a\\  \\\nx", "1a\\\na\\\nb\\\\\np", "1,2c foo", "1,2!c foo", "$!c foo", "1a\\  \nfoo", "1a\\\tfoo", "1a  \\\n  foo", "1a\\\nfoo\\\n", "1{a\\\nfoo\np}", "i x", "i\\\nx\\\ny", "c x", "$c x", "2c\\\nx", "/b/c x", "a x\nay", "1i a\n1i b\n1a c\n1a d", "a\\", "a\\\n", "a\np", "a \np", "a\n", "a\\\\", "a \\", "a x\\\\", "a x\\y", "a &\\&", "a [x]/", "a \\\nfoo", "a\\ \nfoo", "1!i x", "a }", "a foo;p", "a foo # x", "2i\\\n\\tx", "i\\  a\\\n  b", "$a\\\n\\\n\\\nx", "i\\\n\\", "a\\\n\n", "a\\\n  \\\n  x")
	cases = append(cases, in("--posix", "1a foo"), in("--posix", "1a\\\nfoo\\tbar"), in("--posix", `1a\foo`), in("--posix", "1,2a\\\nx"), in("-e", `1a\`, "-e", "foo"), in("-e", `1a\`, "-e", "  foo"), in("-e", "1a foo", "-e", "p"), in("-e", `1a foo\`, "-e", "bar", "-e", "p"), in("-e", `1a\`), in("-e", `1a\`, "-e", "p", "-e", "p"), in("-e", `1{a\`, "-e", "foo", "-e", "}"), in("-e", "i\\", "-e", "a\\", "-e", "b"), in("-e", "a x", "-e", "", "-e", "p"), in("-e", `a\`, "-e", ""), in("-e", "a\\\nx\\", "-e", "y"))
	commandtest.Compare(t, Commands(), cases)
}

func TestSyntax(t *testing.T) {
	cases := ins("}", "{", "{{}", "1}", "{p", "{p}", "{p};p", "{p}p", "{;;p;;}", ":", ": ", ":a b", ":a}", "b a", "ba}", "{ba};:a", "b;p", "b ;p", "{:a};n;ba", ":a;:a", ":a b;ta b", ":a b;ta", "ta b;:a", "1:a", "1#x", "!!p", "1!  !p", "1!  p", "1 ! p", ",p", "1,p", "1,,p", "+1p", "~1p", "1,+p", "1,~p", "1~p", "0p", "0,5p", "0~2p", "0,/a/p", "0!p", "/a", `\xa`, `\xaxp`, `\`, "\\\na\np", "k", "pk", "p k", "p;k", "1", "1,2", "/a/", "/a/I p", "/A/Ip", "/A/ I p", "/A/i p", "/a/Mp", "/a/IMp", "b x", "b x;p", "t x}", "",
		"s", "s/", "s/a", "s/a/", "s/a/b", "s/a/b/x", "s/a/b/gg", "s/a/b/pp", "s/a/b/12 3", "s/a/b/0", "s/a/b/ p", "s/a/b/ ; p", "s/a/b/ }", "{s/a/b/}", "{s/a/b/ }", "s/a/b/#x", "s/a\n/b/", "s/a/b\n/", "s/a/b\\\nc/", `s/\(/x/`, `s/a\)/x/`, `s/a/\1/`, `s/\(a\)/\2/`, "s/[/x/", "s/[/]/x/", "s/a/b/w", "s/a/b/w ", "w", "r", "R", "W", "r ", "y/a/", "y/a/bc/", `y/abc/\n\\\//`, `y/a\bc/xyzw/`, `y/a\bc/xyz/`, `y,a\,c,xyz,`, "y/a/b/g", "y/a/b/;p", "y", "y/", `s\a\b\`, "saxaya", "sé", `s,a\,b,x,`, `s|a\|b|x|`, `s.a\.b.x.`, `s+a\+b+x+`, `s*a\*b*x*`, `s&a&[\&]&`, `s/a/[\&]/`, `s1a1[\1]1`, `s1\(a\)1[\1]1`, `sna\nnXn`, "q5", "q 5", "q5x", "qx", "1,2q", "1,2Q", "Q7", "l", "l 2", "l2x", "v", "v 4.2", "v 9.0", "v 4.2;p", "v 4.10", "v x", "=p", "= p", "F", "z", "p}", "p#x", "p # x", "d;d", "/a/,/b/", "/a/,p", "/a/,/b", `/a\/b/p`, `\,a\,b,p`, `\n\nnp`, `\aa\aap`, "1,3,5p", "$,1p", "$!p", "1~2,3p", "2,1~2p", "0~0p", "0~3,5p", "x;x;p;;;p", "\n\np\n\n", "p\n;p", " p ; p ", "1 p", "1 , 2 p", "/a/ , /b/ p", "s/a/b/;;p", "s /a /b /", "s a b c ", "s/a/b/gIp", "s/A/b/ig", "s/a/b/2p3", "s/a/b/99999999999999999999",
		"y/a/b/ ; p", "y/a/b/}", "y/abc/\\a\\b", "bfoo;:foo", "b foo ; : foo", "tfoo\n:foo", ":foo\nn;bfoo", "#n", "#n\np", "#np", "#nx\np", "# n\np", "p;#n", "{\n#x\np\n}", "/x/{}", "{}", "{};p", "a\\\nx\n}", "h;G;H;x;g", "dp", "Dp", "n p", "=;=", "ww", "R ab;R", "s/x/y/e;p", "s/a/\\", "s/a\\", "s/a/b\\/", "y/\\/a/", "s/a/b/m", "s/a/b/M", "/a/b", "/a/ba;:a", "1,2{p;}", "1,2{p;};p", "1{2{p}}", "1{p}}", "1{{p}", "\xffp", "éa", "s/a/b/é")
	for _, e := range []string{"s/(/x/", "s/a)/x/", `s|a\|b|x|`, `s+a\++x+`, "s/a{1/x/", "s/a{1/]/", "s/a**/x/", "s/*a/x/", "s/+a/x/", "s/(a|b)+/x/", "s/a{1}/x/", "s/()/x/", "s/a|/x/g", "s/(a)(b)/\\2\\1/", "s/(a)/\\2/", "s/^*a/x/", "s/(*a)/x/", "s/a{2,1}/x/", "s/[[:alpha:]]+/<&>/g", "s/\\+/x/", "s/a?b/x/", "/(a|d)/p"} {
		cases = append(cases, in("-E", e), in("-r", e), in("-E", "-n", e))
	}
	cases = append(cases, in(), in("-n"), in("-e"), in("-f"), in("-f", "nosuch"), in("--foo"), in("-Q"), in("--posix", "z"), in("--posix", "F"), in("--posix", "0,/a/p"), in("--posix", "1,2="), in("--posix", "1~2p"), in("--posix", "1,+2p"), in("--posix", "s/a/b/I"), in("--posix", "/a/Ip"),
		in("-f", "script"), in("-f", "hashn"), in("-f", "bad"), in("-f", "open"), in("-f", "text"), in("-f", "noeol"), in("-f", "late"), in("-e", "p", "-f", "hashn"), in("-f", "script", "-e", "s/X/Y/"), in("-e", "p", "-e", "k"), in("-e", "p", "-e", "//p"), in("-e", "{", "-e", "p", "-e", "}"), in("-e", "{", "-e", "p"), in("-e", "y/a/b", "-e", "c/"), in("-e", `s/a/b\`, "-e", "c/"), in("-f", "script", "-f", "bad"), in("-f", "-", "ab"), in("-n", "-e", "#n", "-e", "p"), in("-e", "#n", "-e", "p"), in("-e", "", "-e", "#n"), in("--expression=p"), in("--file=script"), in("--quiet", "p"), in("--silent", "p"), in("-s", "p"), in("-nf", "script"), in("-ne", "p"), in("-En", "s/(a)/\\1\\1/p"), in("--regexp-extended", "s/(a)/\\1\\1/p"), in("p", "--quiet"), in("--", "p"), in("--", "p", "-n"), in("--sandbox", "e"), in("--sandbox", "w x"), in("--sandbox", "s/a/b/w x"), in("--sandbox", "r"), in("--sandbox", "r x"), in("--sandbox", "p"))
	for i := range cases {
		// What is written to standard error is told without the long usage.
		if a := cases[i].Args; len(a) == 1 || len(a) == 2 && len(a[1]) == 2 && a[1][0] == '-' || a[1] == "--foo" {
			cases[i].Stderr = false
		}
	}
	commandtest.Compare(t, Commands(), cases)
}

func TestSubstitution(t *testing.T) {
	cases := ins(`s/a/\x26/`, `s/a/[\x5c1]/`, `s/\x61/X/`, `s/\x5e/X/`, `s/\x5eb/X/`, `s/a\x2a/X/`, `s/a/\cM/`, `s/a/\c\\x/`, `s/a/\c\d/`, `s/a/\c/`, `s/a/\d065/`, `s/a/\o101/`, `s/a/\x/`, `s/a/\xg/`, `s/a/\x414/`, `s/a/\d65/`, `s/a/\d6/`, `s/a/\a\f\v\r\t\b/`, `s/a/\q/`, "s/a/\\\n/", `s/a/\U&x\Ey/`, `s/\(.\)\(.\)/\u\1\U\2z\l&/`, `s/.*/\u\L&/`, `s/.*/\L\u&/`, `s/.*/\U\l&/`, `s/\(a\)\(b\)/\u\2\1/`, `s/a/\ux/`, `s/a/\U/;s/b/\Ey/`, `s/\(x\)*\(a\)/\u\1\2/`, "s/x*/-/g", "s/b*/x/2", "s/b*/x/g", "s/b*/x/2g", "s/$/x/g", "s/^/x/g", `s/\b/x/g`, "s/./x/2", "s/./x/2g", "s/./x/9g", "s//x/", "/b/s//x/", "/b/s//x/I", "//p", `/\(b\)/s//\1\1/`, `/b/s//\1/`, "s/a/b/w /dev/stdout", "s/a/b/w /dev/stderr", "s/a/b/pw /dev/stdout", "s/a/x/;s/b/y/;ta;s/c/z/;:a;s/$/!/", `s/\n/x/;N;s/\n/x/`, `N;s/\n/+/`, `N;s/^/>/mg`, `N;s/$/</mg`, "N;s/^./x/Mg", `N;s/\`+"`"+`./x/Mg`, `N;s/.\'/x/Mg`, `N;s/a.*f/x/`, `N;s/c.d/x/`, `N;s/[^x]*/y/`, `s/a\|d/x/g`, `s/\(a\|d\).*/[\1]/`, `s/./&&/3`, `s/\(.\)\(.\)\(.\)/\3\2\1/`, `s/\(.\)/\1\1/g`, `s/.*/"&"/`, `s/a/\//`, `s/\//|/`, "s,/,|,", `s/[/]/|/`, `s/[abc]//g`, "s/[a-c]*//", "s/[^/]*$//", `s/\<./\u&/g`, `s/\w\+/[&]/g`, `s/\W/_/g`, `s/\s*$//`, `s/a\{1,\}/x/`, `s/b\?/x/g`, `s/\(b\)\?/[\1]/g`, `s/a\+/x/`, `s/.\{2\}/x/`, `s/^.*$/x/`, "s/^$/x/", "s/a/1/;s//2/", "/a/!s//2/", "/d/s/e/1/;s//2/", "s/\\(a\\)\\(b\\)*/\\2-\\1/", `s/\(z\)*/[\1]/g`, `s/a/\0\0/`, "s/a/&&&/", `s/a/\n/`, `s/a/\t/`, "s/a/\\t\\\nx/", `s/A/x/I`, `s/a/x/I;s/B/y/i`, `s/a.c/\U&/;s/e/\u&/`, `s/\(.*\)\/\(.*\)/\2\/\1/`, `s/a/\lABC/`, `s/a/\UabC\EdEf\LGHi/`, `s/.*/\U\u&/`, `s/.*/x\u&y/`, `s/\(a\)\(b\)/\U\1\E\2/`, `s/b/\u&\l&\U&\E&/`, `s/.*/\l\U&/`, `s/.*/\u\l&/`, `s/.*/\Ea&/`, `s/b/\U\n&/`, `s/b/[\cA\c[]/`,
		"s/a/x/3;s/b/x/1", "s/./x/1g", "s/[^,]*,/x/", "y/abc/\\x41BC/", `y/abc/\t\n\\/`, `y/a/\q/`, "y/aé/éb/", `y/\//x/`, `y/abc/\d065BC/`, "y/abcabc/123456/", "y/abcdef/ABCDEF/", "N;y/\\n/+/", "y/a/é/", "y/\\\\/x/", "y/[a]/(b)/", `y/a\/b/1\/2/`, "s/a\\nb/x/", "s/[\\n]/x/", "N;s/[\\n]/x/", "N;s/[^\\n]/x/g", `s.a\.c.x.`, "s.a[.]c.x.", "s/a\\{1/x/", "s/a**/x/", "s/*a/x/", `s/\(*a\)/x/`, "s/[[:foo:]]/x/", "s/[b-a]/x/", `s/a\/x/`, "s/[:alpha:]/x/", "s/[[:upper:]]/x/", "s/[[:alpha:]/]/x/g", "s/\\[/x/", "s/[^]/]/x/g", "s/[]/]/x/g", `s/[\]]/x/g`, `s/[a\/]/x/g`, `s/\(a/x/`, `s/\(\(a\)\)/\2\1/`, `s/\(.\)\1/x/`, `s/.\(.\)./\1/`, `s/\.//g`, `s/\$/x/`, "s/a$b/x/", "s/a^b/x/", `s/\^/x/`)
	cases = append(cases, on("bs", `s/[\/]/x/g`, `s/[^\/]/x/g`, `s,[\,],x,g`, `s/[]\/]/x/g`, `s/[[:alpha:]\/]/x/g`, "s/[a/b/x/", `s/\\[/]/x/`, `s/\[/]/x/`, "s/[[.].]/]/x/g", "s/[[/]/x/g", "s/[[=a=]/]/x/g", "s/a[^\n]/x/g", "/[/]/p", "s/[/]/[/", "y/[/]/x/", "s/x/[/]/", `s/\\/x/`, `s/[\]/x/`, `s/[\\]/x/g`, `s/[\n]/x/`, `s/\]/x/`, `s/\\b/x/`, `s/a\\/\\\\/`)...)
	cases = append(cases, on("utf", "s/./x/g", "s/.*/\\U&/", "s/ö/o/", "s/[^a-z ]/x/g", "s/é/\\u&/", `s/\w*/[&]/g`, "y/éö/eo/", "y/éöh/EO日/", "s/\\xff/!/", "l", "s/h./x/", "s/ÀÉ/\\L&/", "s/./&&/2", "s/É/x/I", "s/\\(.\\)\\(.\\)/\\2\\1/", "s/bad.bytes/x/", "s/bad..*bytes/x/", "y/\\xff/x/", "s/ß/\\U&/")...)
	cases = append(cases, on("html", "s/<[^>]*>//g", `s/<\([a-z]*\)[^>]*>/[\1]/g`, `s/.*href="\([^"]*\)".*/\1/`, `s|</[^>]*>|&\n|g`, "s/>/>\\\n/g")...)
	cases = append(cases, on("conf", "/^#/d;/^$/d", "s/[[:space:]]*=[[:space:]]*/=/", "/^\\[sec\\]/,$s/key=.*/key=new/", `/^key=/{s/=.*/=1/;h}`, "$!{h;d};H;x", `/^\[/!d`, "/key/c\\\nkey=x", "/sec/i ; before", "/sec/a\\  after", "=", "/^name/{s/ *= */: /;p;d}", "1!G;h;$!d", "$!N;$!D", "n;d", "$=", "/key/,/^$/!d")...)
	cases = append(cases, on("csv", "s/,/;/2", "s/,/;/g", "s/\\([^,]*\\),\\([^,]*\\)/\\2,\\1/", "s/[^,]*/<&>/g", "s/[^,]*/<&>/2", ":a;s/,,/,0,/;ta", "s/^,/0,/;s/,$/,0/", "s/,*/x/g")...)
	cases = append(cases, on("crlf", "s/\\r$//", "s/$/x/", "s/\\r//g", "l", "s/.$//")...)
	commandtest.Compare(t, Commands(), cases)
}

func TestAddressesAndFlow(t *testing.T) {
	cases := on8("2,4p", "4,2p", "2,/[2-5]/p", "/2/,/[2-5]/p", "/2/,1p", "/[25]/,3p", "2,+2p", "/2/,~4p", "/4/,~4p", "0~3p", "2~3p", "5~0p", "0,/1/p", "1,/1/p", "2,4!p", "$!{$!p}", "2{n;n;n};2,4p", "2,3{N;N;N;p}", "2,4c X", "2,4!c X", "/2/,/4/{c\\\nX\n}", "2,4{4!c X\n}", "$!N;2,4c X", "2{N;N;c X\n}", "2,4{=;$!d}", "2,1{p}", "N;D", "N;N;D", "$!N;$!D", "N;P;D", "s/1/a\\nb/;D", "s/1/a\\nb/;P;D", "s/3/a\\nb/;/a/i x\n/b/a y\nD", "/[26]/,3{N;N;N;p}", "/[26]/,3p", "/2/,+1p;/3/,+1p", "/[2-4]/,+1p", "$p", "$!d", "2q", "2q5", "2Q", "2Q5", "/3/q", "n", "n;d", "n;n;d", "N", "N;N;N", "$!N;s/\\n/ /", ":a;N;$!ba;s/\\n/,/g", ":a;$!{N;ba};s/\\n/,/g", "1!G;h;$!d", "x", "x;p;x", "G", "H;$!d;x;s/\\n/,/g", "h;n;G", "2h;4G;6x", "g", "$!g", "/2/{x;p;x}", "/3/{h;d};/6/G", "2,5{/3/d;s/^/x/}", "2,5{/3/b;s/^/x/}", "2,5{/3/!b;s/^/x/}", "2{p;p};4{=;=}", "s/[24]/x/;t;s/$/y/", "s/[24]/x/;T;s/$/y/", "s/2/x/;tz;b;:z;s/$/z/", ":a;s/^.\\{1,5\\}$/ &/;ta", "2,4{p;d};s/^/-/", "0~2{N;s/\\n/-/}", "1~3d", "2~2s/^/e/", "$!{N;P;D}", "P", "N;P", "1,3H;$G", "z;s/^$/e/", "=;d", "2i\\\nx\n4a\\\ny\n6c\\\nz", "r ab", "2r ab", "$r ab", "R ab", "2R ab;4R ab;6R ab", "R nn", "r nosuch", "R nosuch", "1r nn", "2r nn\n3r nn", "3w out\nw out2", "2,3W out", "N;W out", "w /dev/stdout", "2w /dev/stderr", "/3/,/5/{//!d}", "/3/,/5/{//d}", "/3/,$d", "/9/,$d", "/8/,/9/d", "$,/x/d", "2,$!d", "1d;n;d", "$d", "1,+0p", "2,~1p", "3,~3p", "4,~3p", "2,~0p", "0,/2/d", "0,/x/d", "1~2,+1d", "1~4,~2p", "n;2,3p", "2{N;N};2,3p", "3{N;N;N};2,4s/^/x/", "2,4{3q}", "5{h;d};${G}", "a x\n2d", "2{a x\nd}", "i x\nn", "a x\nn", "a x\nN", "r ab\nN", "a x\nD", "2{a x\nq}", "2{a x\nQ}", "2{r ab\nq}", "c x\n", "$!{c x\n}", "1{x;G;G}", "D", "P;D", "/4/{N;D}", "4{N;N;D}", "/1/,/3/{/2/!d}", "y/12345678/abcdefgh/", "l;d", "l 1;d", "F;d", "bend;s/^/x/;:end", "/x/bend\ns/^/y/\n:end", "b\ns/^/x/", "1,2b1;s/^/x/;:1", "{{{p}}}", "2,3{{4p;3p}}", "1d;1,3p", "1,2d;1,2p", "1,5d;1,/7/p", "1,5d;1,+1p", "1,5d;1,~4p", "1,5d;1,$p", "3d;3,2p", "1,5d;3,2p", "1,5d;3,6p", "1,5d;3,7p;3,7s/^/x/p", "5d;5,/[68]/p", "2{N;N;N};3,/8/p", "1d;1,1p", "2d;1,2p", "2,3d;2,/4/p", "1,3d;1~2,5p", "1,5d;0,/7/p", "1d;1!p", "n;1,2s/^/x/", "0r ab", "0!r ab", "1d;0r ab", "0,/3/r ab", "0R ab", "n;0r ab", "0{r ab\n}", "0w x", "i q\n0r ab", "2,3r ab", "/2/I,/4/Ip", "\\,2,,\\,4,p", "2!{4!p}", "1,3{2,4{=}}")
	for i := range cases {
		cases[i].Look = []string{"out", "out2"}
	}
	for _, script := range []string{"p", "", "n", "N", "N;N", "x", "G", "H;x", "a x", "i x", "c x", "$r ab", "r nn", "R nn", "=", "l", "1!G;h;$!d", "w /dev/stdout", "w out", "s/l/L/w out", "$!d", "$d", "D", "P;D", "$!N;P;D", "z", "h;G;G", "$q", "1q", "y/l/L/", "$!{h;d};x", "$!{h;d};x;G", "$!{h;d};G", "g", "$g", "1h;$g", "1h;$x", "F", "N;P", "W out", "s/2/&/p", "$a\\", "$s/$/\\n/", "$p;$p", "p;$Q", "w out\n$q", "w /dev/stdout\n$q", "$!d;w out\nQ", "i\\", "$i y"} {
		for _, files := range [][]string{{"nn"}, {"nn", "ab"}, {"nn", "nn"}, {"empty"}, {"nl"}, {"nn", "empty"}, {"empty", "nn"}, {"ab", "nosuch"}, {"nosuch"}, {"nosuch", "nn", "empty"}, {"-", "nn"}, {"nn", "-"}} {
			for _, option := range []string{"", "-n", "-s", "-z", "-u"} {
				args := append([]string{script}, files...)
				if option != "" {
					args = append([]string{option}, args...)
				}
				c := in(args...)
				c.Look = []string{"out"}
				cases = append(cases, c)
			}
		}
	}
	commandtest.Compare(t, Commands(), cases)
}

func TestOptionsAndFiles(t *testing.T) {
	cases := []commandtest.Case{
		in("p", "nosuch"), in("p", "dd"), in("p", "nn", "ab"), in("-s", "p", "nn", "ab"), in("-i", "p", "dd"), in("-i", "p", "nosuch"), in("-i", "p"), in("-n", "$=", "nn", "ab"), in("-s", "-n", "$=", "nn", "ab"), in("-n", "$p", "nn", "nosuch"), in("p", "dd", "ab"), in("-i", "p", "dd", "ab"), in("p", "ab", "dd", "ab"),
		in("-s", "-n", "1,3p", "ab", "nn"), in("-s", "-n", "/B/,/zz/p", "ab", "nn"), in("-n", "/B/,/zz/p", "ab", "nn"), in("-s", "-n", "0,/A/p", "ab", "ab"), in("-n", "0,/A/p", "ab", "ab"), in("-s", "$!d", "ab", "nn"), in("-s", "F", "ab", "nn"), in("F", "ab", "-", "nn"), in("-s", "1i x", "ab", "nn"), in("-s", "$a x", "nn", "ab"), in("-s", "N;s/\\n/+/", "e8", "ab"), in("-s", "N;N;s/\\n/+/g", "ab", "e8"), in("-s", "n;d", "ab", "e8"), in("-s", "2q", "ab", "e8"), in("-s", "H;$!d;x", "ab", "nn"), in("-s", "=", "ab", "nn"), in("=", "ab", "nn"),
		in("-z", "s/b/x/", "z"), in("-z", "s/^./x/g", "z"), in("-z", "s/^./x/Mg", "z"), in("-z", "N;s/\\x00/+/", "z"), in("-z", "$!d", "z"), in("-z", "l", "z"), in("-z", "G", "z"), in("-z", "=", "z"), in("-z", "s/\\n/,/g", "e8"), in("-z", "a x", "z"), in("-z", "i x", "z"), in("-z", "P;D", "z"), in("-z", "y/\\n/+/", "z"), in("-z", "F", "z"), in("-z", "s/$/x/Mg", "z"), in("-z", "c x", "z"), in("--null-data", "p", "z"), in("--zero-terminated", "p", "z"),
		in("-n", "l", "ctl"), in("-n", "l", "long"), in("-n", "l 20", "long"), in("-n", "-l", "30", "l", "long"), in("-n", "-l", "1", "l", "ctl"), in("-n", "-l", "0", "l", "long"), in("-n", "l 0", "long"), in("-n", "l 1", "ctl"), in("-n", "l 2", "ctl"), in("-n", "l 5", "ctl"), in("-n", "l 4", "utf"), in("-n", "--line-length=10", "l", "ctl"), in("-l", "x", "p"), in("-n", "l", "z"),
		in("-u", "p"), in("-u", "2q", "e8"), in("--unbuffered", "$d"), in("-b", "p", "crlf"), in("--binary", "p"), in("-n", "p", "--", "-x"), in("-ns", "p", "ab"), in("--posix", "p"), in("--posix", "l 1"), in("--posix", "q5"), in("--posix", "a\\"), in("--posix", "s/a/\\1x/"), in("-s", "0r ab", "nn", "nn"), in("y/a/\\c/"), in("--follow-symlinks", "F", "link"), in("-n", "--follow-symlinks", "F", "link", "nosuch", "ab"), in("--posix", "N"), in("--posix", "n"), in("--posix", "N;N;N", "e8"), in("--posix", "$!N;P;D", "e8"), in("r /dev/stdin", "ab"), in("R /dev/stdin", "e8"), in("1r /dev/stdin", "ab"), in("w x}\np"), in("{p;w x\n}"), in("w out\nr out", "ab"), in("w out\nR out", "ab"), in("w dd/x", "ab"), in("w nodir/x", "ab"), in("w dd", "ab"), in("s/A/x/w out", "ab"), in("s/A/x/w out\ns/B/y/w out", "ab"), in("w out\ns/^/x/w out", "ab"), in("-n", "w /dev/stdout", "nn"), in("W /dev/stdout", "nn"), in("-f", "script", "ab"), in("-nf", "hashn", "ab"), in("-f", "hashx", "ab"), in("-f", "hashns", "ab"), in("p", "sp ace"), in("-E", "-n", "s/(l)([0-9])/\\2\\1/p", "nn"),
	}
	for i := range cases {
		cases[i].Look = []string{"out", "x", "x}", "dd/x"}
	}
	for _, options := range [][]string{{"-i"}, {"-i.bak"}, {"-i", "-n"}, {"-i", "-s"}, {"-ibak_*"}, {"-idd/*.b"}, {"--in-place"}, {"--in-place=.o"}, {"-i", "--follow-symlinks"}, {"-n", "-i"}, {"-i.bak", "-z"}, {"-i", "-u"}, {"-Ei"}} {
		for _, script := range []string{"s/A/x/", "s/./x/p", "1d", "$d", "2q", "$!N;s/\\n/+/", "a foo", "1i foo", "w /dev/stdout", "=", "F", "$=", "1,2p", "/A/,/zz/d", "r nn", "c x", "d", "N;N;s/\\n/+/g", "1!G;h;$!d", "x", "l", "y/AB/ba/"} {
			for _, files := range [][]string{{"ab"}, {"nn"}, {"ab", "nn"}, {"ab", "nosuch", "nn"}, {"dd/f"}, {"link"}, {"empty"}, {"-"}, {"dd", "ab"}} {
				c := in(append(append(append([]string{}, options...), script), files...)...)
				c.Look = []string{"ab", "nn", "dd/f", "link", "empty", "ab.bak", "nn.bak", "bak_ab", "bak_nn", "dd/ab.b", "ab.o", "link.bak", "dd/f.bak", "dd/bak_f", "bak_link"}
				cases = append(cases, c)
			}
		}
	}
	commandtest.Compare(t, Commands(), cases)
}
