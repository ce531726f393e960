package find

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/pattern"
	"github.com/paddock-sandbox/paddock/internal/sim/regex"
	"github.com/paddock-sandbox/paddock/internal/sim/strftime"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

func yes(*finder, *command.WalkEntry) bool { return true }

func no(*finder, *command.WalkEntry) bool { return false }

// predicate reads one test, action or option.
func (p *parser) predicate(name string) test {
	f := p.f
	switch name {
	case "-true", "-noleaf", "-warn", "-nowarn", "-ignore_readdir_race", "-noignore_readdir_race", "--":
		return yes
	case "-false":
		return no
	case "-daystart":
		f.daystart = true
		n := f.now.In(f.zone)
		f.now = time.Date(n.Year(), n.Month(), n.Day()+1, 0, 0, 0, 0, f.zone)
		return yes
	case "-follow":
		f.follow = command.FollowAll
		return yes
	case "-depth", "-d":
		f.depth, f.depthSaid = true, true
		return yes
	case "-xdev", "-mount":
		f.oneDev = true
		return yes
	case "-help", "--help":
		say(f.t, "Usage: find [-H] [-L] [-P] [-Olevel] [-D debugopts] [path...] [expression]")
		f.t.Exit(0)
	case "-version", "--version":
		say(f.t, "find (Paddock)")
		f.t.Exit(0)
	case "-empty":
		return empty
	case "-prune":
		f.prunes = true
		return func(f *finder, e *command.WalkEntry) bool {
			if !f.depth {
				f.order = command.WalkSkip
			}
			return true
		}
	case "-quit":
		return func(f *finder, _ *command.WalkEntry) bool { f.quit = true; return true }
	case "-nouser":
		return func(f *finder, e *command.WalkEntry) bool { _, ok := f.book.UserName(e.Info.UID); return !ok }
	case "-nogroup":
		return func(f *finder, e *command.WalkEntry) bool { _, ok := f.book.GroupName(e.Info.GID); return !ok }
	case "-readable":
		return access(4)
	case "-writable":
		return access(2)
	case "-executable":
		return access(1)
	}
	if x, ok := p.action(name); ok {
		return x
	}
	if len(name) == 8 && strings.HasPrefix(name, "-newer") {
		return p.newer(name, name[6], name[7])
	}
	known := false
	switch name {
	case "-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-lname", "-ilname", "-regex", "-iregex", "-regextype", "-type", "-xtype",
		"-size", "-newer", "-anewer", "-cnewer", "-mtime", "-atime", "-ctime", "-mmin", "-amin", "-cmin", "-used", "-perm", "-user", "-group", "-uid", "-gid",
		"-links", "-inum", "-samefile", "-maxdepth", "-mindepth", "-fstype", "-files0-from", "-context":
		known = true
	}
	if !known {
		if strings.HasPrefix(name, "-newer") {
			return p.fail("invalid predicate `%s'", name)
		}
		return p.fail("unknown predicate `%s'", name)
	}
	a, ok := p.arg(name)
	if !ok {
		return nil
	}
	return p.valued(name, a)
}

