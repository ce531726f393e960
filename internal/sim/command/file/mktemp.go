package file

import (
	"crypto/rand"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

var mktempSpec = &command.Spec{
	Name: "mktemp", Synopsis: "[OPTION]... [TEMPLATE]",
	About: "Create a temporary file or directory, safely, and print its name.",
	Options: []command.Option{
		{Short: 'd', Long: "directory", Help: "create a directory, not a file"},
		{Short: 'u', Long: "dry-run", Help: "do not create anything; merely print a name (unsafe)"},
		{Short: 'q', Long: "quiet", Help: "suppress diagnostics about file/dir-creation failure"},
		{Long: "suffix", Arg: command.Required, Name: "SUFF", Help: "append SUFF to TEMPLATE; SUFF must not contain a slash"},
		{Short: 'p', Long: "tmpdir", Arg: command.Optional, Name: "DIR", Help: "interpret TEMPLATE relative to DIR"},
		{Short: 't', Help: "interpret TEMPLATE as a single file name component, relative to a directory"},
	},
}

func runMktemp(t *kernel.Task) int {
	// Short -p takes the next argument, --tmpdir does not.
	a, status, ok := mktempSpec.ParseArgs(t, joinShort(t.Args[1:], 'p', "dut"))
	if !ok {
		return status
	}
	if len(a.Operands) > 1 {
		return mktempSpec.Usage(t, "too many templates")
	}
	quiet := a.Has("q")
	fail := func(format string, args ...any) int {
		if !quiet {
			t.Errorf(format, args...)
		}
		return 1
	}
	template, useDir := "tmp.XXXXXXXXXX", true
	if len(a.Operands) == 1 {
		template, useDir = a.Operands[0], a.Has("p") || a.Has("t")
	}
	dir, _ := a.Value("p")
	suffix, given := a.Value("suffix")
	if given {
		if !strings.HasSuffix(template, "X") {
			t.Errorf("with --suffix, template %s must end in X", command.Quote(template))
			return 1
		}
	} else {
		i := strings.LastIndexByte(template, 'X')
		suffix = template[i+1:]
		template = template[:i+1]
	}
	if strings.Contains(suffix, "/") {
		t.Errorf("invalid suffix %s, contains directory separator", command.Quote(suffix))
		return 1
	}
	xs := len(template) - len(strings.TrimRight(template, "X"))
	if xs < 3 {
		t.Errorf("too few X's in template %s", command.Quote(template+suffix))
		return 1
	}
	if useDir {
		switch {
		case a.Has("t"):
			if tmp := t.Getenv("TMPDIR"); tmp != "" {
				dir = tmp
			} else if dir == "" {
				dir = "/tmp"
			}
			if strings.Contains(template, "/") {
				t.Errorf("invalid template, %s, contains directory separator", command.Quote(template+suffix))
				return 1
			}
		case dir == "":
			if dir = t.Getenv("TMPDIR"); dir == "" {
				dir = "/tmp"
			}
		}
		if strings.HasPrefix(template, "/") {
			t.Errorf("invalid template, %s; with --tmpdir, it may not be absolute", command.Quote(template+suffix))
			return 1
		}
		template = strings.TrimRight(dir, "/") + "/" + template
	}
	what := "file"
	if a.Has("d") {
		what = "directory"
	}
	stem := template[:len(template)-xs]
	for range 1000 {
		name := stem + random(xs) + suffix
		var err error
		switch {
		case a.Has("u"):
			if _, err = t.View.Lstat(name); err == nil {
				err = linux.EEXIST
			} else if err == linux.ENOENT {
				err = nil
			}
		case a.Has("d"):
			err = t.View.Mkdir(name, 0o700)
		default:
			var d *kernel.Desc
			if d, err = t.Open(name, linux.O_RDWR|linux.O_CREAT|linux.O_EXCL, 0o600); err == nil {
				d.Drop()
			}
		}
		if err == linux.EEXIST {
			continue
		}
		if err != nil {
			return fail("failed to create %s via template %s: %s", what, command.Quote(template+suffix), reason(err))
		}
		say(t, name)
		return 0
	}
	return fail("failed to create %s via template %s: %s", what, command.Quote(template+suffix), reason(linux.EEXIST))
}

// joinShort puts the next argument behind a short option that has an optional
// argument only in its long form. plain are other short options of the tool.
func joinShort(args []string, c byte, plain string) []string {
	out := make([]string, 0, len(args))
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			return append(out, args[i:]...)
		}
		if len(arg) > 1 && arg[0] == '-' && arg[1] != '-' && arg[len(arg)-1] == c &&
			strings.Trim(arg[1:len(arg)-1], plain) == "" && i+1 < len(args) {
			i++
			arg += args[i]
			if args[i] == "" {
				arg = arg[:len(arg)-1] + string(c)
			}
		}
		out = append(out, arg)
	}
	return out
}

// random gives n random letters and digits.
func random(n int) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	for i := range b {
		b[i] = letters[int(b[i])%len(letters)]
	}
	return string(b)
}
