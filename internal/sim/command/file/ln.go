package file

import (
	"bufio"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

var lnSpec = &command.Spec{
	Name:     "ln",
	Synopsis: "[OPTION]... [-T] TARGET LINK_NAME\n  or:  ln [OPTION]... TARGET\n  or:  ln [OPTION]... TARGET... DIRECTORY\n  or:  ln [OPTION]... -t DIRECTORY TARGET...",
	About:    "Create hard links by default, symbolic links with --symbolic.",
	Options: backupOptions(
		command.Option{Short: 'd', Long: "directory", Help: "allow the superuser to attempt to hard link directories"},
		command.Option{Short: 'F', Help: "same as -d"},
		command.Option{Short: 'f', Long: "force", Help: "remove existing destination files"},
		command.Option{Short: 'i', Long: "interactive", Help: "prompt whether to remove destinations"},
		command.Option{Short: 'L', Long: "logical", Help: "dereference TARGETs that are symbolic links"},
		command.Option{Short: 'n', Long: "no-dereference", Help: "treat LINK_NAME as a normal file if it is a symbolic link to a directory"},
		command.Option{Short: 'P', Long: "physical", Help: "make hard links directly to symbolic links"},
		command.Option{Short: 'r', Long: "relative", Help: "with -s, create links relative to link location"},
		command.Option{Short: 's', Long: "symbolic", Help: "make symbolic links instead of hard links"},
		command.Option{Short: 't', Long: "target-directory", Arg: command.Required, Name: "DIRECTORY", Help: "specify the DIRECTORY in which to create the links"},
		command.Option{Short: 'T', Long: "no-target-directory", Help: "treat LINK_NAME as a normal file always"},
		command.Option{Short: 'v', Long: "verbose", Help: "print name of each linked file"},
	),
}

type linker struct {
	t      *kernel.Task
	backup backup

	force, ask, symbolic, relative, verbose bool

	logical bool
	keep    bool // a link to a directory is not the directory
}

func runLn(t *kernel.Task) int {
	a, status, ok := lnSpec.Parse(t)
	if !ok {
		return status
	}
	l := &linker{t: t, symbolic: a.Has("s"), relative: a.Has("r"), verbose: a.Has("v"), keep: a.Has("n")}
	if l.backup, status, ok = newBackup(t, lnSpec, a); !ok {
		return status
	}
	for _, f := range a.Flags {
		switch f.Key {
		case "f":
			l.force, l.ask = true, false
		case "i":
			l.force, l.ask = false, true
		case "L":
			l.logical = true
		case "P":
			l.logical = false
		}
	}
	dir, hasDir := a.Value("t")
	plain := a.Has("T")
	files := a.Operands
	switch {
	case len(files) == 0:
		return lnSpec.Usage(t, "missing file operand")
	case plain && hasDir:
		t.Errorf("cannot combine --target-directory and --no-target-directory")
		return 1
	case l.relative && !l.symbolic:
		t.Errorf("cannot do --relative without --symbolic")
		return 1
	case plain && len(files) == 1:
		return lnSpec.Usage(t, "missing destination file operand after %s", command.QuoteAlways(files[0]))
	case plain && len(files) > 2:
		return lnSpec.Usage(t, "extra operand %s", command.QuoteAlways(files[2]))
	}
	if hasDir {
		if i, err := t.View.Stat(dir); err != nil || !i.IsDir() {
			if err == nil {
				err = linux.ENOTDIR
			}
			t.Errorf("target directory %s: %s", command.QuoteAlways(dir), reason(err))
			return 1
		}
	}
	switch {
	case hasDir:
	case plain:
		return l.link(files[0], files[1])
	case len(files) == 1:
		dir = "."
	default:
		last := files[len(files)-1]
		isDir := l.directory(last)
		if len(files) == 2 && !isDir {
			return l.link(files[0], last)
		}
		if !isDir {
			_, err := t.View.Stat(last)
			if err == nil {
				err = linux.ENOTDIR
			}
			t.Errorf("target %s: %s", command.QuoteAlways(last), reason(err))
			return 1
		}
		dir, files = last, files[:len(files)-1]
	}
	for _, f := range files {
		if l.link(f, command.JoinPath(dir, base(f))) != 0 {
			status = 1
		}
	}
	return status
}

// directory reports whether links go into what stands at a path.
func (l *linker) directory(path string) bool {
	if l.keep {
		if i, err := l.t.View.Lstat(path); err == nil && i.IsLink() {
			return false
		}
	}
	i, err := l.t.View.Stat(path)
	return err == nil && i.IsDir()
}

func (l *linker) link(target, name string) int {
	t := l.t
	what := "hard link"
	if l.symbolic {
		what = "symbolic link"
	} else {
		i, err := t.View.Lstat(target)
		if err == nil && l.logical {
			i, err = t.View.Stat(target)
		}
		switch {
		case err != nil:
			t.Errorf("failed to access %s: %s", command.QuoteAlways(target), reason(err))
			return 1
		case i.IsDir():
			t.Errorf("%s: hard link not allowed for directory", command.QuoteFile(target))
			return 1
		}
	}
	text := target
	if l.relative {
		text = l.relativeTo(target, name)
	}
	kept := ""
	if d, err := t.View.Lstat(name); err == nil && (l.force || l.ask || l.backup.on) {
		if d.IsDir() {
			t.Errorf("%s: cannot overwrite directory", command.QuoteFile(name))
			return 1
		}
		if s, err := t.View.Stat(target); err == nil && s.Ino == d.Ino && s.Dev == d.Dev && (!l.symbolic || sameName(t, target, name)) &&
			(d.Nlink == 1 || sameName(t, target, name)) {
			t.Errorf("%s and %s are the same file", command.QuoteAlways(target), command.QuoteAlways(name))
			return 1
		}
		if l.ask && !yes(t, "replace "+command.QuoteAlways(name)+"? ") {
			return 0
		}
		if l.backup.on {
			kept = l.backup.name(&t.View, name)
			if err := t.View.Rename(name, kept); err != nil {
				t.Errorf("cannot backup %s: %s", command.QuoteAlways(name), reason(err))
				return 1
			}
		}
	}
	err := l.make(target, text, name)
	if err == linux.EEXIST && (l.force || l.ask) {
		if err = t.View.Unlink(name); err == nil {
			err = l.make(target, text, name)
		} else {
			t.Errorf("cannot remove %s: %s", command.QuoteAlways(name), reason(err))
			return 1
		}
	}
	if err != nil {
		if kept != "" {
			_ = t.View.Rename(kept, name) // the first error is the one to tell
		}
		arrow := ""
		switch {
		case l.symbolic && err == linux.ENAMETOOLONG, l.symbolic && text == "":
			arrow = " -> " + command.QuoteAlways(text)
		case !l.symbolic && err != linux.EEXIST:
			arrow = " => " + command.QuoteAlways(target)
		}
		t.Errorf("failed to create %s %s%s: %s", what, command.QuoteAlways(name), arrow, reason(err))
		return 1
	}
	if l.verbose {
		arrow := " => "
		if l.symbolic {
			arrow = " -> "
		}
		line := command.QuoteAlways(name) + arrow + command.QuoteAlways(text)
		if kept != "" {
			line = command.QuoteAlways(kept) + " ~ " + line
		}
		say(t, line)
	}
	return 0
}

// sameName reports whether two paths are the same entry of a directory.
func sameName(t *kernel.Task, a, b string) bool {
	if base(a) != base(b) {
		return false
	}
	x, err1 := t.View.Stat(parent(a))
	y, err2 := t.View.Stat(parent(b))
	return err1 == nil && err2 == nil && x.Ino == y.Ino && x.Dev == y.Dev
}

func (l *linker) make(target, text, name string) error {
	v := &l.t.View
	if l.symbolic {
		return v.Symlink(text, name)
	}
	if l.logical {
		real, err := canonical(v, target, allParts, true)
		if err != nil {
			return err
		}
		target = real
	}
	return v.Link(target, name)
}

func (l *linker) relativeTo(target, name string) string {
	from, err := canonical(&l.t.View, parent(name), noPart, true)
	if err != nil {
		return target
	}
	to, err := canonical(&l.t.View, target, noPart, true)
	if err != nil {
		return target
	}
	return relative(to, from)
}

// yes asks on standard error and reads the answer from standard input.
func yes(t *kernel.Task, question string) bool {
	_ = t.Flush() // the end of the program tells of it
	_, _ = t.Write(2, []byte(t.Name()+": "+question))
	return agreed(t.In())
}

// agreed reads a line and tells whether it is a yes.
func agreed(in *bufio.Reader) bool {
	line, err := in.ReadString('\n')
	if err != nil && line == "" {
		return false
	}
	return strings.HasPrefix(line, "y") || strings.HasPrefix(line, "Y")
}