// valued reads a test that has an argument.
func (p *parser) valued(name, a string) test {
	f := p.f
	switch name {
	case "-name", "-iname":
		g := pattern.Compile(a, pattern.Options{IgnoreCase: name == "-iname"})
		return func(f *finder, e *command.WalkEntry) bool { return f.glob(g, base(e.Path)) }
	case "-path", "-wholename", "-ipath", "-iwholename":
		g := pattern.Compile(a, pattern.Options{IgnoreCase: name[1] == 'i'})
		return func(f *finder, e *command.WalkEntry) bool { return f.glob(g, e.Path) }
	case "-lname", "-ilname":
		g := pattern.Compile(a, pattern.Options{IgnoreCase: name == "-ilname"})
		return func(f *finder, e *command.WalkEntry) bool {
			target, err := e.In.Readlink(e.Name)
			return err == nil && e.Info.IsLink() && f.glob(g, target)
		}
	case "-regextype":
		return p.flavour(a)
	case "-regex", "-iregex":
		re, err := regex.Compile(a, regex.Options{Flavour: f.flavour, IgnoreCase: name == "-iregex", WholeLine: true, NoSub: true, Meter: meter{f.t}})
		if err != nil {
			return p.fail("%s", err)
		}
		return func(f *finder, e *command.WalkEntry) bool {
			f.strings = append(f.strings[:0], e.Path...)
			ok, err := re.Match(f.strings)
			return ok && err == nil
		}
	case "-type", "-xtype":
		return p.kinds(name, a)
	case "-size":
		return p.size(a)
	case "-newer", "-anewer", "-cnewer":
		i, err := f.stat(a)
		if err != nil {
			return p.fail("%s: %s", command.Quote(a), reason(err))
		}
		get := moment(map[string]byte{"-newer": 'm', "-anewer": 'a', "-cnewer": 'c'}[name])
		return func(_ *finder, e *command.WalkEntry) bool { return get(e.Info).After(i.Mtime) }
	case "-mtime", "-atime", "-ctime", "-mmin", "-amin", "-cmin":
		return p.age(name, a)
	case "-used":
		sign, n, ok := number(a)
		if !ok {
			return p.fail("invalid argument `%s' to `%s'", a, name)
		}
		return func(_ *finder, e *command.WalkEntry) bool {
			days := math.Floor(e.Info.Atime.Sub(e.Info.Ctime).Hours() / 24)
			return compare(sign, days, n)
		}
	case "-perm":
		return p.perm(a)
	case "-user", "-group":
		return p.owner(name, a)
	case "-uid", "-gid", "-links", "-inum":
		sign, n, ok := number(a)
		if !ok || n != math.Trunc(n) {
			return p.fail("invalid argument `%s' to `%s'", a, name)
		}
		get := map[string]func(i vfs.Info) float64{
			"-uid":   func(i vfs.Info) float64 { return float64(i.UID) },
			"-gid":   func(i vfs.Info) float64 { return float64(i.GID) },
			"-links": func(i vfs.Info) float64 { return float64(i.Nlink) },
			"-inum":  func(i vfs.Info) float64 { return float64(i.Ino) },
		}[name]
		return func(_ *finder, e *command.WalkEntry) bool { return compare(sign, get(e.Info), n) }
	case "-samefile":
		i, err := f.stat(a)
		if err != nil {
			return p.fail("%s: %s", command.Quote(a), reason(err))
		}
		return func(_ *finder, e *command.WalkEntry) bool { return e.Info.Ino == i.Ino && e.Info.Dev == i.Dev }
	case "-maxdepth", "-mindepth":
		n, err := strconv.ParseUint(a, 10, 31)
		if err != nil {
			return p.fail("Expected a positive decimal integer argument to %s, but got %s", name, command.Quote(a))
		}
		if name == "-maxdepth" {
			f.maxDepth = int(n)
		} else {
			f.minDepth = int(n)
		}
		return yes
	case "-fstype":
		return func(_ *finder, e *command.WalkEntry) bool {
			fs := "tmpfs"
			if strings.HasPrefix(e.Path, "/proc") {
				fs = "proc"
			}
			return fs == a
		}
	case "-files0-from":
		p.files = a
		return yes
	case "-context":
		return p.fail("invalid predicate -context: SELinux is not enabled.")
	}
	return no
}

// stat describes a file that an argument names.
func (f *finder) stat(name string) (vfs.Info, error) {
	if f.follow != command.FollowNever {
		if i, err := f.t.View.Stat(name); err == nil {
			return i, nil
		}
	}
	return f.t.View.Lstat(name)
}

// A meter charges a task for matching.
type meter struct{ t *kernel.Task }

func (m meter) Step(n int) error {
	m.t.Step(n)
	return nil
}

func (m meter) Grow(n int) error {
	m.t.Grow(n)
	return nil
}

func (f *finder) glob(g *pattern.Pattern, s string) bool {
	ok, err := g.Match(s, meter{f.t})
	return ok && err == nil
}

