package file

import (
	"path"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/pattern"
)

var lsSpec = &command.Spec{
	Name: "ls", Synopsis: "[OPTION]... [FILE]...", Exit: 2,
	About: "List information about the FILEs (the current directory by default).",
	Options: []command.Option{
		{Short: 'a', Long: "all", Help: "do not ignore entries starting with ."},
		{Short: 'A', Long: "almost-all", Help: "do not list implied . and .."},
		{Long: "author", Help: "with -l, print the author of each file"},
		{Short: 'b', Long: "escape", Help: "print C-style escapes for nongraphic characters"},
		{Long: "block-size", Arg: command.Required, Name: "SIZE", Help: "with -l, scale sizes by SIZE when printing them"},
		{Short: 'B', Long: "ignore-backups", Help: "do not list implied entries ending with ~"},
		{Short: 'c', Help: "with -lt: sort by, and show, ctime; with -l: show ctime; otherwise: sort by ctime"},
		{Short: 'C', Help: "list entries by columns"},
		{Long: "color", Arg: command.Optional, Name: "WHEN", Help: "color the output WHEN"},
		{Short: 'd', Long: "directory", Help: "list directories themselves, not their contents"},
		{Short: 'f', Help: "list all entries in directory order"},
		{Short: 'F', Long: "classify", Arg: command.None, Help: "append indicator (one of */=>@|) to entries"},
		{Long: "file-type", Help: "likewise, except do not append '*'"},
		{Long: "format", Arg: command.Required, Name: "WORD", Help: "across, commas, horizontal, long, single-column, verbose, vertical"},
		{Long: "full-time", Help: "like -l --time-style=full-iso"},
		{Short: 'g', Help: "like -l, but do not list owner"},
		{Long: "group-directories-first", Help: "group directories before files"},
		{Short: 'G', Long: "no-group", Help: "in a long listing, don't print group names"},
		{Short: 'h', Long: "human-readable", Help: "with -l and -s, print sizes like 1K 234M 2G etc."},
		{Long: "si", Help: "likewise, but use powers of 1000 not 1024"},
		{Short: 'H', Long: "dereference-command-line", Help: "follow symbolic links listed on the command line"},
		{Long: "dereference-command-line-symlink-to-dir", Help: "follow each command line symbolic link that points to a directory"},
		{Long: "hide", Arg: command.Required, Name: "PATTERN", Help: "do not list implied entries matching shell PATTERN"},
		{Long: "hyperlink", Arg: command.Optional, Name: "WHEN", Help: "(ignored)"},
		{Long: "indicator-style", Arg: command.Required, Name: "WORD", Help: "append indicator with style WORD: none, slash, file-type, classify"},
		{Short: 'i', Long: "inode", Help: "print the index number of each file"},
		{Short: 'I', Long: "ignore", Arg: command.Required, Name: "PATTERN", Help: "do not list implied entries matching shell PATTERN"},
		{Short: 'k', Long: "kibibytes", Help: "default to 1024-byte blocks for file system usage"},
		{Short: 'l', Help: "use a long listing format"},
		{Short: 'L', Long: "dereference", Help: "show information for the file the link references"},
		{Short: 'm', Help: "fill width with a comma separated list of entries"},
		{Short: 'n', Long: "numeric-uid-gid", Help: "like -l, but list numeric user and group IDs"},
		{Short: 'N', Long: "literal", Help: "print entry names without quoting"},
		{Short: 'o', Help: "like -l, but do not list group information"},
		{Short: 'p', Help: "append / indicator to directories"},
		{Short: 'q', Long: "hide-control-chars", Help: "print ? instead of nongraphic characters"},
		{Long: "show-control-chars", Help: "show nongraphic characters as-is"},
		{Short: 'Q', Long: "quote-name", Help: "enclose entry names in double quotes"},
		{Long: "quoting-style", Arg: command.Required, Name: "WORD", Help: "use quoting style WORD for entry names"},
		{Short: 'r', Long: "reverse", Help: "reverse order while sorting"},
		{Short: 'R', Long: "recursive", Help: "list subdirectories recursively"},
		{Short: 's', Long: "size", Help: "print the allocated size of each file, in blocks"},
		{Short: 'S', Help: "sort by file size, largest first"},
		{Long: "sort", Arg: command.Required, Name: "WORD", Help: "sort by WORD instead of name: none, size, time, version, extension, width"},
		{Long: "time", Arg: command.Required, Name: "WORD", Help: "select which timestamp used to display or sort"},
		{Long: "time-style", Arg: command.Required, Name: "TIME_STYLE", Help: "time/date format with -l"},
		{Short: 't', Help: "sort by time, newest first"},
		{Short: 'T', Long: "tabsize", Arg: command.Required, Name: "COLS", Help: "assume tab stops at each COLS instead of 8"},
		{Short: 'u', Help: "with -lt: sort by, and show, access time"},
		{Short: 'U', Help: "do not sort; list entries in directory order"},
		{Short: 'v', Help: "natural sort of (version) numbers within text"},
		{Short: 'w', Long: "width", Arg: command.Required, Name: "COLS", Help: "set output width to COLS. 0 means no limit"},
		{Short: 'x', Help: "list entries by lines instead of by columns"},
		{Short: 'X', Help: "sort alphabetically by entry extension"},
		{Short: 'Z', Long: "context", Help: "print any security context of each file"},
		{Long: "zero", Help: "end each output line with NUL, not newline"},
		{Short: '1', Help: "list one file per line"},
	},
}

