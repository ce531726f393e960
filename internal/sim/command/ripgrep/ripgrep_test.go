package ripgrep

import (
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
)

const sample = "foo one\nbar\nfoo two foo\n  baz\nqux\nfoo"

// in makes a case of a command line that has no need for quotes, with a tree.
func in(line string, more ...string) commandtest.Case {
	return commandtest.Case{
		Args: append(append([]string{"rg", "--sort", "path"}, strings.Fields(line)...), more...),
		Files: map[string]string{
			".git/HEAD": "x", ".gitignore": "build/\n*.log\n!keep.log\n/top\nsub/deep/*\n!sub/deep/kept\n", "a.txt": sample, "src/b.rs": sample, "src/sub/c.py": sample, "build/x": sample, "e.log": sample, "keep.log": sample,
			".hid": sample, ".hdir/x": sample, "bin": "foo\x00x\nfoo\n", "late": strings.Repeat("foo line\n", 10000) + "\x00foo\n", "none": "nothing\n", "top": sample, "src/top": sample, "sub/deep/gone": sample, "sub/deep/kept": sample,
			"src/.ignore": "c2\n!x.log\n", "src/c2": sample, "src/x.log": sample, "src/.rgignore": "d2\n", "src/d2": sample, "other/.gitignore": "*\n!keep\n", "other/keep": sample, "other/lost": sample, "link": "-> a.txt", "dlink": "-> src",
			"utf": "héllo wörld\nÀÉ foo\n", "latin": "foo caf\xe9\n", "crlf": "foo\r\nbar\r\n", "empty": "", "long": strings.Repeat("x", 300) + " foo\n", "A.MD": "foo\n", "Makefile": "foo:\n", "pat": "foo\nbaz\n", "extra": "*.txt\n",
		},
	}
}

