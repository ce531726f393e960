package file

import (
	"bytes"
	"errors"
	"io"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

var installSpec = &command.Spec{
	Name:     "install",
	Synopsis: "[OPTION]... [-T] SOURCE DEST\n  or:  install [OPTION]... SOURCE... DIRECTORY\n  or:  install [OPTION]... -t DIRECTORY SOURCE...\n  or:  install [OPTION]... -d DIRECTORY...",
	About:    "Copy files and set attributes.",
	Options: backupOptions(
		command.Option{Short: 'c', Help: "(ignored)"},
		command.Option{Short: 'C', Long: "compare", Help: "compare content of source and destination files, and if no change to content, ownership, and permissions, do not modify the destination at all"},
		command.Option{Short: 'd', Long: "directory", Help: "treat all arguments as directory names; create all components of the specified directories"},
		command.Option{Short: 'D', Help: "create all leading components of DEST except the last, or all components of --target-directory, then copy SOURCE to DEST"},
		command.Option{Short: 'g', Long: "group", Arg: command.Required, Name: "GROUP", Help: "set group ownership, instead of process' current group"},
		command.Option{Short: 'm', Long: "mode", Arg: command.Required, Name: "MODE", Help: "set permission mode (as in chmod), instead of rwxr-xr-x"},
		command.Option{Short: 'o', Long: "owner", Arg: command.Required, Name: "OWNER", Help: "set ownership (super-user only)"},
		command.Option{Short: 'p', Long: "preserve-timestamps", Help: "apply access/modification times of SOURCE files to corresponding destination files"},
		command.Option{Short: 's', Long: "strip", Help: "strip symbol tables (nothing to strip here)"},
		command.Option{Long: "strip-program", Arg: command.Required, Help: "program used to strip binaries"},
		command.Option{Short: 't', Long: "target-directory", Arg: command.Required, Name: "DIRECTORY", Help: "copy all SOURCE arguments into DIRECTORY"},
		command.Option{Short: 'T', Long: "no-target-directory", Help: "treat DEST as a normal file"},
		command.Option{Short: 'v', Long: "verbose", Help: "print the name of each created file or directory"},
		command.Option{Short: 'Z', Long: "context", Help: "(ignored)"},
	),
}

type installer struct {
	*copier
	bits, dirBits uint32
	uid, gid      int
	compare       bool
	times         bool
}

func runInstall(t *kernel.Task) int {
	a, status, ok := installSpec.Parse(t)
	if !ok {
		return status
	}
	c := &installer{copier: newCopier(t), bits: 0o755, dirBits: 0o755, uid: -1, gid: -1, compare: a.Has("C"), times: a.Has("p")}
	c.follow, c.fixed, c.removeFirst, c.asOne = command.FollowAll, true, true, true
	if c.backup, status, ok = newBackup(t, installSpec, a); !ok {
		return status
	}
	if s, given := a.Value("m"); given {
		change, ok := command.ParseMode(s)
		if !ok {
			t.Errorf("invalid mode %s", command.Quote(s))
			return 1
		}
		c.bits, _ = change.Apply(0, false, 0)
		c.dirBits, _ = change.Apply(0, true, 0)
	}
	book := &command.Accounts{View: &t.View}
	if s, given := a.Value("o"); given {
		if c.uid, ok = book.UserID(s); !ok {
			t.Errorf("invalid user %s", command.Quote(s))
			return 1
		}
	}
	if s, given := a.Value("g"); given {
		if c.gid, ok = book.GroupID(s); !ok {
			t.Errorf("invalid group %s", command.Quote(s))
			return 1
		}
	}
	verbose := a.Has("v")
	dir, toDir := a.Value("t")
	files := a.Operands
	if a.Has("d") {
		if toDir {
			t.Errorf("target directory not allowed when installing a directory")
			return 1
		}
		if len(files) == 0 {
			return installSpec.Usage(t, "missing file operand")
		}
		for _, f := range files {
			if !c.dir(f, verbose) {
				c.status = 1
			}
		}
		return c.status
	}
	c.verbose = verbose
	least := 2
	if toDir {
		least = 1
	}
	switch {
	case len(files) == 0:
		return installSpec.Usage(t, "missing file operand")
	case len(files) < least:
		return installSpec.Usage(t, "missing destination file operand after %s", command.QuoteAlways(files[0]))
	case a.Has("T") && toDir:
		t.Errorf("cannot combine --target-directory (-t) and --no-target-directory (-T)")
		return 1
	case a.Has("T") && len(files) > 2:
		return installSpec.Usage(t, "extra operand %s", command.QuoteAlways(files[2]))
	}
	if toDir && a.Has("D") && !(&maker{t: t, parents: true, verbose: verbose, word: "creating"}).dir(dir) {
		return 1
	}
	if toDir {
		i, err := t.View.Stat(dir)
		if err == nil && !i.IsDir() {
			err = linux.ENOTDIR
		}
		if err != nil {
			t.Errorf("target directory %s: %s", command.QuoteAlways(dir), reason(err))
			return 1
		}
	} else if !a.Has("T") {
		last := files[len(files)-1]
		i, err := t.View.Stat(last)
		switch {
		case err == nil && i.IsDir():
			dir, toDir, files = last, true, files[:len(files)-1]
		case len(files) > 2:
			if err == nil {
				err = linux.ENOTDIR
			}
			t.Errorf("target %s: %s", command.QuoteAlways(last), reason(err))
			return 1
		}
	}
	if !toDir {
		if a.Has("D") {
			m := &maker{t: t, parents: true, verbose: verbose, word: "creating"}
			if p := parent(files[1]); p != "." && !m.dir(p) {
				return 1
			}
		}
		c.install(files[0], files[1])
		return c.status
	}
	for _, f := range files {
		c.install(f, command.JoinPath(dir, base(f)))
	}
	return c.status
}

func (c *installer) dir(name string, verbose bool) bool {
	t := c.t
	m := &maker{t: t, parents: true, verbose: verbose, word: "creating"}
	if !m.dir(name) {
		return false
	}
	if err := t.View.Chmod(name, c.dirBits); err != nil {
		t.Errorf("cannot change permissions of %s: %s", command.QuoteAlways(name), reason(err))
		return false
	}
	return c.own(name)
}

func (c *installer) own(name string) bool {
	if c.uid < 0 && c.gid < 0 {
		return true
	}
	if err := c.t.View.Chown(name, c.uid, c.gid, true); err != nil {
		c.t.Errorf("cannot change ownership of %s: %s", command.QuoteAlways(name), reason(err))
		return false
	}
	return true
}

func (c *installer) install(from, to string) {
	t := c.t
	i, err := t.View.Stat(from)
	if err == nil && i.IsDir() {
		t.Errorf("omitting directory %s", command.QuoteAlways(from))
		c.status = 1
		return
	}
	if c.compare && err == nil && c.equal(from, to) {
		return
	}
	before := c.status
	c.status = 0
	c.copy(from, to)
	if c.status != 0 {
		return
	}
	c.status = before
	if c.times {
		if err := t.View.Chtimes(to, i.Atime, i.Mtime, true); err != nil {
			c.fail("cannot set timestamps for %s: %s", command.QuoteAlways(to), reason(err))
		}
	}
	if !c.own(to) {
		c.status = 1
	}
	if err := t.View.Chmod(to, c.bits); err != nil {
		c.fail("cannot change permissions of %s: %s", command.QuoteAlways(to), reason(err))
	}
}

// equal reports whether to is already what installing from would make.
func (c *installer) equal(from, to string) bool {
	v := &c.t.View
	i, err := v.Lstat(to)
	if err != nil || !i.IsRegular() || i.Mode&command.ModeBits != c.bits || c.bits&^0o777 != 0 ||
		c.uid >= 0 && c.uid != i.UID || c.gid >= 0 && c.gid != i.GID {
		return false
	}
	if f, err := v.Stat(from); err != nil || f.Size != i.Size {
		return false
	}
	a, err := v.Open(from, linux.O_RDONLY, 0)
	if err != nil {
		return false
	}
	defer a.Close()
	b, err := v.Open(to, linux.O_RDONLY, 0)
	if err != nil {
		return false
	}
	defer b.Close()
	x, y := make([]byte, 32<<10), make([]byte, 32<<10)
	for {
		n, errX := io.ReadFull(a, x)
		m, errY := io.ReadFull(b, y)
		c.t.Step(n>>6 + 1)
		if n != m || !bytes.Equal(x[:n], y[:m]) {
			return false
		}
		if errX != nil || errY != nil {
			return ended(errX) && ended(errY)
		}
	}
}

// ended reports whether a read met the end of the file.
func ended(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
