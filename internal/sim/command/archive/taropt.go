package archive

import (
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/pattern"
	"github.com/paddock-sandbox/paddock/internal/sim/strftime"
)

// tarOption is one of tar's: many have only a long name.
func tarOptions() []command.Option {
	o := []command.Option{
		{Short: 'A', Long: "catenate", Help: "(not supported)"}, {Short: 'c', Long: "create", Help: "create a new archive"},
		{Short: 'd', Long: "diff", Help: "find differences between archive and file system"}, {Long: "compare", Help: "same as -d"},
		{Short: 'r', Long: "append", Help: "append files to the end of an archive"}, {Short: 't', Long: "list", Help: "list the contents of an archive"},
		{Short: 'u', Long: "update", Help: "only append files newer than copy in archive"}, {Short: 'x', Long: "extract", Help: "extract files from an archive"}, {Long: "get", Help: "same as -x"},
		{Short: 'f', Long: "file", Arg: command.Required, Name: "ARCHIVE", Help: "use archive file"},
		{Short: 'C', Long: "directory", Arg: command.Required, Name: "DIR", Help: "change to directory DIR"},
		{Short: 'T', Long: "files-from", Arg: command.Required, Name: "FILE", Help: "get names to extract or create from FILE"},
		{Short: 'X', Long: "exclude-from", Arg: command.Required, Name: "FILE", Help: "exclude patterns listed in FILE"}, {Long: "exclude", Arg: command.Required, Name: "PATTERN", Help: "exclude files, given as a PATTERN"},
		{Short: 'I', Long: "use-compress-program", Arg: command.Required, Name: "PROG", Help: "filter through PROG"},
		{Short: 'b', Long: "blocking-factor", Arg: command.Required, Name: "BLOCKS", Help: "(ignored)"}, {Short: 'H', Long: "format", Arg: command.Required, Name: "FORMAT", Help: "create archive of the given format: gnu, pax, posix, ustar"},
		{Short: 'g', Long: "listed-incremental", Arg: command.Required, Name: "FILE", Help: "(not supported)"}, {Short: 'K', Long: "starting-file", Arg: command.Required, Name: "MEMBER", Help: "(ignored)"},
		{Short: 'L', Long: "tape-length", Arg: command.Required, Help: "(ignored)"}, {Short: 'N', Long: "newer", Arg: command.Required, Name: "DATE", Help: "only store files newer than DATE"}, {Short: 'V', Long: "label", Arg: command.Required, Name: "TEXT", Help: "(ignored)"},
	}
	for _, s := range []string{
		"z gzip", "j bzip2", "J xz", "a auto-compress", "v verbose", "p preserve-permissions", "O to-stdout", "k keep-old-files", "P absolute-names", "h dereference", "m touch",
		"w interactive", "S sparse", "U unlink-first", "W verify", "i ignore-zeros", "l check-links", "o no-same-owner", "s preserve-order", "n seek", "B read-full-records", "G incremental", "M multi-volume", "R block-number",
	} {
		o = append(o, command.Option{Short: s[0], Long: s[2:]})
	}
	for _, s := range strings.Fields(`zstd lzma lzip lzop gunzip ungzip wildcards no-wildcards null no-null anchored no-anchored numeric-owner same-owner same-permissions no-same-permissions
		no-recursion recursion overwrite overwrite-dir no-overwrite-dir keep-newer-files skip-old-files recursive-unlink remove-files totals one-file-system exclude-vcs exclude-backups exclude-caches show-transformed-names
		full-time posix old-archive portability no-auto-compress no-seek no-ignore-case ignore-case wildcards-match-slash no-wildcards-match-slash verbatim-files-from no-verbatim-files-from hard-dereference no-check-device
		check-device delay-directory-restore no-delay-directory-restore force-local no-quote-chars selinux acls xattrs no-selinux no-acls no-xattrs utc show-defaults show-omitted-dirs checkpoint keep-directory-symlink delete unquote no-unquote`) {
		o = append(o, command.Option{Long: s})
	}
	for _, s := range strings.Fields(`strip-components transform xform owner group mtime mode sort after-date newer-mtime quoting-style warning occurrence index-file to-command checkpoint-action record-size rsh-command suffix backup pax-option owner-map group-map atime-preserve hole-detection level volno-file exclude-tag exclude-ignore add-file`) {
		arg := command.Required
		if s == "backup" || s == "occurrence" || s == "atime-preserve" {
			arg = command.Optional
		}
		o = append(o, command.Option{Long: s, Arg: arg})
	}
	return o
}

// An operand of tar is a name, and the directory that -C chose for it.
type operandOf struct{ dir, name string }

