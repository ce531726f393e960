package file

import (
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/strftime"
)

var touchSpec = &command.Spec{
	Name: "touch", Synopsis: "[OPTION]... FILE...",
	About: "Update the access and modification times of each FILE to the current time.",
	Options: []command.Option{
		{Short: 'a', Help: "change only the access time"},
		{Short: 'c', Long: "no-create", Help: "do not create any files"},
		{Short: 'd', Long: "date", Arg: command.Required, Name: "STRING", Help: "parse STRING and use it instead of current time"},
		{Short: 'f', Help: "(ignored)"},
		{Short: 'h', Long: "no-dereference", Help: "affect each symbolic link instead of any referenced file"},
		{Short: 'm', Help: "change only the modification time"},
		{Short: 'r', Long: "reference", Arg: command.Required, Name: "FILE", Help: "use this file's times instead of current time"},
		{Short: 't', Arg: command.Required, Name: "STAMP", Help: "use [[CC]YY]MMDDhhmm[.ss] instead of current time"},
		{Long: "time", Arg: command.Required, Name: "WORD", Help: "change the specified time: access, atime, use, modify, mtime"},
	},
}

func runTouch(t *kernel.Task) int {
	a, status, ok := touchSpec.Parse(t)
	if !ok {
		return status
	}
	atime, mtime := a.Has("a"), a.Has("m")
	if word, given := a.Value("time"); given {
		list := []string{"atime", "access", "use", "mtime", "modify"}
		found, err := command.Choice(word, list)
		if err != nil {
			return command.BadChoice(t, touchSpec, "--time", word, err, list)
		}
		if found[0] == 'm' {
			mtime = true
		} else {
			atime = true
		}
	}
	if !atime && !mtime {
		atime, mtime = true, true
	}
	now := time.Now().In(zone(t))
	at, mt := now, now
	set := false
	if ref, given := a.Value("r"); given {
		i, err := t.View.Stat(ref)
		if a.Has("h") {
			i, err = t.View.Lstat(ref)
		}
		if err != nil {
			t.Errorf("failed to get attributes of %s: %s", command.QuoteAlways(ref), reason(err))
			return 1
		}
		at, mt, set = i.Atime, i.Mtime, true
	}
	if d, given := a.Value("d"); given {
		x, err := strftime.Parse(d, mt.In(now.Location()))
		y, err2 := strftime.Parse(d, at.In(now.Location()))
		if err != nil || err2 != nil {
			t.Errorf("invalid date format %s", command.Quote(d))
			return 1
		}
		mt, at, set = x, y, true
	}
	if s, given := a.Value("t"); given {
		if set {
			return touchSpec.Usage(t, "cannot specify times from more than one source")
		}
		m, ok := stamp(s, now)
		if !ok {
			t.Errorf("invalid date format %s", command.Quote(s))
			return 1
		}
		at, mt, set = m, m, true
	}
	if len(a.Operands) == 0 {
		return touchSpec.Usage(t, "missing file operand")
	}
	for _, name := range a.Operands {
		if !touch(t, name, a.Has("c"), a.Has("h"), func(path string) error {
			if !set && atime && mtime {
				return t.View.Touch(path, !a.Has("h"))
			}
			x, y := at, mt
			if !atime {
				x = time.Time{}
			}
			if !mtime {
				y = time.Time{}
			}
			return t.View.Chtimes(path, x, y, !a.Has("h"))
		}) {
			status = 1
		}
	}
	return status
}

func touch(t *kernel.Task, name string, onlyThere, link bool, change func(string) error) bool {
	if name == "-" {
		d := t.FD(1)
		if d == nil {
			return false
		}
		if f, ok := d.VFS(); ok {
			if path, err := f.Path(); err == nil {
				if err := change(path); err != nil {
					t.Errorf("setting times of '-': %s", reason(err))
					return false
				}
			}
		}
		return true
	}
	err := change(name)
	if err == linux.ENOENT && !onlyThere && !link && name != "" {
		var d *kernel.Desc
		if d, err = t.Open(name, linux.O_WRONLY|linux.O_CREAT|linux.O_NONBLOCK, 0o666); err == nil {
			d.Drop()
			err = change(name)
		} else {
			if err == linux.EISDIR {
				err = linux.ENOENT
				t.Errorf("setting times of %s: %s", command.QuoteAlways(name), reason(err))
				return false
			}
			t.Errorf("cannot touch %s: %s", command.QuoteAlways(name), reason(err))
			return false
		}
	}
	switch {
	case err == nil, onlyThere && err == linux.ENOENT:
		return true
	case err == linux.ENOENT:
		t.Errorf("cannot touch %s: %s", command.QuoteAlways(name), reason(err))
	case err == linux.EPERM || err == linux.EACCES || err == linux.ENOTDIR || err == linux.ELOOP:
		t.Errorf("cannot touch %s: %s", command.QuoteAlways(name), reason(err))
	default:
		t.Errorf("setting times of %s: %s", command.QuoteAlways(name), reason(err))
	}
	return false
}

