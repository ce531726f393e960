package javascript

import (
	"fmt"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

// An invocation is what the command line asks for.
type invocation struct {
	code    string // of -e and -p
	inline  bool   // there is code
	print   bool
	check   bool
	module  bool     // the code is a module
	require []string // loaded first
	file    string   // "-" is standard input
	args    []string
}

// parse reads the command line. done says that all is done, with status.
func parse(t *kernel.Task) (in invocation, status int, done bool) {
	args := t.Args[1:]
	node := t.Name() == "node"
	for len(args) > 0 {
		arg := args[0]
		if arg == "-" || !strings.HasPrefix(arg, "-") {
			break
		}
		args = args[1:]
		if arg == "--" {
			break
		}
		name, value, given := strings.Cut(arg, "=")
		take := func() bool {
			if given {
				return true
			}
			if len(args) == 0 {
				t.Errorf("%s requires an argument", arg)
				return false
			}
			value, args = args[0], args[1:]
			return true
		}
		switch name {
		case "-v", "--version":
			fmt.Fprintln(t.Out(), Version)
			return in, 0, true
		case "-h", "--help":
			help(t)
			return in, 0, true
		case "-e", "--eval", "-p", "--print", "-pe", "-c", "--check":
			if name == "--check" || name == "-c" && node {
				in.check = true
				continue
			}
			in.print = in.print || name == "-p" || name == "--print" || name == "-pe"
			if !take() {
				return in, 9, true
			}
			in.code, in.inline = value, true
		case "-m", "--module":
			in.module = true
		case "-r", "--require", "--import":
			if !take() {
				return in, 9, true
			}
			in.require = append(in.require, value)
		case "--input-type":
			if !take() {
				return in, 9, true
			}
			in.module = value == "module"
		case "-i", "--interactive":
			t.Errorf("the interactive mode is not supported in this sandbox")
			return in, 9, true
		case "--trace-uncaught", "--no-warnings", "--enable-source-maps", "--max-old-space-size", "--stack-size", "--trace-warnings",
			"--unhandled-rejections", "--preserve-symlinks", "--disable-warning", "--no-deprecation", "--expose-gc", "--abort-on-uncaught-exception":
		default:
			if !strings.HasPrefix(name, "--experimental-") && !strings.HasPrefix(name, "--harmony") && !strings.HasPrefix(name, "--no-experimental-") {
				t.Errorf("bad option: %s", arg)
				return in, 9, true
			}
		}
	}
	if !in.inline {
		in.file = "-"
		if len(args) > 0 {
			in.file, args = args[0], args[1:]
		}
	}
	in.args = args
	return in, 0, false
}

func help(t *kernel.Task) {
	fmt.Fprintf(t.Out(), `Usage: %s [options] [ script.js ] [arguments]
       %s [options] -e code [arguments]
Run JavaScript, with files, standard streams and the computer's programs by node's library.

  -e, --eval=CODE            run CODE
  -p, --print=CODE           run CODE and print its result
  -r, --require=MODULE       load MODULE first
      --input-type=module    CODE, or standard input, is an ES module
      --check                only check the syntax
  -v, --version              print the version of node whose library this follows
  -h, --help                 print this help
`, t.Name(), t.Name())
}
