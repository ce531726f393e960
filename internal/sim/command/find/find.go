// Package find has find and xargs of GNU findutils.
package find

import (
	"bytes"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/regex"
	"github.com/paddock-sandbox/paddock/internal/sim/strftime"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// Commands lists the tools of this package.
func Commands() []command.Command {
	return []command.Command{
		{Name: "find", Run: runFind},
		{Name: "xargs", Run: runXargs},
	}
}

func reason(err error) string { return vfs.Message(err) }

// A finder is a run of find.
type finder struct {
	t    *kernel.Task
	book *command.Accounts
	zone *time.Location

	follow             command.WalkFollow
	maxDepth, minDepth int // maxDepth is -1 without a bound
	depth, oneDev      bool
	daystart           bool
	flavour            regex.Flavour
	acts               bool // there is an action
	prunes, deletes    bool
	depthSaid          bool
	now                time.Time

	batches []*batch
	outputs map[string]*output
	root    string // the starting point, as it was named
	order   command.WalkOrder
	quit    bool
	status  int
	strings []byte
}

// A test decides about a file, and may act on it.
type test func(f *finder, e *command.WalkEntry) bool

func (f *finder) errorf(format string, args ...any) {
	f.status = 1
	f.t.Errorf(format, args...)
}

func runFind(t *kernel.Task) int {
	f := &finder{t: t, book: &command.Accounts{View: &t.View}, zone: strftime.Zone(t.Getenv("TZ")), maxDepth: -1, now: time.Now(), flavour: regex.Emacs, outputs: map[string]*output{}}
	defer f.close()
	args := t.Args[1:]
	i := 0
options:
	for ; i < len(args); i++ {
		switch a := args[i]; {
		case a == "-H":
			f.follow = command.FollowRoots
		case a == "-L":
			f.follow = command.FollowAll
		case a == "-P":
			f.follow = command.FollowNever
		case a == "-D":
			i++
		case strings.HasPrefix(a, "-O"), strings.HasPrefix(a, "-D"):
		case a == "--":
			i++
			break options
		default:
			break options
		}
	}
	i = min(i, len(args))
	args = args[i:]
	n := 0
	for n < len(args) && !expression(args[n]) {
		n++
	}
	roots := args[:n]
	p := &parser{f: f, args: args[n:], room: int(t.K.Limits.Nesting)}
	check, ok := p.parse()
	if !ok {
		return 1
	}
	if f.deletes && f.prunes && !f.depthSaid {
		t.Errorf("The -delete action automatically turns on -depth, but -prune does nothing when -depth is in effect.  If you want to carry on anyway, just explicitly use the -depth option.")
		return 1
	}
	if p.files != "" {
		if len(roots) > 0 {
			t.Errorf("extra operand %s", command.Quote(roots[0]))
			_, _ = t.Write(2, []byte("find: file operands cannot be combined with -files0-from\n"))
			return 1
		}
		if roots, ok = f.startingPoints(p.files); !ok {
			return 1
		}
	} else if len(roots) == 0 {
		roots = []string{"."}
	}
	for _, root := range roots {
		f.walk(root, check)
		if f.quit {
			break
		}
	}
	for _, b := range f.batches {
		b.flush(f)
	}
	return f.status
}

// startingPoints reads a list of files, each ended by a NUL.
func (f *finder) startingPoints(name string) ([]string, bool) {
	b, err := command.ReadAll(f.t, name)
	if err != nil {
		f.errorf("cannot open %s for reading: %s", command.Quote(name), reason(err))
		return nil, false
	}
	var roots []string
	for part := range bytes.SplitSeq(bytes.TrimSuffix(b, []byte{0}), []byte{0}) {
		if len(part) == 0 {
			if len(b) > 0 {
				f.errorf("%s: invalid zero-length file name", command.Quote(name))
			}
			continue
		}
		roots = append(roots, string(part))
	}
	return roots, true
}

// expression reports whether an argument begins the expression.
func expression(a string) bool {
	return len(a) > 1 && a[0] == '-' || a == "(" || a == ")" || a == "!" || a == ","
}

func (f *finder) walk(root string, check test) {
	f.root = root
	o := command.WalkOptions{Follow: f.follow, OneDev: f.oneDev, Post: f.depth, Bounded: f.maxDepth >= 0, MaxDepth: f.maxDepth}
	command.Walk(f.t, root, o, func(e *command.WalkEntry) command.WalkOrder {
		switch e.What {
		case command.VisitLost:
			f.errorf("%s: %s", command.Quote(e.Path), reason(e.Err))
			return command.WalkNext
		case command.VisitFailed:
			f.errorf("%s: %s", command.Quote(e.Path), reason(e.Err))
			return command.WalkNext
		case command.VisitLoop:
			f.errorf("File system loop detected; %s is part of the same file system loop as %s.", command.Quote(e.Path), command.Quote(f.root))
			return command.WalkSkip
		case command.VisitBefore:
			if f.depth && e.Info.IsDir() {
				return command.WalkNext
			}
		case command.VisitAfter:
		}
		if e.Depth < f.minDepth {
			return command.WalkNext
		}
		f.order = command.WalkNext
		check(f, e)
		if f.quit {
			return command.WalkStop
		}
		return f.order
	})
}

// A batch collects files for one run of a program: -exec … +.
type batch struct {
	args []string
	dir  bool // -execdir
	in   vfs.View
	list []string
	size int
}

// maxBatch is how many bytes of names one program gets.
const maxBatch = 128 << 10

func (b *batch) add(f *finder, e *command.WalkEntry) {
	name := e.Path
	if b.dir {
		if len(b.list) > 0 && b.in.Dir != dirOf(e).Dir {
			b.flush(f)
		}
		b.in = *dirOf(e)
		name = "./" + base(e.Name)
	}
	if b.size+len(name)+9 > maxBatch && len(b.list) > 0 {
		b.flush(f)
	}
	b.list = append(b.list, name)
	b.size += len(name) + 9
}

func (b *batch) flush(f *finder) {
	if len(b.list) == 0 {
		return
	}
	args := append(append([]string{}, b.args...), b.list...)
	b.list, b.size = nil, 0
	var in *vfs.View
	if b.dir {
		in = &b.in
	}
	if !f.run(args, in) {
		f.status = 1
	}
}

// dirOf gives the directory that holds an entry. That of a starting point is
// its parent.
func dirOf(e *command.WalkEntry) *vfs.View {
	if e.Depth > 0 {
		return e.In
	}
	v := *e.In
	name := strings.TrimRight(e.Name, "/")
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		if err := v.Chdir(name[:i+1]); err != nil {
			return e.In
		}
	}
	return &v
}

