package file

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/command/sort"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/pattern"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

var treeSpec = &command.Spec{
	Name: "tree", Synopsis: "[-acdfghilnpqrstuvxACDFQNSUX] [-L level] [-I pattern] [-P pattern] [-o filename] [directory ...]", NoTry: true, About: "List contents of directories in a tree-like format.",
	Options: []command.Option{
		{Short: 'a', Help: "all files are listed"}, {Short: 'd', Help: "list directories only"}, {Short: 'l', Help: "follow symbolic links like directories"}, {Short: 'f', Help: "print the full path prefix for each file"},
		{Short: 'x', Help: "stay on current filesystem only"}, {Short: 'L', Arg: command.Required, Name: "level", Help: "descend only level directories deep"}, {Short: 'R', Help: "(ignored)"},
		{Short: 'P', Arg: command.Required, Name: "pattern", Help: "list only those files that match the pattern given"}, {Short: 'I', Arg: command.Required, Name: "pattern", Help: "do not list files that match the given pattern"},
		{Long: "gitignore", Help: "(ignored)"}, {Long: "ignore-case", Help: "ignore case when pattern matching"}, {Long: "matchdirs", Help: "include directory names in -P pattern matching"}, {Long: "prune", Help: "prune empty directories from the output"},
		{Long: "noreport", Help: "turn off file/directory count at end of tree listing"}, {Long: "charset", Arg: command.Required, Name: "X", Help: "use charset X for terminal output"}, {Long: "filelimit", Arg: command.Required, Name: "#", Help: "do not descend dirs with more than # files in them"},
		{Short: 'q', Help: "print non-printable characters as '?'"}, {Short: 'N', Help: "print non-printable characters as is"}, {Short: 'Q', Help: "quote filenames with double quotes"}, {Short: 'p', Help: "print the protections for each file"},
		{Short: 'u', Help: "displays file owner or UID number"}, {Short: 'g', Help: "displays file group owner or GID number"}, {Short: 's', Help: "print the size in bytes of each file"}, {Short: 'h', Help: "print the size in a more human readable way"}, {Long: "si", Help: "like -h, but use in SI units"},
		{Long: "du", Help: "compute size of directories by their contents"}, {Short: 'D', Help: "print the date of last modification"}, {Short: 'F', Help: "appends '/', '=', '*', '@', '|' or '>' as per ls -F"}, {Long: "inodes", Help: "print inode number of each file"}, {Long: "device", Help: "print device ID number to which each file belongs"},
		{Short: 'v', Help: "sort files alphanumerically by version"}, {Short: 't', Help: "sort files by last modification time"}, {Short: 'c', Help: "sort files by last status change time"}, {Short: 'U', Help: "leave files unsorted"}, {Short: 'r', Help: "reverse the order of the sort"},
		{Long: "dirsfirst", Help: "list directories before files"}, {Long: "filesfirst", Help: "list files before directories"}, {Long: "sort", Arg: command.Optional, Name: "X", Help: "select sort: name, version, size, mtime, ctime"}, {Short: 'i', Help: "don't print indentation lines"}, {Short: 'A', Help: "(ignored)"}, {Short: 'S', Help: "(ignored)"},
		{Short: 'n', Help: "turn colorization off always"}, {Short: 'C', Help: "turn colorization on always"}, {Short: 'J', Help: "prints out a JSON representation of the tree"}, {Short: 'X', Help: "(not supported)"}, {Short: 'o', Arg: command.Required, Name: "filename", Help: "output to file instead of stdout"}, {Long: "timefmt", Arg: command.Required, Name: "FORMAT", Help: "print and format time according to the format"}, {Long: "fromfile", Help: "(not supported)"}, {Long: "nolinks", Help: "turn off hyperlinks"}, {Long: "info", Help: "(ignored)"},
	},
}