// A tape is a run of tar.
type tape struct {
	t    *kernel.Task
	g    guardian
	book *command.Accounts
	zone *time.Location

	op       byte
	file     string
	fileSet  bool
	format   format
	auto     bool
	level    int
	verbose  int
	names    []operandOf
	dir      string // the last -C
	exclude  []*pattern.Pattern
	anchored bool
	wild     bool
	strip    int
	rename   []*substitution
	toStdout bool
	keepOld  bool
	skipOld  bool
	newer    bool
	absolute bool
	follow   bool
	touch    bool
	modes    bool // keep set-id bits and ignore the umask
	numeric  bool
	flat     bool // no recursion
	oneDev   bool
	remove   bool
	overDir  bool
	fullTime bool
	totals   bool
	original bool // names are shown as they become
	owner    string
	group    string
	mtime    time.Time
	bits     *command.ModeChange
	since    time.Time
	pax      string
	null     bool
	sameUID  bool
	ignoreZ  bool

	status int
	warned map[string]bool
	width  int
}

// fatal complains and gives tar's status for it.
func (p *tape) fatal(format string, args ...any) int {
	p.t.Errorf(format, args...)
	p.t.Errorf("Error is not recoverable: exiting now")
	return 2
}

func (p *tape) fail(format string, args ...any) {
	p.status = 2
	p.t.Errorf(format, args...)
}

func (p *tape) usage(format string, args ...any) int {
	p.t.Errorf(format, args...)
	_, _ = p.t.Write(2, []byte("Try 'tar --help' or 'tar --usage' for more information.\n"))
	return 2
}

// dashed turns the old form, "tar xzf FILE", into the new one.
func dashed(args []string) (out []string, missing string) {
	if len(args) == 0 || args[0] == "" || args[0][0] == '-' {
		return args, ""
	}
	rest := args[1:]
	for i := range len(args[0]) {
		c := args[0][i]
		out = append(out, "-"+string(c))
		if strings.IndexByte("fCTXIbHgKLNV", c) >= 0 {
			if len(rest) == 0 {
				return nil, string(c)
			}
			out = append(out, rest[0])
			rest = rest[1:]
		}
	}
	return append(out, rest...), ""
}

func runTar(t *kernel.Task) int {
	p := &tape{t: t, g: guardian{t: t}, book: &command.Accounts{View: &t.View}, zone: strftime.Zone(t.Getenv("TZ")), level: 6, warned: map[string]bool{}, width: 19}
	spec := &command.Spec{Name: "tar", Synopsis: "[OPTION...] [FILE]...", Exit: 64, NoTry: true, Ordered: true, Options: tarOptions(), About: "GNU 'tar' saves many files together into a single archive, and can restore individual files from the archive."}
	args, missing := dashed(t.Args[1:])
	if missing != "" {
		return p.usage("Old option '%s' requires an argument.", missing)
	}
	// Options and names may be mixed, and -C is for the names behind it.
	for {
		a, status, ok := spec.ParseArgs(t, args)
		if !ok {
			if status != 0 {
				_, _ = t.Write(2, []byte("Try 'tar --help' or 'tar --usage' for more information.\n"))
				return status
			}
			return 0
		}
		for _, f := range a.Flags {
			if status := p.option(f); status != 0 {
				return status
			}
		}
		if len(a.Operands) == 0 {
			break
		}
		p.names = append(p.names, operandOf{p.dir, a.Operands[0]})
		rest := a.Operands[1:]
		if len(rest) < len(args) && len(args) > len(a.Operands) && args[len(args)-len(a.Operands)-1] == "--" {
			for _, n := range rest {
				p.names = append(p.names, operandOf{p.dir, n})
			}
			break
		}
		args = rest
	}
	return p.run()
}

