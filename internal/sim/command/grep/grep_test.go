package grep

import (
	"fmt"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
)

// in makes a case of a command line that has no need for quotes, with the
// usual files.
func in(line string, more ...string) commandtest.Case {
	return commandtest.Case{
		Args: append(strings.Fields(line), more...), Stdin: "from stdin\nabc\nlast abc line", Stderr: true,
		Files: map[string]string{
			"t": "abc\nx\nabc\ny\nz\nfoo abc bar abc\n\nxyz ABC\nend", "n": numbers(60), "empty": "", "nl": "\n", "d/f": "abc in d\n", "d/sub/": "",
			"bin": "a\x00b\nfoo abc\nabc\x00", "latin": "ok abc\nabc caf\xe9\nabc\n", "z": "abc\nx\x00y\nabc\x00\x00abc", "utf": "héllo wörld abc\n日本語 abc\nÀÉ\n",
			"pat": "abc\nxyz\n", "one": "z\n", "crlf": "abc\r\nx\r\n", "tabs": "a\tabc\n\tabc\n", "late": strings.Repeat("abc line\n", 20000) + "\x00\nabc", "sp ace": "abc\n",
			"long": strings.Repeat("x", 200000) + "abc\n" + strings.Repeat("y", 200000), "words": "foo-bar foo_bar foobar\nbar.foo\n_foo\nfoo\n",
		},
	}
}

func numbers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d\n", i+1)
	}
	return b.String()
}

func ins(lines ...string) []commandtest.Case {
	cases := make([]commandtest.Case, 0, len(lines))
	for _, line := range lines {
		cases = append(cases, in(line))
	}
	return cases
}

func TestGrepPrintsAsGNUDoes(t *testing.T) {
	var cases []commandtest.Case
	for _, files := range []string{"", "t", "t n", "t nosuch utf", "bin", "latin", "z", "late", "d", "empty nl", "- t", "long", "crlf tabs", "t d bin"} {
		for _, options := range []string{
			"", "-n", "-c", "-v", "-l", "-L", "-o", "-q", "-s", "-b", "-H", "-h", "-nb", "-ob", "-onH", "-i", "-m1", "-m2", "-m0", "-vm2", "-cv", "-cm1", "-a", "-an", "-I", "-z", "-zc", "-zo", "-T", "-TnbH", "-ToH", "-Z", "-lZ", "-cZ", "-LZ",
			"-A1", "-B1", "-C1", "-1", "-A0", "-nA1", "-nB2 -A1", "-vA1", "-vn", "-vB1", "-m1 -A3", "-m2 -A2", "-m1 -vA2", "-oA1", "-ov", "-ql", "-lc", "-Lc", "--color=always", "--color=always -n", "--color=always -o", "--color=always -C1 -nH", "--color=always -v", "--color=always -i -l",
			"--label=xx -H", "--no-group-separator -A1", "--group-separator=## -A1", "-U", "-u", "-y", "--binary-files=text -c", "--binary-files=without-match -c", "-d skip", "-d read", "--line-buffered", "-w", "-x", "-wo", "-F", "-E", "-P", "-Pn", "-Po", "-Fx", "-Fw", "-Fi",
		} {
			cases = append(cases, in("grep "+options+" abc "+files))
		}
	}
	commandtest.Compare(t, Commands(), cases)
}

func TestContext(t *testing.T) {
	var cases []commandtest.Case
	for _, pattern := range []string{"1$", "5", "[36]0", "1[0-9]", "60", "^1$", "nothing", ""} {
		for _, options := range []string{
			"-A1", "-B1", "-C1", "-2", "-A5", "-B5", "-C100", "-12", "-1 -2", "-1n2", "-n1", "-11n", "-0", "-A2 -B1", "-C1 -A3", "-A3 -C1", "-B0", "-v -1", "-v -A2", "-v -B2 -n", "-m2 -A2", "-m3 -C2", "-m2 -v -A1", "-c -A1", "-q -1", "-o -1", "-on -C2", "-b -C1", "--context=1", "--after-context=1 --before-context=2",
			"-1 -e 7", "-vm2 -C1", "-m1 -A100", "-3 --group-separator= ", "-nv -C2 --color=always", "-n -C1 --color=always",
		} {
			cases = append(cases, in("grep "+options, "-e", pattern, "n"), in("grep "+options, "-e", pattern, "n", "n", "t"))
		}
	}
	commandtest.Compare(t, Commands(), cases)
}