func TestRipgrepFindsWhatRipgrepDoes(t *testing.T) {
	var cases []commandtest.Case
	for _, line := range []string{
		"foo .", "foo ./", "foo a.txt", "-n foo src", "-c foo .", "--count-matches foo .", "-l foo .", "--files-without-match foo .", "-o f.o src", "-A1 two src", "-B1 two src", "-C1 two src", "-C1 --heading -n foo src", "-A1 foo a.txt", "-C1 -n foo a.txt src", "--vimgrep foo src", "--column foo a.txt", "-r X$0 foo src", "-or X foo src", "-b two .", "-bo two a.txt", "-v foo a.txt", "-vn foo a.txt src", "-vc foo .",
		"-U one\\nbar a.txt src", "-Un two.foo\\n\\s*b a.txt", "-Uc foo\\n a.txt", "-Uo o\\nb a.txt", "-U --multiline-dotall one.*two a.txt", "-U foo$ a.txt", "-Uv one\\nbar a.txt", "--passthru two a.txt", "--passthru -n two a.txt", "--color always -n foo a.txt", "--color always --heading -n two src", "--color always -c foo src", "--color always -l foo src", "--color always -o foo a.txt", "--color always --column two a.txt", "--color always -A1 two a.txt src", "-0l foo .", "-0 foo src", "-0c foo src",
		"--files", "--files .", "--files src", "--files --hidden", "--files -u", "--files -uu", "-uuu -l foo .", "foo bin", "-a foo bin", "-c foo bin", "-l foo bin", "-a foo latin", "foo latin", "-uuu foo .", "--binary foo bin late", "foo build", "foo build/x", "foo e.log", "foo top", "foo sub", "-t py foo .", "-T py -l foo .", "-tpy -trust -l foo .", "-g *.rs -l foo .", "-g !src -l foo .", "-g !*.txt -l foo .", "-g *.{rs,py} -l foo .", "-g src/** -l foo .", "-g /src -l foo .", "-g *.log -l foo .", "-g .hid -l foo .", "--iglob *.md -l foo .", "-g *.md -l foo .", "-g *.rs -g !b* -l foo .", "-g src/sub -l foo .", "-g c.py -l foo .", "-g sub/c.py -l foo .", "-g **/c.py -l foo .",
		"-m1 foo .", "-m1 -A1 foo a.txt", "-m2 -c foo .", "-m0 foo .", "-q foo .", "-q zzz .", "zzz .", "foo nosuch", "foo nosuch a.txt", "-q foo nosuch a.txt", "--no-messages foo nosuch", "-M 5 foo a.txt", "-M 20 foo long a.txt", "-M 20 -r X foo long", "--trim baz .", "--trim -n baz src", "--max-depth 1 -l foo .", "--max-depth 2 -l foo .", "--max-depth 0 -l foo .", "-x foo a.txt", "-x foo .", "-w fo .", "-w foo a.txt", "-F two.foo .", "-F", "-e foo -e bar -c .", "-e foo -e bar a.txt", "-f pat a.txt", "-f pat -e two a.txt", "-f nosuch a.txt", "-S Foo -c .", "-S foo -c A.MD", "-i FOO -c .", "-s FOO .", "-i -s FOO .", "-P (?<=f)o -c .", "-P (o)\\1 -o a.txt", "fo(?=o) .", "(a)\\1 .", "( a.txt", "[ a.txt", "* a.txt", "-H foo a.txt", "-I foo src", "-c zzz a.txt", "-c zzz a.txt src", "-c --include-zero zzz .",
		"-on o+ a.txt", "-on o* a.txt", "-L -l foo .", "-l foo link", "-l foo dlink", "-C1 -b two a.txt", "--context-separator XX -A0 foo a.txt", "--context-separator XX -A1 o.e|qux a.txt", "--no-context-separator -A1 one|qux a.txt", "-A1 one|qux a.txt src", "-N --heading two .", "--no-heading two .", "--heading -c two .", "-p two src", "--null-data foo a.txt", "--null-data -c foo bin", "--type-add zz:*.txt -tzz -l foo .", "--type-add zz:include:py,rust -tzz -l foo .", "--type-clear py -tpy -l foo .", "-tnope foo", "--type-add bad foo .", "--max-filesize 10 -l foo .", "--max-filesize 1K -l foo .", "--max-filesize x foo .", "--no-ignore -l foo .", "--no-ignore-vcs -l foo .", "--no-ignore-dot -l foo .", "--no-ignore-parent -l foo src", "--ignore-file extra -l foo .", "--ignore-file nosuch -l foo .", "--hidden -l foo .", "--no-hidden -l foo .",
		"-r $1x f(o) a.txt", "-r ${n}x f(?P<n>o) a.txt", "-r $nx f(?P<n>o) a.txt", "-r $$ foo a.txt", "-r <$0> o+ a.txt", "-r $2 foo a.txt", "-n -r X foo src", "--column -r XX foo a.txt", "-r X -A1 two a.txt", "-r X -v two a.txt", "-cr X foo a.txt", "h.llo utf", "-o h.l utf", "-i àé utf", "-o w.r utf", "\\w+ utf", "-o \\w+ utf", "-o \\d+ long", "^$ .", "-c ^ a.txt empty", "-c $ a.txt", "-o ^f a.txt", "-c \\bfoo\\b .", "\\Afoo a.txt", "foo\\z a.txt", "(?i)FOO a.txt", "(?x)f\\ o\\ o a.txt", "f{1}o{2} a.txt", "[[:alpha:]]+ -o a.txt", "\\p{L}+ -o utf", "\\x66oo a.txt", "a|b|c -o a.txt", "foo\\n a.txt", "--crlf foo$ crlf", "foo$ crlf", "--foo", "--sort nope foo", "--stop-on-nonmatch foo a.txt", "-uu -c foo .hid .hdir", "--no-require-git -l foo .", "foo other", "-l foo other sub", "foo a.txt a.txt", "foo a.txt -c --sortr path",
	} {
		c := in(line)
		c.Env = []string{"TERM=xterm"}
		switch {
		case strings.HasPrefix(line, "--stop"):
			c.Why = "a later version has it"
		case line == "foo sub", line == "-l foo other sub":
			c.Why = "version 14 mended what is above the directory that is searched"
		}
		cases = append(cases, c)
	}
	cases = append(cases, in("-r", "", "foo", "a.txt"), in("", "", "a.txt"), in("-e", "", "a.txt"), in("-F", "o t", "."), in("-g", "", "foo", "."), in("-e", "-x", "."), in("--", "-x", "."))
	stdin := func(line string) {
		c := in(line)
		c.Stdin = sample
		cases = append(cases, c)
	}
	for _, line := range []string{"foo", "-c foo", "-n foo", "-H foo", "-l foo", "foo -", "foo - a.txt", "-A1 two", "zzz"} {
		stdin(line)
	}
	commandtest.Compare(t, Commands(), cases)
}
