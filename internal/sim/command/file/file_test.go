package file

import (
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
)

func TestToolsDoAsCoreutils(t *testing.T) {
	f := map[string]string{"a": "hello\n", "b": "x", "d/": "", "d/x": "1", "d/e/y": "2", "l": "-> a", "dl": "-> d"}
	var cases []commandtest.Case
	for _, args := range [][]string{
		{"ls"}, {"ls", "-a"}, {"ls", "-F"}, {"ls", "-R"}, {"ls", "d", "a"}, {"ls", "nope"}, {"ls", "-C"}, {"ls", "-m"}, {"ls", "-x"}, {"ls", "-Q"}, {"ls", "-d", "d", "."}, {"ls", "-lG", "--time-style=+", "nope"},
		{"ls", "dl"}, {"ls", "-p"}, {"ls", "--zzz"}, {"ls", "--sort=foo"}, {"ls", "--color=always"}, {"ls", "-S"}, {"ls", "-r"}, {"ls", "-1s", "a"},
		{"cp", "a", "c"}, {"cp", "-v", "a", "b", "d"}, {"cp", "d", "z"}, {"cp", "-r", "d", "z"}, {"cp", "-rv", "d/e", "z"}, {"cp", "a", "a"}, {"cp", "a"}, {"cp"}, {"cp", "nope", "z"}, {"cp", "a", "nope/z"}, {"cp", "a", "b", "c"}, {"cp", "a", "nope/"}, {"cp", "-r", "d", "a"}, {"cp", "a", "-T", "d"}, {"cp", "-t", "nope", "a"}, {"cp", "-n", "-v", "a", "b"}, {"cp", "-bv", "a", "b"}, {"cp", "-l", "a", "c"}, {"cp", "-s", "a", "d/c"}, {"cp", "-sv", "a", "c"}, {"cp", "--parents", "-v", "d/e/y", "d"}, {"cp", "-a", "l", "z"}, {"cp", "a", "a", "d"},
		{"mv", "-v", "a", "c"}, {"mv", "-v", "a", "b", "d"}, {"mv", "d", "d/e"}, {"mv", "a", "a"}, {"mv", "nope", "a"}, {"mv", "a", "d/e/y/z"}, {"mv", "d", "a"}, {"mv", "-T", "a", "d"}, {"mv", "-v", "-n", "a", "b"}, {"mv", "-bv", "a", "b"}, {"mv", "a", "nope/"},
		{"rm", "-v", "a", "b"}, {"rm", "d"}, {"rm", "-rv", "d/e"}, {"rm", "nope"}, {"rm", "-f", "nope"}, {"rm"}, {"rm", "-f"}, {"rm", "-d", "d"}, {"rm", "-r", "."}, {"rm", "-r", "/"}, {"rm", "-i", "a"}, {"rm", "-ri", "d/e"},
		{"mkdir", "-v", "n"}, {"mkdir", "-pv", "n/m/o"}, {"mkdir", "d"}, {"mkdir", "n/m"}, {"mkdir"}, {"mkdir", "-p", "a/b"}, {"mkdir", "-m", "zz", "a"}, {"mkdir", "-p", "a"},
		{"rmdir", "d"}, {"rmdir", "-v", "a"}, {"rmdir", "nope"}, {"ln", "a", "z"}, {"ln", "-sv", "a", "z"}, {"ln", "-s", "a", "b"}, {"ln", "-sf", "a", "b"}, {"ln", "nope", "z"}, {"ln", "d", "z"}, {"ln", "-sfv", "a", "d"}, {"ln", "-sr", "d/x", "d/e/k"}, {"ln", "a", "b"}, {"ln", "-f", "a", "a"}, {"ln"}, {"ln", "-T", "a"}, {"ln", "-s", "a", "b", "c"}, {"ln", "-s", "", "q"},
		{"chmod", "755", "a"}, {"chmod", "-v", "u+x", "a"}, {"chmod", "-Rv", "go-r", "d/e"}, {"chmod", "zz", "a"}, {"chmod", "755"}, {"chmod"}, {"chmod", "755", "nope"}, {"chmod", "-v", "a=rX", "d", "a"}, {"chmod", "-c", "644", "a"}, {"chmod", "-x", "a"}, {"chmod", "-w", "a"}, {"chmod", "-v", "u=g,o+w", "a"},
		{"touch", "n"}, {"touch", "nope/x"}, {"touch", "-c", "nope"}, {"touch"}, {"touch", "-d", "zzz", "a"}, {"touch", "-t", "123", "a"}, {"touch", "-t", "202001011200", "a"},
		{"stat", "-c", "%n %s %F %a %A %h", "a", "d", "l"}, {"stat", "-c", "%N", "l"}, {"stat", "nope"}, {"stat"}, {"stat", "--printf", "%5s|%-5a|%05a\\n", "a"}, {"stat", "-c", "%q", "a"},
		{"readlink", "l"}, {"readlink", "a"}, {"readlink", "-v", "a"}, {"readlink", "-n", "l"}, {"readlink", "-v", "nope"}, {"realpath", "--relative-to=.", "d/e", "l", "nope", "nope/x"}, {"realpath", "--relative-to=d/e", "a", "d"}, {"realpath", "-s", "--relative-to=.", "nope/x/y"}, {"realpath", "-s", "--relative-to=.", "nope/./x/", "nope/"}, {"realpath", "-s", "--relative-to=.", "nope/."}, {"realpath", "-s", "--relative-to=.", "nope/../a"}, {"realpath", "-s", "--relative-to=.", "a/x"}, {"realpath", "-s", "--relative-to=.", "a/x/y"}, {"realpath", "-s", "--relative-to=.", "a/../d"}, {"realpath", "-se", "--relative-to=.", "nope/x"}, {"realpath", "-s", "--relative-to=.", "l/x"}, {"realpath"}, {"basename", "a/b.c", ".c"}, {"basename", "/"}, {"basename", "-a", "x/y", "z/"}, {"basename"}, {"basename", "a", "b", "c"}, {"dirname", "a/b", "/a", "a", "//", "a//b//"}, {"dirname"},
		{"mktemp", "-u", "x"}, {"mktemp", "a.XX"}, {"mktemp", "nope/x.XXX"}, {"mktemp", "--suffix=a/b", "XXX"}, {"truncate", "a"}, {"truncate", "-s", "zz", "a"}, {"truncate", "-s", "3", "a"}, {"unlink", "a"}, {"unlink", "d"}, {"unlink"}, {"link", "a", "z"}, {"link", "a"}, {"link", "nope", "x"}, {"install", "-v", "a", "z"}, {"install", "-dv", "p/q"}, {"install", "-Dv", "a", "p/q/r"}, {"install", "a", "b", "c"}, {"install", "d", "z"}, {"pathchk", "-p", "a b"}, {"pathchk", ""}, {"mkfifo", "p"}, {"mkfifo", "a"}, {"mknod", "p", "p"}, {"mknod", "p"},
	} {
		cases = append(cases, commandtest.Case{Args: args, Files: f, Stderr: true, Look: []string{"a", "b", "c", "d/x", "z", "d/a", "a~", "b~", "d/e/d/x"}})
	}
	commandtest.Compare(t, Commands(), cases)
}
