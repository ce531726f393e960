package file

import (
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/pattern"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

var duSpec = &command.Spec{
	Name: "du", Synopsis: "[OPTION]... [FILE]...\n  or:  du [OPTION]... --files0-from=F", About: "Summarize device usage of the set of FILEs, recursively for directories.",
	Options: []command.Option{
		{Short: '0', Long: "null", Help: "end each output line with NUL, not newline"}, {Short: 'a', Long: "all", Help: "write counts for all files, not just directories"},
		{Long: "apparent-size", Help: "print apparent sizes rather than device usage"}, {Short: 'B', Long: "block-size", Arg: command.Required, Name: "SIZE", Help: "scale sizes by SIZE before printing them"},
		{Short: 'b', Long: "bytes", Help: "equivalent to '--apparent-size --block-size=1'"}, {Short: 'c', Long: "total", Help: "produce a grand total"},
		{Short: 'D', Long: "dereference-args", Help: "dereference only symlinks that are listed on the command line"}, {Short: 'H', Help: "equivalent to --dereference-args (-D)"},
		{Short: 'd', Long: "max-depth", Arg: command.Required, Name: "N", Help: "print the total for a directory only if it is N or fewer levels below the command line argument"},
		{Long: "files0-from", Arg: command.Required, Name: "F", Help: "summarize device usage of the NUL-terminated file names specified in file F"}, {Short: 'h', Long: "human-readable", Help: "print sizes in human readable format"},
		{Long: "inodes", Help: "list inode usage information instead of block usage"}, {Short: 'k', Help: "like --block-size=1K"}, {Short: 'L', Long: "dereference", Help: "dereference all symbolic links"},
		{Short: 'l', Long: "count-links", Help: "count sizes many times if hard linked"}, {Short: 'm', Help: "like --block-size=1M"}, {Short: 'P', Long: "no-dereference", Help: "don't follow any symbolic links (this is the default)"},
		{Short: 'S', Long: "separate-dirs", Help: "for directories do not include size of subdirectories"}, {Long: "si", Help: "like -h, but use powers of 1000 not 1024"}, {Short: 's', Long: "summarize", Help: "display only a total for each argument"},
		{Short: 't', Long: "threshold", Arg: command.Required, Name: "SIZE", Help: "exclude entries smaller than SIZE if positive, or entries greater than SIZE if negative"},
		{Long: "time", Arg: command.Optional, Name: "WORD", Help: "show time of the last modification of any file in the directory"}, {Long: "time-style", Arg: command.Required, Name: "STYLE", Help: "show times using STYLE"},
		{Short: 'X', Long: "exclude-from", Arg: command.Required, Name: "FILE", Help: "exclude files that match any pattern in FILE"}, {Long: "exclude", Arg: command.Required, Name: "PATTERN", Help: "exclude files that match PATTERN"},
		{Short: 'x', Long: "one-file-system", Help: "skip directories on different file systems"},
	},
}

// A tally is what was found below a directory.
type tally struct {
	bytes, files uint64
	latest       vfs.Info
}

func (a *tally) add(b tally) {
	a.bytes += b.bytes
	a.files += b.files
	if b.latest.Mtime.After(a.latest.Mtime) {
		a.latest = b.latest
	}
}

type usage struct {
	t                           *kernel.Task
	w                           *command.Writer
	unit                        command.SizeUnit
	all, apparent, inodes, many bool
	separate, times             bool
	depth                       int // -1 is any
	threshold                   int64
	exclude                     []*pattern.Pattern
	end                         byte
	style                       string

	seen   map[node]bool
	sums   []tally // by depth: what the directory there holds
	own    []tally // with -S: without directories in it
	total  tally
	status int
}

func runDu(t *kernel.Task) int {
	a, status, ok := duSpec.Parse(t)
	if !ok {
		return status
	}
	u := &usage{t: t, w: command.Stdout(t), unit: command.DefaultSizeUnit(t, "DU_BLOCK_SIZE"), depth: -1, end: '\n', seen: map[node]bool{}, style: "long-iso"}
	o := command.WalkOptions{Post: true}
	summary, total := false, false
	for _, f := range a.Flags {
		switch f.Key {
		case "0":
			u.end = 0
		case "a":
			u.all = true
		case "apparent-size":
			u.apparent = true
		case "B":
			unit, err := command.ParseSizeUnit(f.Value)
			if err != nil {
				badSize(t, f, err)
				return 1
			}
			u.unit = unit
		case "b":
			u.apparent, u.unit = true, command.SizeUnit{Size: 1}
		case "c":
			total = true
		case "D", "H":
			o.Follow = command.FollowRoots
		case "L":
			o.Follow = command.FollowAll
		case "P":
			o.Follow = command.FollowNever
		case "d":
			n, err := strconv.ParseUint(f.Value, 10, 31)
			if err != nil {
				return duSpec.Usage(t, "invalid maximum depth %s", command.Quote(f.Value))
			}
			u.depth = int(n)
		case "h":
			u.unit = command.HumanSizes()
		case "si":
			u.unit = command.SISizes()
		case "inodes":
			u.inodes = true
		case "k":
			u.unit = command.SizeUnit{Size: 1 << 10}
		case "m":
			u.unit = command.SizeUnit{Size: 1 << 20}
		case "l":
			u.many = true
		case "S":
			u.separate = true
		case "s":
			summary = true
		case "t":
			n, err := command.ParseInt(f.Value, command.SizeSuffixes, -1<<62, 1<<62)
			if err != nil || n == 0 {
				t.Errorf("invalid --threshold argument %s", command.Quote(f.Value))
				return 1
			}
			u.threshold = n
		case "time":
			u.times = true
		case "time-style":
			u.style = f.Value
		case "exclude":
			u.exclude = append(u.exclude, glob(f.Value))
		case "X":
			b, err := command.ReadAll(t, f.Value)
			if err != nil {
				command.FailFile(t, f.Value, err)
				return 1
			}
			for line := range strings.SplitSeq(string(b), "\n") {
				if line != "" {
					u.exclude = append(u.exclude, glob(line))
				}
			}
		case "x":
			o.OneDev = true
		}
	}
	switch {
	case summary && u.all:
		return duSpec.Usage(t, "cannot both summarize and show all entries")
	case summary && u.depth > 0:
		t.Errorf("warning: summarizing conflicts with --max-depth=%d", u.depth)
		return 1
	case summary:
		u.depth = 0
	}
	files := a.Operands
	if from, given := a.Value("files0-from"); given {
		if len(files) > 0 {
			t.Errorf("extra operand %s", command.Quote(files[0]))
			_, _ = t.Write(2, []byte("file operands cannot be combined with --files0-from\nTry 'du --help' for more information.\n"))
			return 1
		}
		b, err := command.ReadAll(t, from)
		if err != nil {
			t.Errorf("cannot open %s for reading: %s", command.QuoteAlways(from), reason(err))
			return 1
		}
		files = strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
	} else if len(files) == 0 {
		files = []string{"."}
	}
	for _, f := range files {
		if f == "" {
			t.Errorf("cannot access '': No such file or directory")
			u.status = 1
			continue
		}
		command.Walk(t, f, o, u.visit)
	}
	if total {
		u.print(u.total, "total")
	}
	return u.status
}

func (u *usage) visit(e *command.WalkEntry) command.WalkOrder {
	for len(u.sums) <= e.Depth+1 {
		u.sums, u.own = append(u.sums, tally{}), append(u.own, tally{})
	}
	switch e.What {
	case command.VisitLost:
		u.t.Errorf("cannot access %s: %s", command.QuoteAlways(e.Path), reason(e.Err))
		u.status = 1
		return command.WalkNext
	case command.VisitFailed:
		u.t.Errorf("cannot read directory %s: %s", command.QuoteAlways(e.Path), reason(e.Err))
		u.status = 1
		return command.WalkNext
	case command.VisitLoop:
		return command.WalkSkip
	case command.VisitBefore:
		if u.excluded(e) {
			return command.WalkSkip
		}
		if !u.many && (e.Info.Nlink > 1 && !e.Info.IsDir() || e.Info.IsDir()) && e.Info.Ino != 0 {
			if u.seen[nodeOf(e.Info)] {
				return command.WalkSkip
			}
			u.t.Grow(32)
			u.seen[nodeOf(e.Info)] = true
		}
		if e.Info.IsDir() {
			u.sums[e.Depth+1], u.own[e.Depth+1] = tally{}, tally{}
			return command.WalkNext
		}
		u.count(e, u.amount(e.Info))
		if u.all || e.Depth == 0 {
			if u.depth < 0 || e.Depth <= u.depth {
				u.print(u.amount(e.Info), e.Path)
			}
		}
	case command.VisitAfter:
		sum := u.amount(e.Info)
		own := sum
		below := u.sums[e.Depth+1]
		own.add(u.own[e.Depth+1])
		sum.add(below)
		u.sums[e.Depth].add(sum)
		if e.Depth == 0 {
			u.total.add(sum)
		}
		shown := sum
		if u.separate {
			shown = own
		}
		if u.depth < 0 || e.Depth <= u.depth {
			u.print(shown, e.Path)
		}
	}
	return command.WalkNext
}

func (u *usage) count(e *command.WalkEntry, n tally) {
	u.sums[e.Depth].add(n)
	u.own[e.Depth].add(n)
	if e.Depth == 0 {
		u.total.add(n)
	}
}

func (u *usage) excluded(e *command.WalkEntry) bool {
	for _, p := range u.exclude {
		name := e.Path
		for {
			if ok, err := p.Match(name, meter{u.t}); ok && err == nil {
				return true
			}
			i := strings.IndexByte(name, '/')
			if i < 0 {
				break
			}
			name = name[i+1:]
		}
	}
	return false
}

func (u *usage) amount(i vfs.Info) tally {
	n := tally{bytes: uint64(max(i.Blocks, 0)) * 512, files: 1, latest: i}
	if u.apparent {
		n.bytes = 0
		if i.IsRegular() || i.IsLink() || i.IsDir() {
			n.bytes = uint64(i.Size)
		}
	}
	return n
}

func (u *usage) print(n tally, path string) {
	if u.threshold > 0 && n.bytes < uint64(u.threshold) || u.threshold < 0 && n.bytes > uint64(-u.threshold) {
		return
	}
	if u.inodes {
		u.w.String(command.SizeUnit{Size: 1}.Text(n.files))
	} else {
		u.w.String(u.unit.Text(n.bytes))
	}
	u.w.Byte('\t')
	if u.times {
		m := n.latest.Mtime.In(zone(u.t))
		switch {
		case u.style == "full-iso":
			u.w.String(m.Format("2006-01-02 15:04:05.000000000 -0700"))
		case u.style == "iso":
			u.w.String(m.Format("2006-01-02"))
		case strings.HasPrefix(u.style, "+"):
			u.w.String(moment(m, u.style[1:]))
		default:
			u.w.String(m.Format("2006-01-02 15:04"))
		}
		u.w.Byte('\t')
	}
	u.w.String(path)
	u.w.Byte(u.end)
}
