package find

import (
	"os/exec"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
	"github.com/paddock-sandbox/paddock/internal/sim/command/file"
	"github.com/paddock-sandbox/paddock/internal/sim/command/text"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

// programs are the tools under test, and some that they start.
func programs() []command.Command {
	return slices.Concat(Commands(), file.Commands(), text.Commands(), []command.Command{
		{Name: "true", Run: func(*kernel.Task) int { return 0 }},
		{Name: "false", Run: func(*kernel.Task) int { return 1 }},
		{Name: "echo", Run: func(t *kernel.Task) int { say(t, strings.Join(t.Args[1:], " ")); return 0 }},
	})
}

// sorted compares lines in any order: ours come by name, those of the real
// tool as the disk has them.
func sorted(t *testing.T, files map[string]string, all [][]string) {
	t.Helper()
	lines := func(s string) string {
		l := strings.Split(s, "\n")
		sort.Strings(l)
		return strings.Join(l, "\n")
	}
	for _, args := range all {
		c := commandtest.Case{Args: args, Files: files, Stdin: "y\nn\n"}
		t.Run(strings.ReplaceAll(strings.Join(args, " "), "/", "|"), func(t *testing.T) {
			if _, err := exec.LookPath(args[0]); err != nil {
				t.Skip(err)
			}
			got, want := commandtest.Run(t, programs(), c), commandtest.Real(t, c)
			if lines(got.Stdout) != lines(want.Stdout) || got.Status != want.Status || lines(got.Stderr) != lines(want.Stderr) {
				t.Errorf("got  %d\n%s\n%s\nwant %d\n%s\n%s", got.Status, got.Stdout, got.Stderr, want.Status, want.Stdout, want.Stderr)
			}
		})
	}
}

func split(lines string) [][]string {
	var all [][]string
	for line := range strings.SplitSeq(strings.TrimSpace(lines), "\n") {
		args := strings.Fields(line)
		for i, a := range args {
			args[i] = strings.NewReplacer("␣", " ", "⏎", "\n").Replace(strings.Trim(a, "'"))
		}
		all = append(all, args)
	}
	return all
}

func TestFilesAreFoundAsByGNUs(t *testing.T) {
	files := map[string]string{
		"a.txt": "hello\n", "b.c": "", "d/": "", "d/x.txt": "12345678901234567890", "d/e/y": strings.Repeat("z", 2000), "d/e/deep/z.TXT": "q", "l": "-> a.txt", "dl": "-> d", "broken": "-> nowhere", ".hidden": "h", "sp ace": "s", "empty/": "",
	}
	sorted(t, files, split(`
find
find .
find d
find d a.txt
find -name *.txt
find . -iname *.txt
find . -type f
find . -type d
find . -type l
find . -type f,l
find . -xtype f
find . -xtype l
find -L . -type f
find -L . -type l
find -L dl
find -H dl
find dl
find dl/
find . -maxdepth 1
find . -maxdepth 0
find . -mindepth 2
find . -mindepth 1 -maxdepth 2 -type d
find . -empty
find . -empty -type d
find . -size +1
find . -size 1
find . -size -2k
find . -size +1000c
find . -size 0
find . -size 20c
find . -path ./d/*
find . -path */e/*
find . -ipath *DEEP*
find . -regex .*txt
find . -regex .*\.\(txt\|c\)
find . -regextype posix-extended -regex .*\.(txt|c)
find . -iregex .*TXT
find . -regextype egrep -regex ./[ab].+
find . -not -name *.txt
find . ! -type d
find . -name *.txt -o -name *.c
find . ( -name *.txt -o -name *.c ) -type f
find . -name d -prune -o -print
find . -name e -prune -o -type f -print
find . -path ./d -prune -o -name *.c -print
find . -name a.txt -print -o -name b.c -print
find . -depth
find d -depth -name y
find . -name a.txt -printf %f␣%p␣%s␣%d␣%h␣%P␣%y␣%Y␣%m␣%M␣%n␣%l\n
find . -printf %p|%f|%h|%H|%P|%d|%y|%Y|%l\n
find d/ -printf %p|%f|%h|%H|%P\n
find . -name a.txt -printf '%10s|%-10s|%010m|%5d|%.3p\n'
find . -name a.txt -printf 'a\tb\\n\101\0%%\n'
find . -name a.txt -printf x\cy
find . -name a.txt -printf %q
find . -name a.txt -printf %
find . -name a.txt -printf \
find . -name a.txt -print0
find . -name *.txt -exec echo {} ;
find . -name *.txt -exec echo a{}b {} ;
find . -name a.txt -exec false ; -print
find . -name a.txt -exec true ; -print
find d -name x.txt -exec echo {} +
find d -name x.txt -execdir echo {} ;
find d -name x.txt -execdir echo {} +
find . -exec false {} +
find . -exec nope {} +
find a.txt -exec nope {} ;
find a.txt -ok echo {} ;
find d -name y -delete
find d -delete
find empty -delete -print
find . -name d -delete
find . -perm 644 -type f
find . -perm -u+w -type f
find . -perm /111
find . -perm -444 -name a*
find . -newer a.txt -name zzz
find . -samefile a.txt
find . -links +1 -type f
find . -links 2 -name empty
find . -lname a*
find . -lname *where
find . -true -name b.c
find . -false
find . -name a.txt , -name b.c
find . -name a.txt -a -name b.c
find . -name a.txt -quit
find . -mtime 0 -name a.txt
find . -mtime +0 -name a.txt
find . -mtime -1 -name a.txt
find . -mmin -5 -name a.txt
find . -mmin +5
find . -newermt 2020-01-01 -name b.c
find . -newermt tomorrow
find . -readable -name a.txt
find . -executable -type f
find . -wholename ./a.txt
find . -name a.txt -fprint /dev/stdout
find nope
find nope a.txt
find . b
find . -foo
find . -name
find . -type x
find . -type
find . -type f,,d
find . -type fd
find . -size x
find . -perm zz
find . -mtime x
find . -maxdepth x
find . -maxdepth -1
find . (
find . ( -name a
find . -name a )
find . !
find . -name a -o
find . -o
find . -and
find . -not
find . ( )
find . -exec
find . -exec ls
find . -exec ls {} +x
find . -newer nope
find . -user nope
find . -group nope
find . -regextype foo
find . -printf
find . -newerxy a
find . -newermt zzz
find . -samefile nope
find . -exec echo {} {} +
find . -links x
find . -delete -prune
find . -fprint
find -maxdepth 1 -name a.txt
find . -name sp*
find . -nogroup -name zzz
find . -files0-from x
find -P . -name b.c
find -- . -name b.c
find . -name [ab].*
find . -name ?.c
find . -name .*
find . -name *
find . -name \*
find ./ -name b.c
find .// -name b.c
find d//e -name y
find . -type d -name d -printf %h/%f/%p
`))
}

func TestArgumentsAreBuiltAsByGNUs(t *testing.T) {
	type run struct {
		stdin string
		args  string
	}
	var cases []commandtest.Case
	for _, r := range []run{
		{"a b c\n", "xargs"}, {"a b\nc d\n", "xargs -n 1"}, {"a b\nc d\n", "xargs -n 3"}, {"a b\nc d\n", "xargs -L 1"}, {"a b \nc d\ne\n", "xargs -L 1"}, {"a b\nc d\n", "xargs -I {} echo x{}y {}"}, {" a b \n\nc\n", "xargs -I% echo [%]"},
		{"a 'b c' \"d e\" f\\ g\n", "xargs -n 1"}, {"it's\n", "xargs"}, {"a \"b\n", "xargs"}, {"a\x00b c\x00", "xargs -0 -n 1"}, {"a,b,c", "xargs -d , -n 1"}, {"a\nb c\n", "xargs -d ⏎ -n 1"}, {"a:b", "xargs -d \\x3a -n 1"}, {"a", "xargs -d ab"}, {"a", "xargs -d \\q"},
		{"", "xargs"}, {"", "xargs -r"}, {"", "xargs echo x"}, {"\n\n", "xargs -r echo x"}, {"a b c END d\n", "xargs -E END"}, {"a\nEND\nb\n", "xargs -E END -n 1"}, {"a b", "xargs -t"}, {"a b", "xargs -n 1 -t"}, {"a b c", "xargs -n 0"}, {"a", "xargs -n x"},
		{"a b", "xargs false"}, {"a b", "xargs -n 1 false"}, {"a", "xargs nope"}, {"a b", "xargs -n 1 nope"}, {"a b c d e", "xargs -P 3 -n 1 true"}, {"a b c d e f g h", "xargs -s 20"}, {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "xargs -s 20"}, {"a b c", "xargs -s 5"}, {"a b c", "xargs -n 2 -I {} echo {}"}, {"a b\nc", "xargs -i echo {}"}, {"a b\nc", "xargs -l echo"}, {"x", "xargs cat"}, {"f", "xargs cat"},
		{"in", "xargs -a list"}, {"in", "xargs -a list cat -"}, {"in", "xargs -a nope"}, {"a", "xargs --zzz"}, {"a\\\nb", "xargs -n 1"}, {"a\\\nb\nc", "xargs -I{} echo {}"}, {"'a\nb'", "xargs"}, {"a''b ''", "xargs -n1 echo -"}, {"''\n", "xargs"}, {"a b c\n", "xargs -x -n 2 -s 7"}, {"a\n\nb\n", "xargs -L 2"}, {"a b c\n", "xargs -n2 -L1"}, {"%s", "xargs -I X echo X X"},
	} {
		args := strings.Fields(r.args)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "⏎", "\n")
		}
		cases = append(cases, commandtest.Case{Args: args, Stdin: r.stdin, Stderr: true, Files: map[string]string{"f": "FILE\n", "list": "f f\n"}})
	}
	commandtest.Compare(t, programs(), cases)
}