// stamp reads [[CC]YY]MMDDhhmm[.ss].
func stamp(s string, now time.Time) (time.Time, bool) {
	digits, sec, frac := strings.Cut(s, ".")
	if frac && len(sec) != 2 || !frac && sec != "" {
		return now, false
	}
	if !frac {
		sec = "00"
	}
	for _, c := range digits + sec {
		if c < '0' || c > '9' {
			return now, false
		}
	}
	year := now.Format("2006")
	switch len(digits) {
	case 8:
	case 10:
		year = "20" + digits[:2]
		if digits[:2] >= "69" {
			year = "19" + digits[:2]
		}
		digits = digits[2:]
	case 12:
		year, digits = digits[:4], digits[4:]
	default:
		return now, false
	}
	leap := sec == "60"
	if leap {
		sec = "59"
	}
	m, err := time.ParseInLocation("20060102150405", year+digits+sec, now.Location())
	if leap {
		m = m.Add(time.Second)
	}
	return m, err == nil
}

var truncateSpec = &command.Spec{
	Name: "truncate", Synopsis: "OPTION... FILE...", About: "Shrink or extend the size of each FILE to the specified size",
	Options: []command.Option{
		{Short: 'c', Long: "no-create", Help: "do not create any files"},
		{Short: 'o', Long: "io-blocks", Help: "treat SIZE as number of IO blocks instead of bytes"},
		{Short: 'r', Long: "reference", Arg: command.Required, Name: "RFILE", Help: "base size on RFILE"},
		{Short: 's', Long: "size", Arg: command.Required, Name: "SIZE", Help: "set or adjust the file size by SIZE bytes"},
	},
}

func runTruncate(t *kernel.Task) int {
	a, status, ok := truncateSpec.Parse(t)
	if !ok {
		return status
	}
	text, sized := a.Value("s")
	ref, referred := a.Value("r")
	how := byte(0)
	n := int64(0)
	if sized {
		s := strings.TrimLeft(text, " \t")
		if s != "" && strings.IndexByte("<>/%", s[0]) >= 0 {
			how, s = s[0], strings.TrimLeft(s[1:], " \t")
		}
		if s != "" && (s[0] == '+' || s[0] == '-') {
			if how != 0 {
				return truncateSpec.Usage(t, "multiple relative modifiers specified")
			}
			how = '+'
		}
		var err error
		if n, err = command.ParseInt(s, command.SizeSuffixes+"gt", -1<<63, 1<<63-1); err != nil {
			command.BadNumber(t, "Invalid number", text, err)
			return 1
		}
		if (how == '/' || how == '%') && n == 0 {
			t.Errorf("division by zero")
			return 1
		}
	}
	switch {
	case !sized && !referred:
		return truncateSpec.Usage(t, "you must specify either %s or %s", command.Quote("--size"), command.Quote("--reference"))
	case sized && referred && how == 0:
		return truncateSpec.Usage(t, "you must specify a relative %s with %s", command.Quote("--size"), command.Quote("--reference"))
	case a.Has("o") && !sized:
		return truncateSpec.Usage(t, "%s was specified but %s was not", command.Quote("--io-blocks"), command.Quote("--size"))
	case len(a.Operands) == 0:
		return truncateSpec.Usage(t, "missing file operand")
	}
	if a.Has("o") {
		n *= 4096
	}
	base := int64(-1)
	if referred {
		i, err := t.View.Stat(ref)
		if err != nil {
			t.Errorf("cannot stat %s: %s", command.QuoteAlways(ref), reason(err))
			return 1
		}
		base = i.Size
	}
	for _, name := range a.Operands {
		if !truncate(t, name, a.Has("c"), base, n, how, sized) {
			status = 1
		}
	}
	return status
}