func (p *tape) option(f command.Flag) int {
	t := p.t
	number := func() (int, bool) {
		n, err := strconv.Atoi(f.Value)
		return n, err == nil && n >= 0
	}
	switch f.Key {
	case "c", "x", "t", "r", "u", "d", "get", "compare", "A", "delete":
		op := f.Key[0]
		switch f.Key {
		case "get":
			op = 'x'
		case "compare":
			op = 'd'
		case "A", "delete":
			return p.usage("the option %s is not supported", f.Spelt)
		}
		if p.op != 0 && p.op != op {
			return p.usage("You may not specify more than one '-Acdtrux', '--delete' or  '--test-label' option")
		}
		p.op = op
	case "f":
		p.file, p.fileSet = f.Value, true
	case "C":
		if strings.HasPrefix(f.Value, "/") || p.dir == "" {
			p.dir = f.Value
		} else {
			p.dir += "/" + f.Value
		}
	case "z", "gunzip", "ungzip":
		p.format = gz
	case "j":
		p.format, p.level = bz, 9
	case "J":
		p.format = xzs
	case "lzma":
		p.format = lz
	case "zstd":
		p.format, p.level = zst, 3
	case "a":
		p.auto = true
	case "I":
		prog, _, _ := strings.Cut(f.Value, " ")
		k := known(base(prog))
		if k.format == gz && base(prog) != "gzip" && base(prog) != "pigz" {
			return p.fatal("%s: Cannot exec: No such file or directory", prog)
		}
		p.format, p.level = k.format, k.level
	case "v":
		p.verbose++
	case "T":
		b, err := command.ReadAll(t, f.Value)
		if err != nil {
			return p.fatal("%s: Cannot open: %s", f.Value, reason(err))
		}
		p.list(string(b))
	case "X":
		b, err := command.ReadAll(t, f.Value)
		if err != nil {
			return p.fatal("%s: Cannot open: %s", f.Value, reason(err))
		}
		for line := range strings.SplitSeq(string(b), "\n") {
			if line != "" {
				p.exclude = append(p.exclude, pattern.Compile(strings.TrimSuffix(line, "/"), pattern.Options{}))
			}
		}
	case "exclude":
		p.exclude = append(p.exclude, pattern.Compile(strings.TrimSuffix(f.Value, "/"), pattern.Options{}))
	case "exclude-vcs":
		for _, n := range []string{".git", ".gitignore", ".gitmodules", ".gitattributes", ".svn", ".hg", ".hgignore", ".bzr", "CVS", ".cvsignore", "RCS", "SCCS", "_darcs"} {
			p.exclude = append(p.exclude, pattern.Compile(n, pattern.Options{}))
		}
	case "exclude-backups":
		for _, n := range []string{".#*", "*~", "#*#"} {
			p.exclude = append(p.exclude, pattern.Compile(n, pattern.Options{}))
		}
	case "anchored":
		p.anchored = true
	case "no-anchored":
		p.anchored = false
	case "wildcards":
		p.wild = true
	case "no-wildcards":
		p.wild = false
	case "strip-components":
		n, ok := number()
		if !ok {
			return p.usage("Invalid number of elements: %s", f.Value)
		}
		p.strip = n
	case "transform", "xform":
		for expr := range strings.SplitSeq(f.Value, ";") {
			s, err := newSubstitution(t, expr)
			if err != nil {
				return p.usage("%s", err)
			}
			p.rename = append(p.rename, s)
		}
	case "O":
		p.toStdout = true
	case "k":
		p.keepOld = true
	case "skip-old-files":
		p.skipOld = true
	case "keep-newer-files":
		p.newer = true
	case "P":
		p.absolute = true
	case "h":
		p.follow = true
	case "m":
		p.touch = true
	case "p", "same-permissions":
		p.modes = true
	case "no-same-permissions":
		p.modes = false
	case "same-owner":
		p.sameUID = true
	case "numeric-owner":
		p.numeric = true
	case "no-recursion":
		p.flat = true
	case "recursion":
		p.flat = false
	case "one-file-system":
		p.oneDev = true
	case "remove-files":
		p.remove = true
	case "keep-directory-symlink":
		p.overDir = true
	case "show-transformed-names":
		p.original = true
	case "full-time":
		p.fullTime = true
	case "totals":
		p.totals = true
	case "owner":
		p.owner = f.Value
	case "group":
		p.group = f.Value
	case "mtime":
		if i, err := t.View.Stat(f.Value); err == nil && (strings.HasPrefix(f.Value, "/") || strings.HasPrefix(f.Value, ".")) {
			p.mtime = i.Mtime
			break
		}
		m, err := strftime.Parse(f.Value, time.Now().In(p.zone))
		if err != nil {
			return p.usage("Invalid date format: %s", f.Value)
		}
		p.mtime = m
	case "mode":
		c, ok := command.ParseMode(f.Value)
		if !ok {
			return p.usage("Invalid mode given on option")
		}
		p.bits = &c
	case "N", "after-date", "newer-mtime":
		m, err := strftime.Parse(f.Value, time.Now().In(p.zone))
		if err != nil {
			return p.usage("Invalid date format: %s", f.Value)
		}
		p.since = m
	case "H", "posix", "old-archive", "portability":
		p.pax = f.Value
		if f.Key == "posix" {
			p.pax = "pax"
		}
		switch p.pax {
		case "gnu", "oldgnu", "pax", "posix", "ustar", "v7", "":
		default:
			return p.usage("Invalid archive format: %s", p.pax)
		}
	case "null":
		p.null = true
	case "no-null":
		p.null = false
	case "i":
		p.ignoreZ = true
	case "utc":
		p.zone = time.UTC
	case "add-file":
		p.names = append(p.names, operandOf{p.dir, f.Value})
	case "w", "to-command", "g", "G", "M":
		return p.usage("the option %s is not supported", f.Spelt)
	}
	return 0
}

// list takes the names of -T.
func (p *tape) list(text string) {
	sep := "\n"
	if p.null {
		sep = "\x00"
	}
	dir := p.dir
	next := false
	for name := range strings.SplitSeq(text, sep) {
		switch {
		case name == "":
		case next:
			dir, next = name, false
		case !p.null && name == "-C":
			next = true
		case !p.null && strings.HasPrefix(name, "-C"):
			dir = strings.TrimLeft(name[2:], " ")
		default:
			p.names = append(p.names, operandOf{dir, name})
		}
	}
}

func base(path string) string {
	s := strings.TrimRight(path, "/")
	return s[strings.LastIndexByte(s, '/')+1:]
}