func empty(f *finder, e *command.WalkEntry) bool {
	switch {
	case e.Info.IsRegular():
		return e.Info.Size == 0
	case e.Info.IsDir():
		names, err := e.In.Names(e.Name)
		if err != nil {
			f.errorf("%s: %s", command.Quote(e.Path), reason(err))
			return false
		}
		return len(names) == 0
	}
	return false
}

func access(want uint32) test {
	return func(_ *finder, e *command.WalkEntry) bool { return e.In.Access(e.Name, want) == nil }
}

func (p *parser) flavour(a string) test {
	switch a {
	case "findutils-default", "emacs":
		p.f.flavour = regex.Emacs
	case "ed", "sed", "posix-basic", "posix-minimal-basic", "grep":
		p.f.flavour = regex.GrepBRE
	case "egrep", "posix-egrep":
		p.f.flavour = regex.GrepERE
	case "posix-extended", "awk", "posix-awk", "gnu-awk":
		p.f.flavour = regex.Shell
	default:
		return p.fail("Unknown regular expression type ‘%s’; valid types are ‘findutils-default’, ‘ed’, ‘emacs’, ‘gnu-awk’, ‘grep’, ‘posix-awk’, ‘awk’, ‘posix-basic’, ‘posix-egrep’, ‘egrep’, ‘posix-extended’, ‘posix-minimal-basic’, ‘sed’.", a)
	}
	return yes
}

func kind(c byte) (uint32, bool) {
	switch c {
	case 'b':
		return linux.S_IFBLK, true
	case 'c':
		return linux.S_IFCHR, true
	case 'd':
		return linux.S_IFDIR, true
	case 'p':
		return linux.S_IFIFO, true
	case 'f':
		return linux.S_IFREG, true
	case 'l':
		return linux.S_IFLNK, true
	case 's':
		return linux.S_IFSOCK, true
	}
	return 0, false
}

func (p *parser) kinds(name, a string) test {
	if a == "" {
		return p.fail("Arguments to %s should contain at least one letter", name)
	}
	var set [16]bool
	for i := 0; i < len(a); i += 2 {
		k, ok := kind(a[i])
		if !ok && a[i] != 'D' {
			return p.fail("Unknown argument to %s: %c", name, a[i])
		}
		if i+1 < len(a) && a[i+1] != ',' {
			return p.fail("Must separate multiple arguments to %s using: ','", name)
		}
		if i+2 == len(a) {
			return p.fail("Last file type in list argument to %s is missing, i.e., list is ending on: ','", name)
		}
		if ok {
			set[k>>12] = true
		}
	}
	if name == "-type" {
		return func(_ *finder, e *command.WalkEntry) bool { return set[e.Info.Mode>>12&15] }
	}
	return func(f *finder, e *command.WalkEntry) bool {
		i, err := e.In.Stat(e.Name)
		if err != nil || f.follow == command.FollowAll || f.follow == command.FollowRoots && e.Depth == 0 {
			if i, err = e.In.Lstat(e.Name); err != nil {
				return false
			}
		}
		return set[i.Mode>>12&15]
	}
}

// number reads "+n", "-n" or "n".
func number(a string) (sign byte, n float64, ok bool) {
	if a != "" && (a[0] == '+' || a[0] == '-') {
		sign, a = a[0], a[1:]
	}
	if a == "" || strings.Trim(a, "0123456789.") != "" {
		return 0, 0, false
	}
	n, err := strconv.ParseFloat(a, 64)
	return sign, n, err == nil
}

func compare(sign byte, have, want float64) bool {
	switch sign {
	case '+':
		return have > want
	case '-':
		return have < want
	}
	return have == want
}

func (p *parser) size(a string) test {
	unit := int64(512)
	digits := a
	if a != "" {
		k := strings.IndexByte("cwbkMG", a[len(a)-1])
		if k >= 0 {
			unit = []int64{1, 2, 512, 1 << 10, 1 << 20, 1 << 30}[k]
			digits = a[:len(a)-1]
		} else if c := a[len(a)-1]; c < '0' || c > '9' {
			return p.fail("invalid -size type `%c'", c)
		}
	}
	sign, n, ok := number(digits)
	if !ok || n != math.Trunc(n) {
		return p.fail("Invalid argument `%s' to -size", a)
	}
	return func(_ *finder, e *command.WalkEntry) bool {
		blocks := (e.Info.Size + unit - 1) / unit
		return compare(sign, float64(blocks), n)
	}
}