func base(path string) string {
	s := strings.TrimRight(path, "/")
	if s == "" && path != "" {
		return "/"
	}
	return s[strings.LastIndexByte(s, '/')+1:]
}

// run runs a program, in another directory if in is not nil.
func (f *finder) run(args []string, in *vfs.View) bool {
	if in != nil {
		own := f.t.View.Dir
		f.t.View.Dir = in.Dir
		defer func() { f.t.View.Dir = own }()
	}
	s, err := f.t.Call(kernel.Command{Args: args})
	if err != nil {
		f.t.Errorf("%s: %s", command.Quote(args[0]), reason(err))
		return false
	}
	if s.Signal == linux.SIGINT || s.Signal == linux.SIGQUIT {
		f.t.Die(s.Signal)
	}
	return s.Code == 0 && s.Signal == 0
}

// An output is a file that -fprint and its like write.
type output struct {
	f    *finder
	file *command.Output // nil is standard output
	buf  []byte
}

func (o *output) write(b []byte) {
	if o.file == nil {
		_, _ = o.f.t.Out().Write(b) // the end of the program tells of it
		return
	}
	if o.buf = append(o.buf, b...); len(o.buf) >= 16<<10 {
		o.flush()
	}
}

func (o *output) flush() {
	if o.file == nil || len(o.buf) == 0 {
		return
	}
	if _, err := o.file.Write(o.buf); err != nil {
		o.f.status = 1
	}
	o.buf = o.buf[:0]
}

// open gives the output of a name, the same for the same name.
func (f *finder) open(name string) (*output, bool) {
	if o, ok := f.outputs[name]; ok {
		return o, true
	}
	o := &output{f: f}
	switch name {
	case "", "/dev/stdout":
	default:
		file, err := command.Create(f.t, name, linux.O_TRUNC)
		if err != nil {
			f.errorf("%s: %s", command.Quote(name), reason(err))
			return nil, false
		}
		o.file = file
	}
	f.outputs[name] = o
	return o, true
}

func (f *finder) close() {
	for _, o := range f.outputs {
		if o.file != nil {
			o.flush()
			_ = o.file.Close() // it was written
		}
	}
}
