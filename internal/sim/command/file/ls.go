package file

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/command/sort"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/pattern"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// shape is how ls lays its entries out.
type shape uint8

const (
	onePerLine shape = iota
	columns
	across
	commas
	detailed
)

// A lister is a run of ls.
type lister struct {
	t    *kernel.Task
	w    *command.Writer
	book *command.Accounts
	zone *time.Location
	now  time.Time

	shape                          shape
	all, almost, recursive, dirs   bool
	inode, blocks, numeric, author bool
	noOwner, noGroup, context      bool
	reverse, dirsFirst, colour     bool
	sort                           string
	when                           byte // m, a or c
	classify                       byte // 0, /, t (file-type) or F
	follow                         command.WalkFollow
	followDirs                     bool // links to directories that are named
	quoting                        string
	hide                           bool // control characters
	ignore                         []*pattern.Pattern
	hidden                         []*pattern.Pattern // unless -a or -A
	unit, blockUnit                command.SizeUnit
	width                          int
	tab                            int
	style                          string
	eol                            byte
	colours                        map[string]string

	status  int
	shown   bool // something was printed, so that a blank line comes first
	heading bool
	painted bool // a colour was used
}

// An item is an entry that is shown.
type item struct {
	name   string // as it is
	text   string // quoted
	width  int
	info   vfs.Info
	known  bool // info is
	target string
	broken bool     // the link's target is missing
	to     vfs.Info // the link's target
}

func runLs(t *kernel.Task) int {
	l, operands, status, ok := newLister(t)
	if !ok {
		return status
	}
	if len(operands) == 0 {
		operands = []string{"."}
	}
	var files, dirs []item
	for _, name := range operands {
		t.Traverse(1)
		it, err := l.describe(&t.View, name, true)
		if err != nil {
			t.Errorf("cannot access %s: %s", command.QuoteAlways(name), reason(err))
			l.status = 2
			continue
		}
		if it.info.IsDir() && !l.dirs {
			dirs = append(dirs, it)
		} else {
			files = append(files, it)
		}
	}
	l.order(files)
	l.order(dirs)
	if len(files) > 0 {
		l.show(files)
		l.shown = true
	}
	l.heading = len(operands) > 1 || l.recursive
	for _, d := range dirs {
		l.directory(&t.View, d.name, d.name)
	}
	return l.status
}

// describe looks at a file as the options say.
func (l *lister) describe(v *vfs.View, name string, named bool) (item, error) {
	it := item{name: name}
	i, err := v.Lstat(name)
	if err != nil {
		return it, err
	}
	if i.IsLink() {
		to, terr := v.Stat(name)
		follow := l.follow == command.FollowAll || named && l.follow == command.FollowRoots || named && l.followDirs && terr == nil && to.IsDir()
		if follow && terr != nil && (!named || l.follow != command.FollowRoots) && l.follow == command.FollowAll {
			if terr != linux.ENOENT || named {
				return it, terr
			}
		}
		if follow && terr == nil {
			i = to
		} else {
			it.to, it.broken = to, terr != nil
			it.target, _ = v.Readlink(name) // one that cannot be read is shown without
		}
	}
	it.info, it.known = i, true
	return it, nil
}

// directory lists a directory, and with -R what lies below it.
func (l *lister) directory(v *vfs.View, name, path string) {
	type place struct {
		view vfs.View
		name string
		path string
	}
	stack := []place{{*v, name, path}}
	for len(stack) > 0 {
		p := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		items, view, ok := l.entries(&p.view, p.name, p.path)
		if !ok {
			continue
		}
		if l.shown {
			l.w.Byte('\n')
		}
		l.shown = true
		if l.heading {
			l.w.String(l.quote(p.path))
			l.w.String(":\n")
		}
		if l.shape == detailed || l.blocks {
			var sum uint64
			for i := range items {
				sum += uint64(max(items[i].info.Blocks, 0)) * 512
			}
			l.w.String("total " + l.blockUnit.Text(sum))
			l.w.Byte(l.eol)
		}
		l.show(items)
		if !l.recursive {
			continue
		}
		for i := len(items) - 1; i >= 0; i-- {
			it := &items[i]
			if it.info.IsDir() && it.name != "." && it.name != ".." {
				l.t.Step(len(p.path) >> 4)
				stack = append(stack, place{view, it.name, command.JoinPath(p.path, it.name)})
			}
		}
	}
}