// A planter is a run of tree.
type planter struct {
	t       *kernel.Task
	w       *command.Writer
	a       *command.Args
	book    *command.Accounts
	level   int
	limit   int
	only    []*pattern.Pattern
	not     []*pattern.Pattern
	sort    string
	lines   [3]string // of the indentation: through, branch, last
	plain   bool
	json    bool
	timefmt string
	dirs    int
	files   int
	status  int
}

// leaf is an entry that is shown.
type leaf struct {
	name string
	info vfs.Info
	to   vfs.Info // of a link
	text string   // of a link
	err  error
}

func runTree(t *kernel.Task) int {
	a, status, ok := treeSpec.Parse(t)
	if !ok {
		return status
	}
	p := &planter{t: t, w: command.Stdout(t), a: a, book: &command.Accounts{View: &t.View}, level: -1, sort: "name", plain: a.Has("i"), json: a.Has("J"), lines: [3]string{"│\u00a0\u00a0 ", "├── ", "└── "}}
	for _, f := range a.Flags {
		switch f.Key {
		case "L":
			n, err := strconv.Atoi(f.Value)
			if err != nil || n <= 0 {
				_, _ = t.Write(2, []byte("tree: Invalid level, must be greater than 0.\n"))
				return 1
			}
			p.level = n
		case "filelimit":
			n, err := strconv.Atoi(f.Value)
			if err != nil {
				return treeSpec.Usage(t, "invalid limit %s", f.Value)
			}
			p.limit = n
		case "P":
			p.only = append(p.only, p.patterns(f.Value)...)
		case "I":
			p.not = append(p.not, p.patterns(f.Value)...)
		case "v":
			p.sort = "version"
		case "t":
			p.sort = "mtime"
		case "c":
			p.sort = "ctime"
		case "U":
			p.sort = "none"
		case "sort":
			if p.sort = f.Value; !f.Given {
				p.sort = "name"
			}
		case "charset":
			if !strings.HasPrefix(strings.ToUpper(f.Value), "UTF") {
				p.lines = [3]string{"|   ", "|-- ", "`-- "}
			}
		case "timefmt":
			p.timefmt = f.Value
		case "X", "fromfile":
			_, _ = t.Write(2, []byte("tree: the option "+f.Spelt+" is not supported\n"))
			return 1
		}
	}
	if name, given := a.Value("o"); given {
		o, err := command.Create(t, name, linux.O_TRUNC)
		if err != nil {
			_, _ = t.Write(2, []byte("tree: invalid filename '"+name+"'\n"))
			return 1
		}
		defer func() { _ = o.Close() }() // its writer tells of errors
		p.w = command.NewWriter(o, func(error) { t.Exit(1) })
		defer p.w.Flush()
	}
	roots := a.Operands
	if len(roots) == 0 {
		roots = []string{"."}
	}
	if p.json {
		p.w.String("[\n")
	}
	for i, root := range roots {
		if p.json && i > 0 {
			p.w.String("  ,\n")
		}
		p.root(root)
	}
	p.report()
	return p.status
}

func (p *planter) patterns(s string) []*pattern.Pattern {
	var list []*pattern.Pattern
	for part := range strings.SplitSeq(s, "|") {
		list = append(list, pattern.Compile(strings.TrimSuffix(part, "/"), pattern.Options{IgnoreCase: p.a.Has("ignore-case")}))
	}
	return list
}

func (p *planter) match(list []*pattern.Pattern, name string) bool {
	for _, x := range list {
		if ok, err := x.Match(name, meter{p.t}); ok && err == nil {
			return true
		}
	}
	return false
}