// options reads the options, each in its turn.
func (l *lister) options(a *command.Args) (status int, ok bool) {
	t := l.t
	_, cols, terminal := command.TerminalSize(t, 1)
	if terminal {
		l.shape, l.hide, l.quoting = columns, true, "shell-escape"
		if cols > 0 {
			l.width = cols
		}
	}
	if w, ok := widthOf(t.Getenv("COLUMNS")); ok {
		l.width = w
	}
	switch path.Base(t.Args[0]) {
	case "dir":
		l.shape, l.quoting = columns, "escape"
	case "vdir":
		l.shape, l.quoting = detailed, "escape"
	}
	style := t.Getenv("QUOTING_STYLE")
	if style != "" {
		if found, err := command.Choice(style, quotingStyles()); err == nil {
			l.quoting = found
		}
	}
	sorted, timed, blockSaid, sizeSaid := false, false, false, false
	choose := func(option, given string, list []string) (string, bool) {
		found, err := command.Choice(given, list)
		if err != nil {
			_ = command.BadChoice(t, lsSpec, option, given, err, list)
			status = 1 // and not that of other complaints
			return "", false
		}
		return found, true
	}
	colour := "never"
	timeStyle := t.Getenv("TIME_STYLE")
	for _, f := range a.Flags {
		found, good := "", true
		switch f.Key {
		case "a":
			l.all = true
		case "A":
			l.almost, l.all = true, false
		case "author":
			l.author = true
		case "b":
			l.quoting = "escape"
		case "block-size":
			u, err := command.ParseSizeUnit(f.Value)
			if err != nil {
				badSize(t, f, err)
				return 2, false
			}
			l.unit, l.blockUnit, blockSaid, sizeSaid = u, u, true, true
		case "B":
			l.ignore = append(l.ignore, glob("*~"), glob(".*~"))
		case "c":
			l.when, timed = 'c', true
		case "u":
			l.when, timed = 'a', true
		case "C":
			l.shape = columns
		case "color":
			colour = "always"
			if f.Given {
				list := []string{"always", "yes", "force", "never", "no", "none", "auto", "tty", "if-tty"}
				if colour, good = choose("--color", f.Value, list); !good {
					return status, false
				}
			}
		case "d":
			l.dirs = true
		case "f":
			l.all, l.sort, sorted, colour = true, "none", true, "never"
			if l.shape == detailed {
				l.shape = onePerLine
				if terminal {
					l.shape = columns
				}
			}
		case "F":
			l.classify = 'F'
		case "file-type":
			l.classify = 't'
		case "format":
			found, good = choose("--format", f.Value, []string{"verbose", "long", "commas", "horizontal", "across", "vertical", "single-column"})
			l.shape = map[string]shape{"verbose": detailed, "long": detailed, "commas": commas, "horizontal": across, "across": across, "vertical": columns, "single-column": onePerLine}[found]
		case "full-time":
			l.shape, timeStyle = detailed, "full-iso"
		case "g":
			l.shape, l.noOwner = detailed, true
		case "group-directories-first":
			l.dirsFirst = true
		case "G":
			l.noGroup = true
		case "h":
			l.unit, l.blockUnit, sizeSaid, blockSaid = command.HumanSizes(), command.HumanSizes(), true, true
		case "si":
			l.unit, l.blockUnit, sizeSaid, blockSaid = command.SISizes(), command.SISizes(), true, true
		case "k":
			if !blockSaid && !sizeSaid {
				l.blockUnit = command.SizeUnit{Size: 1024}
			}
		case "H":
			l.follow = command.FollowRoots
		case "dereference-command-line-symlink-to-dir":
			l.followDirs = true
		case "hide":
			l.hidden = append(l.hidden, glob(f.Value))
		case "I":
			l.ignore = append(l.ignore, glob(f.Value))
		case "indicator-style":
			found, good = choose("--indicator-style", f.Value, []string{"none", "slash", "file-type", "classify"})
			l.classify = map[string]byte{"none": 0, "slash": '/', "file-type": 't', "classify": 'F'}[found]
		case "i":
			l.inode = true
		case "l":
			l.shape = detailed
		case "L":
			l.follow = command.FollowAll
		case "m":
			l.shape = commas
		case "n":
			l.numeric, l.shape = true, detailed
		case "N":
			l.quoting = "literal"
		case "o":
			l.shape, l.noGroup = detailed, true
		case "p":
			l.classify = '/'
		case "q":
			l.hide = true
		case "show-control-chars":
			l.hide = false
		case "Q":
			l.quoting = "c"
		case "quoting-style":
			l.quoting, good = choose("--quoting-style", f.Value, quotingStyles())
		case "r":
			l.reverse = true
		case "R":
			l.recursive = true
		case "s":
			l.blocks = true
		case "S":
			l.sort, sorted = "size", true
		case "t":
			l.sort, sorted = "time", true
		case "U":
			l.sort, sorted = "none", true
		case "v":
			l.sort, sorted = "version", true
		case "X":
			l.sort, sorted = "extension", true
		case "sort":
			l.sort, good = choose("--sort", f.Value, []string{"none", "time", "size", "extension", "version", "width"})
			sorted = true
		case "time":
			found, good = choose("--time", f.Value, []string{"atime", "access", "use", "ctime", "status", "mtime", "modification", "birth", "creation"})
			l.when = map[string]byte{"atime": 'a', "access": 'a', "use": 'a', "ctime": 'c', "status": 'c', "birth": 'w', "creation": 'w'}[found]
			timed = true
		case "time-style":
			timeStyle = f.Value
		case "T":
			if l.tab, good = widthOf(f.Value); !good {
				t.Errorf("invalid tab size: %s", command.Quote(f.Value))
				return 2, false
			}
		case "w":
			if l.width, good = widthOf(f.Value); !good {
				t.Errorf("invalid line width: %s", command.Quote(f.Value))
				return 2, false
			}
		case "x":
			l.shape = across
		case "Z":
			l.context = true
		case "zero":
			l.eol, l.hide, l.quoting = 0, false, "literal"
			if l.shape != detailed {
				l.shape = onePerLine
			}
			colour = "never"
		case "1":
			if l.shape != detailed {
				l.shape = onePerLine
			}
		}
		if !good {
			return status, false
		}
	}
	if !sorted && timed && l.shape != detailed {
		l.sort = "time"
	}
	if l.follow == command.FollowNever && !l.dirs && l.classify != 'F' && l.shape != detailed {
		l.followDirs = true
	}
	if l.recursive && l.dirs {
		l.recursive = false
	}
	switch colour {
	case "always", "yes", "force":
		l.colour = true
	case "auto", "tty", "if-tty":
		l.colour = terminal
	}
	if l.colour {
		spec := t.Getenv("LS_COLORS")
		l.colours = palette(spec)
		l.colour = spec != "" || t.Getenv("COLORTERM") != "" || coloured(t.Getenv("TERM"))
	}
	if l.shape == detailed && timeStyle != "" {
		style := strings.TrimPrefix(timeStyle, "posix-")
		if style[:min(1, len(style))] != "+" {
			list := []string{"full-iso", "long-iso", "iso", "locale"}
			found, err := command.Choice(style, list)
			if err != nil {
				t.Errorf("%s %s for %s", err, command.Quote(timeStyle), command.Quote("time style"))
				_, _ = t.Write(2, []byte("Valid arguments are:\n  - [posix-]full-iso\n  - [posix-]long-iso\n  - [posix-]iso\n  - [posix-]locale\n  - +FORMAT (e.g., +%H:%M) for a 'date'-style format\nTry 'ls --help' for more information.\n"))
				return 2, false
			}
			style = found
		}
		l.style = style
	}
	return 0, true
}

func quotingStyles() []string {
	return []string{"literal", "shell", "shell-always", "shell-escape", "shell-escape-always", "c", "c-maybe", "escape", "locale", "clocale"}
}

func glob(p string) *pattern.Pattern { return pattern.Compile(p, pattern.Options{}) }
