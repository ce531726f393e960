// Package command is the library of the simulated computer's tools: the
// description of a tool, the parser of its arguments (as getopt_long of GNU does
// it, with the same messages), buffered input and output, walks through
// directories, users, modes, sizes and numbers. The tools themselves are in the
// subpackages, by kind.
package command

import (
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

// A Command is a tool: a name and the function that runs it.
type Command struct {
	Name    string
	Aliases []string // other names of the same tool; Run looks at t.Name()
	Dir     string   // where its file stands; empty is /usr/bin
	Run     kernel.Program
}

// A Spec describes a tool's arguments.
type Spec struct {
	Name     string
	Synopsis string // after the name: "[OPTION]... [FILE]..."
	About    string // one or a few sentences, for --help
	Options  []Option
	Exit     int  // status of a usage error; 0 means 1
	Ordered  bool // options end at the first operand
	NoHelp   bool // --help and --version are not options of this tool
	NoTry    bool // a complaint is not followed by "Try 'NAME --help' for more information."
}

// An Option is one that a tool takes.
type Option struct {
	Short byte   // 0 if it has none
	Long  string // without dashes; empty if it has none
	Arg   Arg
	Name  string // of its argument, for --help
	Help  string
}

// Arg says whether an option has an argument.
type Arg uint8

// Whether an option has an argument.
const (
	None Arg = iota
	Required
	Optional // only as -xVALUE or --long=VALUE
)

// A Flag is an option that was given. Key is its Short as a string, or its
// Long where it has no Short.
type Flag struct {
	Key   string
	Value string
	Given bool   // it came with a value
	Spelt string // as it was written, for messages: "-x" or "--long"
}

// Args are the parsed arguments of a tool.
type Args struct {
	Flags    []Flag
	Operands []string
}

// Has reports whether an option was given.
func (a *Args) Has(key string) bool {
	for i := range a.Flags {
		if a.Flags[i].Key == key {
			return true
		}
	}
	return false
}

// Value returns an option's last value.
func (a *Args) Value(key string) (string, bool) {
	for i := len(a.Flags) - 1; i >= 0; i-- {
		if a.Flags[i].Key == key {
			return a.Flags[i].Value, true
		}
	}
	return "", false
}

func (o *Option) key() string {
	if o.Short != 0 {
		return string(rune(o.Short))
	}
	return o.Long
}