func (p *planter) report() {
	if p.json {
		if !p.a.Has("noreport") {
			files := ""
			if !p.a.Has("d") {
				files = fmt.Sprintf(",\"files\":%d", p.files)
			}
			p.w.String(fmt.Sprintf(",\n  {\"type\":\"report\",\"directories\":%d%s}\n", p.dirs, files))
		}
		p.w.String("]\n")
		return
	}
	if p.a.Has("noreport") {
		return
	}
	noun := func(n int, one, many string) string {
		if n == 1 {
			return "1 " + one
		}
		return strconv.Itoa(n) + " " + many
	}
	line := "\n" + noun(p.dirs, "directory", "directories")
	if !p.a.Has("d") {
		line += ", " + noun(p.files, "file", "files")
	}
	p.w.String(line + "\n")
}

func (p *planter) root(name string) {
	i, err := p.t.View.Stat(name)
	l := leaf{name: name, info: i, err: err}
	if err != nil {
		l.info, _ = p.t.View.Lstat(name) // what is not there at all is told too
		p.status = 2
		if p.json {
			p.w.String("  " + `{"type":"directory","name":` + quoted(name) + `,"contents":[` + "{\"error\":\"error opening dir\"}\n  ]}")
			return
		}
		p.w.String(name + "  [error opening dir]\n")
		return
	}
	p.dirs++
	if p.json {
		p.w.String("  " + `{"type":"directory","name":` + quoted(name) + p.jsonInfo(l))
	} else {
		p.w.String(p.prefix(l) + name)
		if p.a.Has("F") && i.IsDir() {
			p.w.String("/")
		}
	}
	if !i.IsDir() {
		p.status = 2
		if !p.json {
			p.w.String("  [error opening dir]\n")
		}
		return
	}
	p.branches(name)
	if p.json {
		p.w.String("}\n")
	}
}

// A bough is a directory that is being listed.
type bough struct {
	view   vfs.View
	leaves []leaf
	path   string
	indent string
	ends   string // what closes it in JSON
}

// branches lists what lies below a root. It keeps its place in a list.
func (p *planter) branches(root string) {
	first, ok := p.enter(&p.t.View, root, root, "")
	if !p.json {
		p.w.String("\n")
	} else {
		p.w.String(`,"contents":[`)
	}
	if !ok {
		return
	}
	stack := []bough{first}
	if p.json && len(first.leaves) > 0 {
		p.w.String("\n")
	}
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		if len(top.leaves) == 0 {
			if p.json {
				p.w.String(strings.Repeat("  ", len(stack)) + "]" + top.ends)
			}
			stack = stack[:len(stack)-1]
			continue
		}
		l := top.leaves[0]
		top.leaves = top.leaves[1:]
		last := len(top.leaves) == 0
		isDir := l.info.IsDir() || p.a.Has("l") && l.to.IsDir()
		if l.info.IsDir() || l.info.IsLink() && l.to.IsDir() && (p.a.Has("l") || p.a.Has("d")) || l.info.IsLink() && l.to.IsDir() {
			p.dirs++
		} else {
			p.files++
		}
		path := command.JoinPath(top.path, l.name)
		deeper := isDir && (p.level < 0 || len(stack) < p.level)
		var next bough
		ok := false
		if deeper {
			next, ok = p.enter(&top.view, l.name, path, top.indent)
			if p.limit > 0 && len(next.leaves) > p.limit {
				l.text = "  [" + strconv.Itoa(len(next.leaves)) + " entries exceeds filelimit, not opening dir]"
				ok = false
			} else if !ok {
				l.text = "  [error opening dir]"
				p.status = 2
			}
		}
		if p.json {
			p.jsonLeaf(l, path, len(stack)+1, last, ok)
		} else {
			p.line(l, path, top.indent, last)
		}
		if !ok {
			continue
		}
		next.indent = top.indent
		switch {
		case last:
			next.indent += "    "
		default:
			next.indent += p.lines[0]
		}
		next.ends = "},\n"
		if last {
			next.ends = "}\n"
		}
		p.t.Step(len(path) >> 4)
		stack = append(stack, next)
	}
}

