package file

import (
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

var basenameSpec = command.Spec{
	Name: "basename", Synopsis: "NAME [SUFFIX]\n  or:  basename OPTION... NAME...",
	About:   "Print NAME with any leading directory components removed. If specified, also remove a trailing SUFFIX.",
	Ordered: true,
	Options: []command.Option{
		{Short: 'a', Long: "multiple", Help: "support multiple arguments and treat each as a NAME"},
		{Short: 's', Long: "suffix", Arg: command.Required, Name: "SUFFIX", Help: "remove a trailing SUFFIX; implies -a"},
		{Short: 'z', Long: "zero", Help: "end each output line with NUL, not newline"},
	},
}

func runBasename(t *kernel.Task) int {
	a, status, ok := basenameSpec.Parse(t)
	if !ok {
		return status
	}
	suffix, many := a.Value("s")
	many = many || a.Has("a")
	names := a.Operands
	switch {
	case len(names) == 0:
		return basenameSpec.Usage(t, "missing operand")
	case !many && len(names) > 2:
		return basenameSpec.Usage(t, "extra operand %s", command.Quote(names[2]))
	case !many && len(names) == 2:
		suffix, names = names[1], names[:1]
	}
	w := command.Stdout(t)
	for _, name := range names {
		b := base(name)
		if suffix != "" && len(b) > len(suffix) {
			b = strings.TrimSuffix(b, suffix)
		}
		w.String(b)
		w.Byte(ending(a))
	}
	return 0
}

// ending is what -z makes the end of a line.
func ending(a *command.Args) byte {
	if a.Has("z") {
		return 0
	}
	return '\n'
}

// base gives the last part of a path, without slashes behind it.
func base(path string) string {
	s := strings.TrimRight(path, "/")
	if s == "" && path != "" {
		return "/"
	}
	return s[strings.LastIndexByte(s, '/')+1:]
}

// parent gives a path without its last part.
func parent(path string) string {
	s := strings.TrimRight(path, "/")
	i := strings.LastIndexByte(s, '/')
	if i < 0 {
		if s == "" && path != "" {
			return "/"
		}
		return "."
	}
	if s = strings.TrimRight(s[:i], "/"); s == "" {
		return "/"
	}
	return s
}

var dirnameSpec = command.Spec{
	Name: "dirname", Synopsis: "[OPTION] NAME...",
	About:   "Output each NAME with its last non-slash component and trailing slashes removed; if NAME contains no /'s, output '.'.",
	Options: []command.Option{{Short: 'z', Long: "zero", Help: "end each output line with NUL, not newline"}},
}

func runDirname(t *kernel.Task) int {
	a, status, ok := dirnameSpec.Parse(t)
	if !ok {
		return status
	}
	if len(a.Operands) == 0 {
		return dirnameSpec.Usage(t, "missing operand")
	}
	w := command.Stdout(t)
	for _, name := range a.Operands {
		w.String(parent(name))
		w.Byte(ending(a))
	}
	return 0
}

// Which parts of a path must be there.
const (
	allButLast = iota
	allParts
	noPart
)

// maxLinks is how many links a path may follow.
const maxLinks = 40

// canonical names a file by a path without links, "." and "..". Where links
// are not resolved, only the names are looked at.
func canonical(v *vfs.View, path string, need int, links bool) (string, error) {
	if path == "" {
		return "", linux.ENOENT
	}
	var done []string
	if path[0] != '/' {
		wd, err := v.Getwd()
		if err != nil {
			return "", err
		}
		done = parts(wd)
	}
	left := parts(path)
	slash := strings.HasSuffix(path, "/")
	followed := 0
	missing := false
	for len(left) > 0 {
		name := left[0]
		left = left[1:]
		switch name {
		case ".":
			continue
		case "..":
			done = done[:max(0, len(done)-1)]
			missing = false
			continue
		}
		done = append(done, name)
		if missing || !links && need != noPart && ordinary(left) {
			continue
		}
		at := "/" + strings.Join(done, "/")
		i, err := v.Lstat(at)
		last := len(left) == 0
		switch {
		case err == linux.ENOENT && (need == noPart || need == allButLast && last):
			missing = true
		case err != nil && need == noPart:
			missing = true
		case err != nil:
			return "", err
		case i.IsLink() && links:
			if followed++; followed > maxLinks {
				if need == noPart {
					continue
				}
				return "", linux.ELOOP
			}
			target, err := v.Readlink(at)
			if err != nil {
				return "", err
			}
			done = done[:len(done)-1]
			if target != "" && target[0] == '/' {
				done = done[:0]
			}
			if last {
				slash = slash || strings.HasSuffix(target, "/")
			}
			left = append(parts(target), left...)
		case (!last || slash) && need != noPart:
			if i.IsLink() {
				if i, err = v.Stat(at); err != nil {
					return "", err
				}
			}
			if !i.IsDir() {
				return "", linux.ENOTDIR
			}
		}
	}
	return "/" + strings.Join(done, "/"), nil
}

// ordinary reports whether the next part of a path is a name. Without links,
// the GNU library looks only at the last part, and at what "." and ".." follow.
func ordinary(left []string) bool {
	for _, name := range left {
		if name != "." {
			return name != ".."
		}
	}
	return false
}

// parts splits a path at its slashes.
func parts(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

var readlinkSpec = command.Spec{
	Name: "readlink", Synopsis: "[OPTION]... FILE...",
	About: "Print value of a symbolic link or canonical file name",
	Options: []command.Option{
		{Short: 'f', Long: "canonicalize", Help: "canonicalize by following every symlink in every component; all but the last component must exist"},
		{Short: 'e', Long: "canonicalize-existing", Help: "canonicalize; all components must exist"},
		{Short: 'm', Long: "canonicalize-missing", Help: "canonicalize, without requirements on components existence"},
		{Short: 'n', Long: "no-newline", Help: "do not output the trailing delimiter"},
		{Short: 'q', Long: "quiet", Help: "suppress most error messages (on by default)"},
		{Short: 's', Long: "silent", Help: "same as -q"},
		{Short: 'v', Long: "verbose", Help: "report error messages"},
		{Short: 'z', Long: "zero", Help: "end each output line with NUL, not newline"},
	},
}

func runReadlink(t *kernel.Task) int {
	a, status, ok := readlinkSpec.Parse(t)
	if !ok {
		return status
	}
	if len(a.Operands) == 0 {
		return readlinkSpec.Usage(t, "missing operand")
	}
	need, resolve, verbose := 0, false, false
	for _, f := range a.Flags {
		switch f.Key {
		case "f":
			need, resolve = allButLast, true
		case "e":
			need, resolve = allParts, true
		case "m":
			need, resolve = noPart, true
		case "v":
			verbose = true
		case "q", "s":
			verbose = false
		}
	}
	silent := a.Has("n")
	if silent && len(a.Operands) > 1 {
		t.Errorf("ignoring --no-newline with multiple arguments")
		silent = false
	}
	w := command.Stdout(t)
	for _, name := range a.Operands {
		var text string
		var err error
		if resolve {
			text, err = canonical(&t.View, name, need, true)
		} else {
			text, err = t.View.Readlink(name)
		}
		if err != nil {
			status = 1
			if verbose {
				command.FailFile(t, name, err)
			}
			continue
		}
		w.String(text)
		if !silent {
			w.Byte(ending(a))
		}
	}
	return status
}

var realpathSpec = command.Spec{
	Name: "realpath", Synopsis: "[OPTION]... FILE...",
	About: "Print the resolved absolute file name; all but the last component must exist",
	Options: []command.Option{
		{Short: 'e', Long: "canonicalize-existing", Help: "all components of the path must exist"},
		{Short: 'm', Long: "canonicalize-missing", Help: "no path components need exist or be a directory"},
		{Short: 'L', Long: "logical", Help: "resolve '..' components before symlinks"},
		{Short: 'P', Long: "physical", Help: "resolve symlinks as encountered (default)"},
		{Short: 'q', Long: "quiet", Help: "suppress most error messages"},
		{Long: "relative-to", Arg: command.Required, Name: "DIR", Help: "print the resolved path relative to DIR"},
		{Long: "relative-base", Arg: command.Required, Name: "DIR", Help: "print absolute paths unless paths below DIR"},
		{Short: 's', Long: "strip", Help: "don't expand symlinks"},
		{Long: "no-symlinks", Help: "same as -s"},
		{Short: 'z', Long: "zero", Help: "end each output line with NUL, not newline"},
	},
}

func runRealpath(t *kernel.Task) int {
	a, status, ok := realpathSpec.Parse(t)
	if !ok {
		return status
	}
	if len(a.Operands) == 0 {
		return realpathSpec.Usage(t, "missing operand")
	}
	need, links, logical := allButLast, true, false
	for _, f := range a.Flags {
		switch f.Key {
		case "e":
			need = allParts
		case "m":
			need = noPart
		case "L":
			links, logical = true, true
		case "s", "no-symlinks":
			links, logical = false, false
		case "P":
			links, logical = true, false
		}
	}
	real := func(name string) (string, error) {
		if logical {
			flat, err := canonical(&t.View, name, need, false)
			if err != nil {
				return "", err
			}
			return canonical(&t.View, flat, need, true)
		}
		return canonical(&t.View, name, need, links)
	}
	to, base := "", ""
	for _, x := range []struct {
		key  string
		into *string
	}{{"relative-to", &to}, {"relative-base", &base}} {
		dir, given := a.Value(x.key)
		if !given {
			continue
		}
		path, err := real(dir)
		if err == nil && need == allParts {
			if i, serr := t.View.Stat(path); serr == nil && !i.IsDir() {
				err = linux.ENOTDIR
			}
		}
		if err != nil {
			command.FailFile(t, dir, err)
			return 1
		}
		*x.into = path
	}
	switch {
	case base != "" && to == "":
		to = base
	case base != "" && !below(to, base):
		to, base = "", ""
	}
	w := command.Stdout(t)
	for _, name := range a.Operands {
		path, err := real(name)
		if err != nil {
			status = 1
			if !a.Has("q") {
				command.FailFile(t, name, err)
			}
			continue
		}
		if to != "" && (base == "" || below(path, base)) {
			path = relative(path, to)
		}
		w.String(path)
		w.Byte(ending(a))
	}
	return status
}

// below reports whether an absolute path is dir or lies in it.
func below(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

// relative names path as seen from the directory from; both are absolute and
// without links.
func relative(path, from string) string {
	p, f := parts(path), parts(from)
	same := 0
	for same < len(p) && same < len(f) && p[same] == f[same] {
		same++
	}
	up := make([]string, 0, len(f)-same+len(p)-same)
	for range f[same:] {
		up = append(up, "..")
	}
	if up = append(up, p[same:]...); len(up) == 0 {
		return "."
	}
	return strings.Join(up, "/")
}