func TestOptions(t *testing.T) {
	cases := ins(
		"grep", "grep -e", "grep -Q abc t", "grep --foo", "grep -E -F abc t", "grep -P -E abc t", "grep -E -E abc t", "grep -G -F x", "egrep abc t", "fgrep a.c t", "egrep -F abc t", "egrep -E abc|xyz t", "fgrep -c abc t", "grep -X egrep a+ t", "grep -X foo a t",
		"grep -A x a t", "grep -A -1 a t", "grep -A 1k a t", "grep -A 99999999999999999999 abc t", "grep -C foo a t", "grep -m x a t", "grep -m -1 abc t", "grep -m 1k a t", "grep -m 99999999999999999999 abc t", "grep -d foo a t", "grep -d re a t", "grep -d rec abc d", "grep -D foo a t", "grep --binary-files=x a t",
		"grep -D skip abc t", "grep -D read abc t", "grep -D skip abc -", "grep --max-count", "grep --no-mess abc nosuch", "grep --in abc t", "grep --re abc t", "grep --regexp=abc t", "grep --colour abc t", "grep --color=never abc t", "grep --color=auto abc t",
		"grep -e abc -e x t", "grep -e abc -f pat t", "grep -f pat t", "grep -f pat -f one t", "grep -f empty t", "grep -vf empty t", "grep -f nl t", "grep -f nosuch t", "grep -f - t", "grep -F -f pat t", "grep -cf empty t", "grep -f empty -e abc t", "grep -P -e a -e b t", "grep -P -f pat t", "grep -P -f one t",
		"grep -P -f empty t", "grep -e-abc t", "grep -- -x t", "grep -- abc t", "grep abc -- t", "grep abc t -n", "grep -nabc t", "grep -in ABC t", "grep -i --no-ignore-case ABC t", "grep --no-ignore-case -i ABC t", "grep -yo ABC t",
		"grep -q abc nosuch t", "grep -q abc t nosuch", "grep -s abc nosuch t", "grep -sq abc nosuch t", "grep -l abc nosuch t", "grep -L abc t n", "grep -L abc t", "grep -L zzz t n", "grep -l zzz t", "grep -Ll abc t n", "grep -lL abc t n", "grep -lv abc t empty", "grep -Lv abc t empty", "grep -lm1 abc t", "grep -Lm0 abc t", "grep -lm0 abc t",
		"grep abc", "grep abc -", "grep -c abc - -", "grep -H abc", "grep -H abc -", "grep --label=foo abc - t", "grep --label=foo -c abc", "grep -l abc -", "grep -l --label=q abc", "grep abc nosuch", "grep abc ''", "grep -n '' t", "grep -c ^ t empty nl", "grep -c $ t empty nl", "grep -v ^ t", "grep -x abc t", "grep -xv abc t", "grep -w foo words", "grep -wo foo words", "grep -xw foo words",
		"grep -ow foo words", "grep -o [a-z]* words", "grep -on [a-z]* words", "grep -ob o words", "grep -o x* t", "grep -c x* t", "grep -o -b . utf", "grep -oi ABC t", "grep -o ^ t", "grep -o ^a t", "grep -oE ^a|b t", "grep -o é utf", "grep -i É utf", "grep -i àé utf", "grep h.llo utf", "grep ^...$ utf", "grep -P h.llo utf", "grep -P \\w+ utf", "grep -oP \\d+ n", "grep -oP a\\Kb t", "grep -P a(?=b) t", "grep -oP (?<=a)b t",
		"grep a\\|x t", "grep -E a|x t", "grep (a t", "grep \\(a t", "grep -E (a t", "grep -E a) t", "grep a\\) t", "grep [a t", "grep a\\{1 t", "grep -E a{1 t", "grep a\\ t", "grep \\d t", "grep -E *a t", "grep -E +a t", "grep [:space:] t", "grep [[:foo:]] t", "grep [z-a] t", "grep -E a{1,99999} t", "grep \\(.\\)\\1 words", "grep -E (.)\\1 words", "grep -E (o)\\1 words", "grep \\<foo words", "grep foo\\> words", "grep \\bfoo\\b words", "grep \\Bfoo words", "grep \\`foo words", "grep \\w*$ words", "grep -E ^$ t", "grep -P ( t", "grep -P [ t", "grep -P a{2,1} t", "grep -P *a t",
		"grep --exclude=t abc t n", "grep --include=t abc t d/f", "grep --include=*f abc t d/f", "grep --exclude=d/f abc d/f", "grep --exclude=f abc d/f", "grep --include=t --exclude=t abc t", "grep --exclude=t --include=t abc t", "grep --exclude-from=nosuch abc t", "grep --exclude-from=pat abc t", "grep --exclude=[ab] abc t", "grep --exclude=? abc t n",
		"grep -r abc d", "grep -r abc d/", "grep -r abc d//", "grep -r abc ./d", "grep -r abc d/f", "grep -rh abc d", "grep -rH abc d/f", "grep -rl abc d", "grep -rL abc d", "grep -rc abc d", "grep -R abc d t", "grep -r --include=*.c abc d", "grep -r --include=f abc d", "grep -r --exclude=f abc d", "grep -r --exclude-dir=d abc d", "grep -r --exclude-dir=d/ abc d", "grep -r --exclude-dir=d abc d/", "grep -r --exclude-dir=. abc d", "grep -r --exclude-dir=sub abc d", "grep -rn abc d t", "grep -r abc nosuch", "grep -rs abc nosuch", "grep -rq abc d", "grep -dskip abc d t", "grep -rZl abc d",
		"grep -c -z abc z", "grep -z ^abc z", "grep -z -o ab. z", "grep -zv abc z", "grep -zx x z", "grep -Pz ^abc z", "grep -zP c$ z", "grep -zn abc z", "grep -z c$ z", "grep -za abc z", "grep -az abc bin", "grep -oa abc bin", "grep -a b$ bin", "grep ^b$ bin", "grep -ac . bin", "grep -c . bin", "grep -v . bin", "grep -vc zzz bin", "grep -n abc latin", "grep -o caf latin", "grep -o abc.* latin", "grep -a caf. latin", "grep -c . latin", "grep -v ok latin", "grep -A1 ok latin", "grep -B1 ^abc$ latin", "grep -n . latin t", "grep -P caf latin", "grep -aP caf. latin", "grep -U abc crlf", "grep abc$ crlf", "grep -c \r crlf",
	)
	cases = append(cases, in("grep", "a\nx", "t"), in("grep -F", "abc\n", "t"), in("grep -E", "(a\nb", "t"), in("grep", "", "t", "nl", "empty"), in("grep -c", "abc", "sp ace"), in("grep -n abc", "sp ace", "t"), in("grep -e", "", "-v", "t"), in("grep -w", "", "t"), in("grep -x", "", "t"), in("grep -P", "a\nb", "t"), in("grep -o", "", "t"),
		in("grep -F", "x\n\ny", "t"), in("grep -Fx", "x\n\ny", "t"), in("grep -Fw", "foo\nbar", "words"), in("grep -Fiw", "FOO", "words"), in("grep -w", "foo\\|bar", "words"), in("grep --group-separator", "a b", "-A0", "1", "n"), in("grep -e", "-n", "t"), in("grep", "abc", ""))
	for _, env := range []string{"GREP_COLORS=mt=01;32", "GREP_COLORS=sl=1:cx=2:rv:ms=3:mc=4:fn=5:ln=6:bn=7:se=8", "GREP_COLORS=sl=1:cx=2:ne", "GREP_COLORS=mt=", "GREP_COLORS=xx=1:sl=1", "GREP_COLORS=sl=x:cx=2", "GREP_COLORS=ms=", "GREP_COLORS=se=", "GREP_COLOR=7", "GREP_COLORS=rv=1:sl=1", "GREP_COLORS=sl:cx=1"} {
		for _, options := range []string{"", "-n", "-v", "-C1 -nbH", "-o", "-vC1 -n", "-c", "-l", "-ov", "-i"} {
			c := in("grep --color=always " + options + " abc t crlf")
			c.Env = []string{env}
			cases = append(cases, c)
		}
	}
	for _, line := range []string{"grep . latin", "grep -o caf. latin", "grep -c ..... utf", "grep -o .l utf", "grep -P caf. latin", "grep abc bin", "grep -i É utf", "grep -w wörld utf", "grep -o [[:alpha:]]* utf"} {
		c := in(line)
		c.Env = []string{"LC_ALL=C"}
		cases = append(cases, c)
	}
	commandtest.Compare(t, Commands(), cases)
}
