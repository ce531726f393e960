package file

import (
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// say writes a line to standard output.
func say(t *kernel.Task, parts ...string) {
	w := t.Out()
	for _, p := range parts {
		_, _ = w.WriteString(p) // the end of the program tells of an error
	}
	_ = w.WriteByte('\n')
}

func reason(err error) string { return vfs.Message(err) }

var mkdirSpec = command.Spec{
	Name: "mkdir", Synopsis: "[OPTION]... DIRECTORY...",
	About: "Create the DIRECTORY(ies), if they do not already exist.",
	Options: []command.Option{
		{Short: 'm', Long: "mode", Arg: command.Required, Name: "MODE", Help: "set file mode (as in chmod), not a=rwx - umask"},
		{Short: 'p', Long: "parents", Help: "no error if existing, make parent directories as needed"},
		{Short: 'v', Long: "verbose", Help: "print a message for each created directory"},
		{Short: 'Z', Help: "(ignored)"},
		{Long: "context", Arg: command.Optional, Help: "(ignored)"},
	},
}

func runMkdir(t *kernel.Task) int {
	a, status, ok := mkdirSpec.Parse(t)
	if !ok {
		return status
	}
	if len(a.Operands) == 0 {
		return mkdirSpec.Usage(t, "missing operand")
	}
	m := &maker{t: t, parents: a.Has("p"), verbose: a.Has("v")}
	if s, given := a.Value("m"); given {
		c, ok := command.ParseMode(s)
		if !ok {
			t.Errorf("invalid mode %s", command.Quote(s))
			return 1
		}
		m.bits, _ = c.Apply(0o777, true, t.View.Umask)
		m.set = true
	}
	for _, name := range a.Operands {
		if !m.dir(name) {
			status = 1
		}
	}
	return status
}

// A maker makes directories as mkdir does.
type maker struct {
	t                *kernel.Task
	parents, verbose bool
	set              bool   // bits are those of the last directory
	word             string // what -v says; empty is "created"
	bits             uint32
}

func (m *maker) created(name string) {
	if m.verbose {
		word := m.word
		if word == "" {
			word = "created"
		}
		say(m.t, m.t.Name(), ": ", word, " directory ", command.QuoteAlways(name))
	}
}

func (m *maker) dir(name string) bool {
	t := m.t
	if m.parents && !m.above(name) {
		return false
	}
	err := t.View.Mkdir(name, 0o777)
	if err != nil {
		if m.parents && (err == linux.EEXIST || err == linux.EROFS || err == linux.EACCES || err == linux.EPERM || err == linux.EISDIR) {
			if i, serr := t.View.Stat(name); serr == nil && i.IsDir() {
				return true
			}
		}
		t.Errorf("cannot create directory %s: %s", command.Quote(name), reason(err))
		return false
	}
	m.created(name)
	if m.set {
		if err := t.View.Chmod(name, m.bits); err != nil {
			t.Errorf("cannot change permissions of %s: %s", command.Quote(name), reason(err))
			return false
		}
	}
	return true
}

// above makes what leads to a directory.
func (m *maker) above(name string) bool {
	t := m.t
	for i := 1; i < len(name); i++ {
		if name[i] != '/' || name[i-1] == '/' || strings.Trim(name[i:], "/") == "" {
			continue
		}
		part := name[:i]
		old := t.View.Umask
		t.View.Umask &^= 0o300
		err := t.View.Mkdir(part, 0o777)
		t.View.Umask = old
		if err == nil {
			m.created(part)
			continue
		}
		if s, serr := t.View.Stat(part); serr != nil || !s.IsDir() {
			if serr == nil && err == linux.EEXIST {
				err = linux.ENOTDIR
			}
			t.Errorf("cannot create directory %s: %s", command.Quote(part), reason(err))
			return false
		}
	}
	return true
}

var rmdirSpec = command.Spec{
	Name: "rmdir", Synopsis: "[OPTION]... DIRECTORY...",
	About: "Remove the DIRECTORY(ies), if they are empty.",
	Options: []command.Option{
		{Long: "ignore-fail-on-non-empty", Help: "ignore each failure that is solely because a directory is non-empty"},
		{Short: 'p', Long: "parents", Help: "remove DIRECTORY and its ancestors"},
		{Short: 'v', Long: "verbose", Help: "output a diagnostic for every directory processed"},
	},
}

func runRmdir(t *kernel.Task) int {
	a, status, ok := rmdirSpec.Parse(t)
	if !ok {
		return status
	}
	if len(a.Operands) == 0 {
		return rmdirSpec.Usage(t, "missing operand")
	}
	full, verbose := a.Has("ignore-fail-on-non-empty"), a.Has("v")
	one := func(name, what string) bool {
		if verbose {
			say(t, "rmdir: removing directory, ", command.QuoteAlways(name))
		}
		err := t.View.Rmdir(name)
		switch {
		case err == nil:
			return true
		case err == linux.ENOTEMPTY && full:
			return false
		}
		if err == linux.ENOTDIR && what == "" && strings.HasSuffix(name, "/") {
			if i, lerr := t.View.Lstat(strings.TrimRight(name, "/")); lerr == nil && i.IsLink() {
				t.Errorf("failed to remove %s: Symbolic link not followed", command.QuoteAlways(name))
				status = 1
				return false
			}
		}
		t.Errorf("failed to remove %s%s: %s", what, command.QuoteAlways(name), reason(err))
		status = 1
		return false
	}
	for _, name := range a.Operands {
		if !one(name, "") || !a.Has("p") {
			continue
		}
		for up := strings.TrimRight(name, "/"); ; {
			i := strings.LastIndexByte(up, '/')
			if i < 0 {
				break
			}
			if up = strings.TrimRight(up[:i], "/"); up == "" || !one(up, "directory ") {
				break
			}
		}
	}
	return status
}

var linkSpec = command.Spec{Name: "link", Synopsis: "FILE1 FILE2", About: "Call the link function to create a link named FILE2 to an existing FILE1."}

func runLink(t *kernel.Task) int {
	a, status, ok := linkSpec.Parse(t)
	if !ok {
		return status
	}
	if status, ok := exactly(t, &a.Operands, linkSpec.Usage, 2); !ok {
		return status
	}
	if err := t.View.Link(a.Operands[0], a.Operands[1]); err != nil {
		t.Errorf("cannot create link %s to %s: %s", command.QuoteAlways(a.Operands[1]), command.QuoteAlways(a.Operands[0]), reason(err))
		return 1
	}
	return 0
}

// exactly complains where there are not n operands.
func exactly(t *kernel.Task, operands *[]string, usage func(*kernel.Task, string, ...any) int, n int) (int, bool) {
	switch have := *operands; {
	case len(have) == 0:
		return usage(t, "missing operand"), false
	case len(have) < n:
		return usage(t, "missing operand after %s", command.Quote(have[len(have)-1])), false
	case len(have) > n:
		return usage(t, "extra operand %s", command.Quote(have[n])), false
	}
	return 0, true
}

var unlinkSpec = command.Spec{Name: "unlink", Synopsis: "FILE", About: "Call the unlink function to remove the specified FILE."}

func runUnlink(t *kernel.Task) int {
	a, status, ok := unlinkSpec.Parse(t)
	if !ok {
		return status
	}
	if status, ok := exactly(t, &a.Operands, unlinkSpec.Usage, 1); !ok {
		return status
	}
	if err := t.View.Unlink(a.Operands[0]); err != nil {
		t.Errorf("cannot unlink %s: %s", command.QuoteAlways(a.Operands[0]), reason(err))
		return 1
	}
	return 0
}

var mkfifoSpec = command.Spec{
	Name: "mkfifo", Synopsis: "[OPTION]... NAME...", About: "Create named pipes (FIFOs) with the given NAMEs.",
	Options: []command.Option{
		{Short: 'm', Long: "mode", Arg: command.Required, Name: "MODE", Help: "set file permission bits to MODE, not a=rw - umask"},
		{Short: 'Z', Help: "(ignored)"},
	},
}

// nodeMode reads the -m of mkfifo and mknod.
func nodeMode(t *kernel.Task, a *command.Args) (bits uint32, set, ok bool) {
	s, given := a.Value("m")
	if !given {
		return 0o666, false, true
	}
	c, ok := command.ParseMode(s)
	if !ok {
		t.Errorf("invalid mode")
		return 0, false, false
	}
	bits, _ = c.Apply(0o666, false, t.View.Umask)
	if bits&^0o777 != 0 {
		t.Errorf("mode must specify only file permission bits")
		return 0, false, false
	}
	return bits, true, true
}

func runMkfifo(t *kernel.Task) int {
	a, status, ok := mkfifoSpec.Parse(t)
	if !ok {
		return status
	}
	if len(a.Operands) == 0 {
		return mkfifoSpec.Usage(t, "missing operand")
	}
	bits, set, ok := nodeMode(t, a)
	if !ok {
		return 1
	}
	for _, name := range a.Operands {
		err := t.View.Mkfifo(name, 0o666)
		if err == nil && set {
			err = t.View.Chmod(name, bits)
		}
		if err != nil {
			t.Errorf("cannot create fifo %s: %s", command.QuoteAlways(name), reason(err))
			status = 1
		}
	}
	return status
}

var mknodSpec = command.Spec{
	Name: "mknod", Synopsis: "[OPTION]... NAME TYPE [MAJOR MINOR]", About: "Create the special file NAME of the given TYPE.",
	Options: []command.Option{
		{Short: 'm', Long: "mode", Arg: command.Required, Name: "MODE", Help: "set file permission bits to MODE, not a=rw - umask"},
		{Short: 'Z', Help: "(ignored)"},
	},
}

func runMknod(t *kernel.Task) int {
	a, status, ok := mknodSpec.Parse(t)
	if !ok {
		return status
	}
	bits, set, ok := nodeMode(t, a)
	if !ok {
		return 1
	}
	want := 4
	if len(a.Operands) > 1 && strings.HasPrefix(a.Operands[1], "p") {
		want = 2
	}
	if len(a.Operands) < 2 {
		want = 2
	}
	if status, ok := exactly(t, &a.Operands, mknodSpec.Usage, want); !ok {
		return status
	}
	name := a.Operands[0]
	kind, dev := uint32(0), uint32(0)
	switch a.Operands[1][:min(1, len(a.Operands[1]))] {
	case "p":
		kind = linux.S_IFIFO
	case "b":
		kind = linux.S_IFBLK
	case "c", "u":
		kind = linux.S_IFCHR
	default:
		return mknodSpec.Usage(t, "invalid device type %s", command.Quote(a.Operands[1]))
	}
	if kind != linux.S_IFIFO {
		major, err1 := strconv.ParseUint(a.Operands[2], 0, 12)
		minor, err2 := strconv.ParseUint(a.Operands[3], 0, 20)
		if err1 != nil {
			t.Errorf("invalid major device number %s", command.Quote(a.Operands[2]))
			return 1
		}
		if err2 != nil {
			t.Errorf("invalid minor device number %s", command.Quote(a.Operands[3]))
			return 1
		}
		dev = uint32(major)<<8 | uint32(minor)&0xff | uint32(minor)&^0xff<<12
	}
	err := t.View.Mknod(name, kind|0o666, dev)
	if err == nil && set {
		err = t.View.Chmod(name, bits)
	}
	if err != nil {
		command.FailFile(t, name, err)
		return 1
	}
	return 0
}