func (p *planter) line(l leaf, path, indent string, last bool) {
	if !p.plain {
		p.w.String(indent)
		if last {
			p.w.String(p.lines[2])
		} else {
			p.w.String(p.lines[1])
		}
	}
	p.w.String(p.prefix(l))
	name := l.name
	if p.a.Has("f") {
		name = path
	}
	switch {
	case p.a.Has("Q"):
		name = `"` + name + `"`
	case !p.a.Has("N"):
		name = printable(name, p.a.Has("q"))
	}
	p.w.String(name)
	if p.a.Has("F") {
		p.w.String((&lister{classify: 'F'}).sign(l.info))
	}
	if l.info.IsLink() {
		p.w.String(" -> " + l.text)
	} else if l.text != "" {
		p.w.String(l.text)
	}
	p.w.Byte('\n')
}

func printable(name string, marks bool) string {
	if marks {
		return hidden(name)
	}
	var b strings.Builder
	for i := range len(name) {
		if c := name[i]; c < ' ' || c == 0x7f {
			fmt.Fprintf(&b, "\\%03o", c)
		} else if c == ' ' {
			b.WriteByte(c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// prefix is what stands in brackets before a name.
func (p *planter) prefix(l leaf) string {
	var parts []string
	i := l.info
	if p.a.Has("inodes") {
		parts = append(parts, fmt.Sprintf("%7d", uint64(i.Ino)))
	}
	if p.a.Has("device") {
		parts = append(parts, fmt.Sprintf("%3d", i.Dev))
	}
	if p.a.Has("p") {
		parts = append(parts, command.ModeString(i.Mode))
	}
	if p.a.Has("u") {
		parts = append(parts, fmt.Sprintf("%-8.32s", p.book.UserText(i.UID)))
	}
	if p.a.Has("g") {
		parts = append(parts, fmt.Sprintf("%-8.32s", p.book.GroupText(i.GID)))
	}
	switch {
	case p.a.Has("h"):
		parts = append(parts, fmt.Sprintf("%4s", command.HumanSizes().Text(uint64(i.Size))))
	case p.a.Has("si"):
		parts = append(parts, fmt.Sprintf("%4s", command.SISizes().Text(uint64(i.Size))))
	case p.a.Has("s"):
		parts = append(parts, fmt.Sprintf("%11d", i.Size))
	}
	if p.a.Has("D") || p.timefmt != "" {
		m := i.Mtime.In(zone(p.t))
		if p.timefmt != "" {
			parts = append(parts, moment(m, p.timefmt))
		} else {
			parts = append(parts, m.Format("Jan _2 15:04"))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "[" + strings.Join(parts, " ") + "]  "
}

// enter reads a directory and gives what is shown of it, in order.
func (p *planter) enter(in *vfs.View, name, path, indent string) (bough, bool) {
	b := bough{view: *in, path: path, indent: indent}
	if err := b.view.Chdir(name); err != nil {
		return b, false
	}
	names, err := b.view.Names(".")
	if err != nil {
		return b, false
	}
	for _, n := range names {
		p.t.Traverse(1)
		if n[0] == '.' && !p.a.Has("a") {
			continue
		}
		i, err := b.view.Lstat(n)
		if err != nil {
			continue
		}
		l := leaf{name: n, info: i}
		if i.IsLink() {
			l.text, _ = b.view.Readlink(n) // one that cannot be read is empty
			l.to, _ = b.view.Stat(n)       // one that leads nowhere is no directory
		}
		dir := i.IsDir() || l.to.IsDir()
		switch {
		case p.a.Has("d") && !dir, p.match(p.not, n):
			continue
		case p.only != nil && (!dir || p.a.Has("matchdirs")) && !p.match(p.only, n):
			continue
		case p.a.Has("prune") && i.IsDir() && !p.bears(&b.view, n):
			continue
		}
		b.leaves = append(b.leaves, l)
	}
	p.order(b.leaves)
	return b, true
}

// bears reports whether anything below a directory is shown.
func (p *planter) bears(in *vfs.View, name string) bool {
	found := false
	own := p.t.View.Dir
	p.t.View.Dir = in.Dir
	defer func() { p.t.View.Dir = own }()
	command.Walk(p.t, name, command.WalkOptions{}, func(e *command.WalkEntry) command.WalkOrder {
		b := base(e.Path)
		switch {
		case e.What != command.VisitBefore || e.Depth == 0:
			return command.WalkNext
		case b[0] == '.' && !p.a.Has("a"), p.match(p.not, b):
			return command.WalkSkip
		case e.Info.IsDir(), p.only != nil && !p.match(p.only, b):
			return command.WalkNext
		}
		found = true
		return command.WalkStop
	})
	return found
}

func (p *planter) order(list []leaf) {
	cmp := func(x, y leaf) int { return strings.Compare(x.name, y.name) }
	switch p.sort {
	case "version":
		cmp = func(x, y leaf) int { return sort.Version([]byte(x.name), []byte(y.name)) }
	case "mtime":
		cmp = func(x, y leaf) int { return x.info.Mtime.Compare(y.info.Mtime) }
	case "ctime":
		cmp = func(x, y leaf) int { return x.info.Ctime.Compare(y.info.Ctime) }
	case "size":
		cmp = func(x, y leaf) int { return int(max(-1, min(1, y.info.Size-x.info.Size))) }
	case "none":
		return
	}
	slices.SortStableFunc(list, func(x, y leaf) int {
		if p.a.Has("dirsfirst") || p.a.Has("filesfirst") {
			if a, b := x.info.IsDir(), y.info.IsDir(); a != b {
				if a == p.a.Has("dirsfirst") {
					return -1
				}
				return 1
			}
		}
		c := cmp(x, y)
		if c == 0 {
			c = strings.Compare(x.name, y.name)
		}
		if p.a.Has("r") {
			c = -c
		}
		return c
	})
}

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return `""`
	}
	return string(b)
}

func (p *planter) jsonInfo(l leaf) string {
	s := ""
	i := l.info
	if p.a.Has("inodes") {
		s += fmt.Sprintf(`,"inode":%d`, uint64(i.Ino))
	}
	if p.a.Has("p") {
		s += fmt.Sprintf(`,"mode":"%04o","prot":"%s"`, i.Mode&command.ModeBits, command.ModeString(i.Mode))
	}
	if p.a.Has("u") {
		s += `,"user":` + quoted(p.book.UserText(i.UID))
	}
	if p.a.Has("g") {
		s += `,"group":` + quoted(p.book.GroupText(i.GID))
	}
	if p.a.Has("s") || p.a.Has("h") {
		s += fmt.Sprintf(`,"size":%d`, i.Size)
	}
	if p.a.Has("D") || p.timefmt != "" {
		f := p.timefmt
		if f == "" {
			f = "%b %e %H:%M"
		}
		s += `,"time":` + quoted(moment(i.Mtime.In(zone(p.t)), f))
	}
	return s
}

func (p *planter) jsonLeaf(l leaf, path string, depth int, last, open bool) {
	kind := "file"
	switch {
	case l.info.IsDir():
		kind = "directory"
	case l.info.IsLink():
		kind = "link"
	case !l.info.IsRegular():
		kind = kindOf(l.info)
	}
	name := l.name
	if p.a.Has("f") {
		name = path
	}
	p.w.String(strings.Repeat("  ", depth) + `{"type":"` + kind + `","name":` + quoted(name))
	if l.info.IsLink() {
		p.w.String(`,"target":` + quoted(l.text))
	}
	p.w.String(p.jsonInfo(l))
	if open {
		p.w.String(",\"contents\":[\n")
		return
	}
	if l.info.IsDir() && p.level < 0 && l.text != "" {
		p.w.String(`,"error":"error opening dir"`)
	}
	if last {
		p.w.String("}\n")
	} else {
		p.w.String("},\n")
	}
}
