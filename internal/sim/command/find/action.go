package find

import (
	"fmt"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// say writes a line to standard output.
func say(t *kernel.Task, s string) { _, _ = t.Out().WriteString(s + "\n") }

// line writes a path and the byte that ends it.
func (f *finder) line(o *output, path string, end byte) {
	if o.file == nil {
		w := f.t.Out()
		_, _ = w.WriteString(path) // the end of the program tells of an error
		_ = w.WriteByte(end)
		return
	}
	f.strings = append(append(f.strings[:0], path...), end)
	o.write(f.strings)
}

// action reads an action.
func (p *parser) action(name string) (test, bool) {
	f := p.f
	file := ""
	switch name {
	case "-fprint", "-fprint0", "-fls", "-fprintf":
		f.acts = true
		a, ok := p.arg(name)
		if !ok {
			return nil, true
		}
		file = a
	case "-print", "-print0", "-ls", "-printf":
		f.acts = true
	case "-delete":
		f.acts, f.deletes, f.depth = true, true, true
		return remove, true
	case "-exec", "-execdir", "-ok", "-okdir":
		f.acts = true
		return p.exec(name), true
	default:
		return nil, false
	}
	var format string
	if strings.HasSuffix(name, "printf") {
		a, ok := p.arg(name)
		if !ok {
			return nil, true
		}
		format = a
	}
	o, ok := f.open(file)
	if !ok {
		p.bad = true
		return nil, true
	}
	switch {
	case strings.HasSuffix(name, "printf"):
		return p.printf(format, o), true
	case strings.HasSuffix(name, "ls"):
		return func(f *finder, e *command.WalkEntry) bool { o.write([]byte(f.long(e))); return true }, true
	case strings.HasSuffix(name, "0"):
		return func(f *finder, e *command.WalkEntry) bool { f.line(o, e.Path, 0); return true }, true
	}
	return func(f *finder, e *command.WalkEntry) bool { f.line(o, e.Path, '\n'); return true }, true
}

func remove(f *finder, e *command.WalkEntry) bool {
	if e.Path == "." || strings.HasSuffix(e.Path, "/.") && e.Depth == 0 {
		return true
	}
	var err error
	if e.Info.IsDir() && !e.Link {
		err = e.In.Rmdir(e.Name)
	} else {
		err = e.In.Unlink(e.Name)
	}
	if err != nil && err != linux.ENOENT {
		f.errorf("cannot delete %s: %s", command.Quote(e.Path), reason(err))
		return false
	}
	return true
}

// exec reads -exec and its like.
func (p *parser) exec(name string) test {
	f := p.f
	var args []string
	for {
		if p.at >= len(p.args) {
			return p.fail("missing argument to `%s'", name)
		}
		a := p.args[p.at]
		p.at++
		if a == ";" {
			break
		}
		if a == "+" && len(args) > 0 && args[len(args)-1] == "{}" && !strings.HasPrefix(name, "-ok") {
			return p.batch(name, args[:len(args)-1])
		}
		args = append(args, a)
	}
	if len(args) == 0 {
		return p.fail("invalid argument `%s' to `%s'", ";", name)
	}
	dir := strings.HasSuffix(name, "dir")
	ask := strings.HasPrefix(name, "-ok")
	_ = f
	return func(f *finder, e *command.WalkEntry) bool {
		path := e.Path
		in := f.t.View
		if dir {
			path = "./" + base(e.Name)
			if base(e.Name) == "/" {
				path = "/"
			}
			in = *dirOf(e)
		}
		real := make([]string, len(args))
		for i, a := range args {
			real[i] = kernel.ReplaceAll(f.t, a, "{}", path)
		}
		if ask {
			_ = f.t.Flush() // the end of the program tells of it
			_, _ = f.t.Write(2, []byte("< "+args[0]+" ... "+e.Path+" > ? "))
			line, err := f.t.In().ReadString('\n')
			if err != nil && line == "" || !strings.HasPrefix(line, "y") && !strings.HasPrefix(line, "Y") {
				return false
			}
		}
		return f.run(real, &in)
	}
}

func (p *parser) batch(name string, args []string) test {
	if len(args) == 0 {
		return p.fail("invalid argument `%s' to `%s'", "{}", name)
	}
	for _, a := range args {
		if strings.Contains(a, "{}") {
			return p.fail("Only one instance of {} is supported with %s ... +", name)
		}
	}
	b := &batch{args: args, dir: name == "-execdir"}
	p.f.batches = append(p.f.batches, b)
	return func(f *finder, e *command.WalkEntry) bool {
		b.add(f, e)
		return true
	}
}

// long describes a file as -ls does.
func (f *finder) long(e *command.WalkEntry) string {
	i := e.Info
	at := i.Mtime.In(f.zone)
	stamp := at.Format("Jan _2  2006")
	if age := f.now.Sub(at).Hours(); age < 365.2425*12 && age > -1 {
		stamp = at.Format("Jan _2 15:04")
	}
	size := fmt.Sprintf("%8d", i.Size)
	if k := i.Mode & linux.S_IFMT; k == linux.S_IFCHR || k == linux.S_IFBLK {
		size = fmt.Sprintf("%3d, %3d", i.Rdev>>8&0xfff, i.Rdev&0xff)
	}
	s := fmt.Sprintf("%9d %6d %s %3d %-8s %-8s %s %s %s", uint64(i.Ino), (max(i.Blocks, 0)+1)/2, command.ModeString(i.Mode), i.Nlink,
		f.book.UserText(i.UID), f.book.GroupText(i.GID), size, stamp, escaped(e.Path))
	if i.IsLink() {
		if target, err := e.In.Readlink(e.Name); err == nil {
			s += " -> " + escaped(target)
		}
	}
	return s + "\n"
}

// escaped writes a name as -ls does.
func escaped(s string) string {
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\\' || c == ' ' || c == '"':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c >= 7 && c <= 13:
			b.WriteByte('\\')
			b.WriteByte("abtnvfr"[c-7])
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, "\\%03o", c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
