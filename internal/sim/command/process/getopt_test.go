package process

import (
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
)

func TestOptionsOfScriptsAreSplitAsByUtilLinuxs(t *testing.T) {
	var list []commandtest.Case
	for line := range strings.SplitSeq(`getopt a b c
getopt ab: -a -b x y -- z
getopt a -- -a b c
getopt -o a -- -a b c
getopt -o a: -- -a b c
getopt -o a -- -b
getopt -o a: -- -a
getopt -o ab -- -ab x -a
getopt -o +ab -- -a x -b
getopt -o -ab -- -a x -b
getopt -o a -l long -- -a --long a
getopt -o a -l one,two -- -a --one --two
getopt -o a -l one: -- -a --one arg
getopt -o a -l one:: -- -a --one arg
getopt -o a -l one:: -- -a --one=arg
getopt -o a -l one -- --one=x
getopt -o a -l one: -- --one
getopt -o a -l one,only -- --on
getopt -o a -l one,only -- --onl
getopt -o a -a -l long -- -long --long a
getopt -o a -l long -- --nope
getopt -u -o a: -- -a b c
getopt -o a -- it's "x y" $z
getopt -s csh -o a -- a!b it's
getopt -s zsh -o a
getopt -T
getopt -n name -o a -- -z
getopt -q -o a -- -z
getopt -Q -o a -- -a
getopt
getopt -o
getopt -o a:: -- -ax -a y
hostid
stdbuf -oL echo x
stdbuf -o0 cat
stdbuf -oZ cat
stdbuf -iL cat
stdbuf echo
stdbuf -o0
stdbuf -oL nope`, "\n") {
		if strings.HasPrefix(line, "hostid") {
			continue // it tells of the host
		}
		list = append(list, commandtest.Case{Args: strings.Fields(line), Stdin: "in\n", Stderr: !strings.Contains(line, "stdbuf") && line != "getopt -o"})
	}
	commandtest.Compare(t, programs(), list)
}

func FuzzGetopt(f *testing.F) {
	f.Add("ab:c::", "one,two:,three::", "-abc --two=x y -- z")
	f.Add("+a", "on,one", "--on -b")
	f.Fuzz(func(t *testing.T, short, long, args string) {
		commandtest.Fuzz(t, Commands(), "", append([]string{"getopt", "-o", short, "-l", long, "--"}, strings.Fields(args)...)...)
	})
}