// moment picks one of a file's times.
func moment(c byte) func(vfs.Info) time.Time {
	switch c {
	case 'a':
		return func(i vfs.Info) time.Time { return i.Atime }
	case 'c', 'B':
		return func(i vfs.Info) time.Time { return i.Ctime }
	}
	return func(i vfs.Info) time.Time { return i.Mtime }
}

func (p *parser) age(name, a string) test {
	sign, n, ok := number(a)
	if !ok {
		return p.fail("invalid argument `%s' to `%s'", a, name)
	}
	get := moment(name[1])
	unit := 24 * time.Hour
	if strings.HasSuffix(name, "min") {
		unit = time.Minute
	}
	span := time.Duration(min(n, 1e5*365) * float64(unit))
	origin := p.f.now
	return func(_ *finder, e *command.WalkEntry) bool {
		at := get(e.Info)
		switch {
		case sign == '-':
			return at.After(origin.Add(-span))
		case sign == '+' && unit == time.Minute:
			return at.Before(origin.Add(-span))
		case sign == '+':
			return at.Before(origin.Add(-span - unit))
		case unit == time.Minute:
			return at.After(origin.Add(-span)) && at.Before(origin.Add(-span+unit)) || at.Equal(origin.Add(-span+unit))
		}
		return !at.After(origin.Add(-span)) && at.After(origin.Add(-span-unit))
	}
}

func (p *parser) perm(a string) test {
	how, s := byte(0), a
	if a != "" && (a[0] == '-' || a[0] == '/') {
		how, s = a[0], a[1:]
	}
	c, ok := command.ParseMode(s)
	if !ok || s == "" {
		return p.fail("invalid mode %s", command.Quote(a))
	}
	forFile, _ := c.Apply(0, false, 0)
	forDir, _ := c.Apply(0, true, 0)
	return func(_ *finder, e *command.WalkEntry) bool {
		want := forFile
		if e.Info.IsDir() {
			want = forDir
		}
		have := e.Info.Mode & command.ModeBits
		switch how {
		case '-':
			return have&want == want
		case '/':
			return want == 0 || have&want != 0
		}
		return have == want
	}
}

func (p *parser) owner(name, a string) test {
	if name == "-user" {
		uid, ok := p.f.book.UserID(a)
		if !ok {
			if a == "" {
				return p.fail("The argument to -user should not be empty")
			}
			return p.fail("%s is not the name of a known user", command.Quote(a))
		}
		return func(_ *finder, e *command.WalkEntry) bool { return e.Info.UID == uid }
	}
	gid, ok := p.f.book.GroupID(a)
	if !ok {
		if a == "" {
			return p.fail("argument to -group is empty, but should be a group name")
		}
		return p.fail("%s is not the name of an existing group", command.Quote(a))
	}
	return func(_ *finder, e *command.WalkEntry) bool { return e.Info.GID == gid }
}

// newer reads -newerXY.
func (p *parser) newer(name string, x, y byte) test {
	if strings.IndexByte("aBcm", x) < 0 || strings.IndexByte("aBcmt", y) < 0 {
		return p.fail("invalid predicate `%s'", name)
	}
	a, ok := p.arg(name)
	if !ok {
		return nil
	}
	var than time.Time
	if y == 't' {
		m, err := strftime.Parse(a, time.Now().In(p.f.zone))
		if err != nil {
			return p.fail("I cannot figure out how to interpret %s as a date or time", command.Quote(a))
		}
		than = m
	} else {
		i, err := p.f.stat(a)
		if err != nil {
			return p.fail("%s: %s", command.Quote(a), reason(err))
		}
		than = moment(y)(i)
	}
	get := moment(x)
	return func(_ *finder, e *command.WalkEntry) bool { return get(e.Info).After(than) }
}