func truncate(t *kernel.Task, name string, onlyThere bool, base, n int64, how byte, sized bool) bool {
	flags := linux.O_WRONLY
	if !onlyThere {
		flags |= linux.O_CREAT
	}
	f, err := t.View.Open(name, flags, 0o666)
	if err != nil {
		if onlyThere && err == linux.ENOENT {
			return true
		}
		t.Errorf("cannot open %s for writing: %s", command.QuoteAlways(name), reason(err))
		return false
	}
	defer f.Close()
	to := n
	if how != 0 || !sized {
		if base < 0 {
			i, err := f.Info()
			if err != nil {
				t.Errorf("cannot fstat %s: %s", command.QuoteAlways(name), reason(err))
				return false
			}
			base = i.Size
		}
		switch how {
		case 0:
			to = base
		case '+':
			to = base + n
		case '<':
			to = min(base, n)
		case '>':
			to = max(base, n)
		case '/':
			to = base / n * n
		case '%':
			to = (base + n - 1) / n * n
		}
	}
	if err := f.Truncate(max(0, to)); err != nil {
		t.Errorf("failed to truncate %s at %s bytes: %s", command.QuoteAlways(name), strconv.FormatInt(to, 10), reason(err))
		return false
	}
	return true
}

var syncSpec = &command.Spec{
	Name: "sync", Synopsis: "[OPTION] [FILE]...", About: "Synchronize cached writes to persistent storage",
	Options: []command.Option{
		{Short: 'd', Long: "data", Help: "sync only file data, no unneeded metadata"},
		{Short: 'f', Long: "file-system", Help: "sync the file systems that contain the files"},
	},
}

func runSync(t *kernel.Task) int {
	a, status, ok := syncSpec.Parse(t)
	if !ok {
		return status
	}
	for _, name := range a.Operands {
		if _, err := t.View.Stat(name); err != nil {
			t.Errorf("error opening %s: %s", command.QuoteAlways(name), reason(err))
			status = 1
		}
	}
	return status
}

var pathchkSpec = &command.Spec{
	Name: "pathchk", Synopsis: "[OPTION]... NAME...", About: "Diagnose invalid or unportable file names.",
	Options: []command.Option{
		{Short: 'p', Help: "check for most POSIX systems"},
		{Short: 'P', Help: "check for empty names and leading \"-\""},
		{Long: "portability", Help: "check for all POSIX systems (equivalent to -p -P)"},
	},
}

func runPathchk(t *kernel.Task) int {
	a, status, ok := pathchkSpec.Parse(t)
	if !ok {
		return status
	}
	if len(a.Operands) == 0 {
		return pathchkSpec.Usage(t, "missing operand")
	}
	portable := a.Has("p") || a.Has("portability")
	strict := a.Has("P") || a.Has("portability")
	for _, name := range a.Operands {
		if text := unportable(t, name, portable, strict); text != "" {
			t.Errorf("%s", text)
			status = 1
		}
	}
	return status
}

func unportable(t *kernel.Task, name string, portable, strict bool) string {
	if strict {
		for _, p := range parts(name) {
			if p[0] == '-' {
				return "leading '-' in a component of file name " + command.QuoteAlways(name)
			}
		}
	}
	if (portable || strict) && name == "" {
		return "empty file name"
	}
	if portable {
		for i := range len(name) {
			c := name[i]
			if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("/._-", c) >= 0 {
				continue
			}
			return "nonportable character " + command.Quote(name[i:i+1]) + " in file name " + command.QuoteAlways(name)
		}
	} else {
		switch _, err := t.View.Lstat(name); {
		case err == nil:
			return ""
		case err != linux.ENOENT || name == "":
			return command.QuoteFile(name) + ": " + reason(err)
		}
	}
	most, longest := 4095, 255
	if portable {
		most, longest = 255, 14
	}
	if len(name) > most {
		return "limit " + strconv.Itoa(most) + " exceeded by length " + strconv.Itoa(len(name)) + " of file name " + command.QuoteAlways(name)
	}
	for _, p := range parts(name) {
		if len(p) > longest {
			return "limit " + strconv.Itoa(longest) + " exceeded by length " + strconv.Itoa(len(p)) + " of file name component " + command.QuoteAlways(p)
		}
	}
	return ""
}
