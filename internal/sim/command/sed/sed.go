// Package sed is the stream editor of GNU: its commands, addresses and options,
// its handling of a missing last newline, and its error messages with their
// positions.
package sed

import (
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// Commands lists the tools of this package.
func Commands() []command.Command {
	return []command.Command{{Name: "sed", Run: run}}
}

// Statuses besides 0.
const (
	wrong   = 1 // the script or the arguments
	missing = 2 // a file to read
	trouble = 4 // while running
)

var spec = command.Spec{
	Name: "sed", Synopsis: "[OPTION]... {script-only-if-no-other-script} [input-file]...", Exit: wrong, NoTry: true,
	About: "Edit what is read from input-files, or standard input, by a script.",
	Options: []command.Option{
		{Short: 'n', Long: "quiet", Help: "do not print the pattern space by itself"},
		{Long: "silent"},
		{Long: "debug", Help: "show the script and how it runs"},
		{Short: 'e', Long: "expression", Arg: command.Required, Name: "script", Help: "add script to the commands"},
		{Short: 'f', Long: "file", Arg: command.Required, Name: "script-file", Help: "add what is in script-file to the commands"},
		{Long: "follow-symlinks", Help: "edit in place what symbolic links lead to"},
		{Short: 'i', Long: "in-place", Arg: command.Optional, Name: "SUFFIX", Help: "edit files in place, and keep the old ones if there is a SUFFIX"},
		{Short: 'l', Long: "line-length", Arg: command.Required, Name: "N", Help: "where the command l breaks lines"},
		{Short: 'b', Long: "binary", Help: "(ignored)"},
		{Long: "posix", Help: "without GNU's extensions"},
		{Short: 'E', Long: "regexp-extended", Help: "expressions are extended ones"},
		{Short: 'r', Help: "the same"},
		{Short: 's', Long: "separate", Help: "files are separate, not one stream"},
		{Long: "sandbox", Help: "refuse the commands e, r and w"},
		{Short: 'u', Long: "unbuffered", Help: "read no more than is needed and write at once"},
		{Short: 'z', Long: "null-data", Help: "lines end with a zero byte"},
		{Long: "zero-terminated"},
		{Long: "version", Help: "tell the version and exit"},
	},
}

type options struct {
	quiet, posix, extended, separate, sandbox, unbuffered, debug bool

	strict          bool // N prints nothing where there is no next line
	inPlace, follow bool
	suffix          string
	width           int // where l breaks lines
	delim           byte
}

func run(t *kernel.Task) int {
	a, status, ok := spec.Parse(t)
	if !ok {
		if status != 0 {
			usage(t)
		}
		return status
	}
	o := &options{width: 70, delim: '\n'}
	if n := number(t.Getenv("COLS")); n > 1 {
		o.width = n - 1
	}
	for _, e := range t.Env {
		if strings.HasPrefix(e, "POSIXLY_CORRECT=") {
			o.strict = true
		}
	}
	var pieces []command.Flag
	for _, f := range a.Flags {
		switch f.Key {
		case "n", "silent":
			o.quiet = true
		case "debug":
			o.debug = true
		case "e", "f":
			pieces = append(pieces, f)
		case "follow-symlinks":
			o.follow = true
		case "i":
			o.inPlace, o.separate, o.suffix = true, true, f.Value
		case "l":
			o.width = number(f.Value)
		case "posix":
			o.posix, o.strict = true, true
		case "E", "r":
			o.extended = true
		case "s":
			o.separate = true
		case "sandbox":
			o.sandbox = true
		case "u":
			o.unbuffered = true
		case "z", "zero-terminated":
			o.delim = 0
		case "version":
			// Scripts look for "GNU sed" and the number.
			_, _ = t.Out().WriteString("sed (Paddock, as GNU sed) 4.9\n")
			return 0
		}
	}
	files := a.Operands
	if len(pieces) == 0 {
		if len(files) == 0 {
			usage(t)
			return wrong
		}
		pieces, files = []command.Flag{{Key: "e", Value: files[0]}}, files[1:]
	}
	return edit(t, o, pieces, files)
}

func edit(t *kernel.Task, o *options, pieces []command.Flag, files []string) int {
	m := newMachine(t, o)
	defer m.close()
	p := &parser{t: t, o: o, m: m}
	for _, f := range pieces {
		if f.Key == "e" {
			p.expression(f.Value)
		} else {
			p.file(f.Value)
		}
	}
	m.program = p.finish()
	m.expressions, m.scriptFile, m.scriptLine = p.expr, p.name, p.line
	if o.inPlace && len(files) == 0 {
		m.die(trouble, "no input files")
	}
	return m.run(files)
}

func usage(t *kernel.Task) {
	_, _ = t.Write(2, []byte("Usage: "+t.Name()+" "+spec.Synopsis+"\nTry '"+t.Name()+" --help' for more information.\n"))
}

// number reads the digits that s begins with, as atoi does.
func number(s string) int {
	s = strings.TrimLeft(s, " \t\n\v\f\r")
	end := 0
	for end < len(s) && digit(int(s[end])) {
		end++
	}
	n, err := strconv.Atoi(s[:end])
	if err != nil {
		return 0
	}
	return n
}

// reason gives the words for an error.
func reason(err error) string { return vfs.Message(err) }