// entries reads a directory and gives what is shown of it, in order.
func (l *lister) entries(in *vfs.View, name, path string) (items []item, view vfs.View, ok bool) {
	view = *in
	names, err := in.Names(name)
	if err != nil {
		l.t.Errorf("cannot open directory %s: %s", command.QuoteAlways(path), reason(err))
		l.status = max(l.status, 1)
		if path == name {
			l.status = 2
		}
		return nil, view, false
	}
	closed := view.Chdir(name)
	if l.all {
		names = append([]string{".", ".."}, names...)
	}
	for _, n := range names {
		l.t.Traverse(1)
		if l.ignored(n) {
			continue
		}
		if closed != nil {
			l.t.Errorf("cannot access %s: %s", command.QuoteAlways(command.JoinPath(path, n)), reason(closed))
			l.status = max(l.status, 1)
			items = append(items, item{name: n})
			continue
		}
		it, err := l.describe(&view, n, false)
		if err != nil {
			if err == linux.ENOENT && l.follow != command.FollowAll {
				continue
			}
			l.t.Errorf("cannot access %s: %s", command.QuoteAlways(command.JoinPath(path, n)), reason(err))
			l.status = max(l.status, 1)
			it.name = n
		}
		items = append(items, it)
	}
	l.order(items)
	return items, view, true
}

func (l *lister) ignored(name string) bool {
	if name[0] == '.' && !l.all && !l.almost {
		return true
	}
	match := func(list []*pattern.Pattern) bool {
		for _, p := range list {
			if ok, _ := p.Match(name, meter{l.t}); ok && (name[0] != '.' || strings.HasPrefix(p.String(), ".")) {
				return true
			}
		}
		return false
	}
	return match(l.ignore) || !l.all && !l.almost && match(l.hidden)
}

// order sorts the entries.
func (l *lister) order(items []item) {
	l.t.Step(len(items))
	var cmp func(a, b *item) int
	switch l.sort {
	case "none":
	case "time":
		cmp = func(a, b *item) int { return l.moment(b.info).Compare(l.moment(a.info)) }
	case "size":
		cmp = func(a, b *item) int { return int(max(-1, min(1, b.info.Size-a.info.Size))) }
	case "version":
		cmp = func(a, b *item) int { return sort.Version([]byte(a.name), []byte(b.name)) }
	case "extension":
		cmp = func(a, b *item) int { return strings.Compare(extension(a.name), extension(b.name)) }
	case "width":
		cmp = func(a, b *item) int { return columnsOf(l.quote(a.name)) - columnsOf(l.quote(b.name)) }
	default:
		cmp = func(*item, *item) int { return 0 }
	}
	if cmp == nil && !l.dirsFirst {
		return
	}
	slices.SortStableFunc(items, func(a, b item) int {
		if l.dirsFirst {
			x, y := a.info.IsDir() || a.to.IsDir(), b.info.IsDir() || b.to.IsDir()
			if x != y {
				if x {
					return -1
				}
				return 1
			}
		}
		if cmp == nil {
			return 0
		}
		c := cmp(&a, &b)
		if c == 0 {
			c = strings.Compare(a.name, b.name)
		}
		if l.reverse {
			return -c
		}
		return c
	})
}

func extension(name string) string {
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		return name[i:]
	}
	return ""
}

func (l *lister) moment(i vfs.Info) time.Time {
	switch l.when {
	case 'a':
		return i.Atime
	case 'c':
		return i.Ctime
	case 'w':
		return i.Ctime
	}
	return i.Mtime
}

// newLister reads the options of ls, dir and vdir.
func newLister(t *kernel.Task) (l *lister, operands []string, status int, ok bool) {
	a, status, ok := lsSpec.Parse(t)
	if !ok {
		return nil, nil, status, false
	}
	l = &lister{
		t: t, w: command.StdoutStatus(t, 2), book: &command.Accounts{View: &t.View}, zone: zone(t), now: time.Now(),
		quoting: "literal", width: 80, tab: 8, style: "locale", eol: '\n', when: 'm', sort: "name",
		unit: command.SizeUnit{Size: 1}, blockUnit: command.DefaultSizeUnit(t, "LS_BLOCK_SIZE"),
	}
	if t.Getenv("POSIXLY_CORRECT") == "" && t.Getenv("LS_BLOCK_SIZE") == "" && t.Getenv("BLOCK_SIZE") != "" {
		l.unit = l.blockUnit
	}
	if status, ok = l.options(a); !ok {
		return nil, nil, status, false
	}
	return l, a.Operands, 0, true
}

// widthOf reads a number of columns.
func widthOf(s string) (int, bool) {
	if strings.HasPrefix(s, "0") && len(s) > 1 {
		s = strings.TrimLeft(s[1:], "0")
		if s == "" {
			return 0, true
		}
	}
	n, err := strconv.ParseUint(s, 10, 62)
	return int(n), err == nil
}
