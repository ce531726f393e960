package text

import (
	"bytes"
	"io"
	"math"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

var tailSpec = command.Spec{
	Name: "tail", Synopsis: "[OPTION]... [FILE]...",
	About: "Print the last 10 lines of each FILE to standard output.",
	Options: []command.Option{
		{Short: 'c', Long: "bytes", Arg: command.Required, Name: "[+]NUM", Help: "output the last NUM bytes; or use -c +NUM to output starting with byte NUM"},
		{Short: 'f', Long: "follow", Arg: command.None, Help: "output appended data as the file grows"},
		{Short: 'F', Help: "same as --follow=name --retry"},
		{Short: 'n', Long: "lines", Arg: command.Required, Name: "[+]NUM", Help: "output the last NUM lines; or use -n +NUM to output starting with line NUM"},
		{Long: "max-unchanged-stats", Arg: command.Required, Name: "N", Help: "(ignored)"},
		{Long: "pid", Arg: command.Required, Name: "PID", Help: "with -f, terminate after process ID, PID dies"},
		{Short: 'q', Long: "quiet", Help: "never output headers giving file names"},
		{Short: 'q', Long: "silent"},
		{Long: "retry", Help: "keep trying to open a file if it is inaccessible"},
		{Short: 's', Long: "sleep-interval", Arg: command.Required, Name: "N", Help: "(changes are seen at once)"},
		{Short: 'v', Long: "verbose", Help: "always output headers giving file names"},
		{Short: 'z', Long: "zero-terminated", Help: "line delimiter is NUL, not newline"},
		{Short: '0'}, {Short: '1'}, {Short: '2'}, {Short: '3'}, {Short: '4'},
		{Short: '5'}, {Short: '6'}, {Short: '7'}, {Short: '8'}, {Short: '9'},
	},
}

// A tail is what was asked for.
type tail struct {
	cutting

	t       *kernel.Task
	w       *command.Writer
	headers bool
	first   bool
	follow  follow
	shown   *followed // whose header was last
}

func runTail(t *kernel.Task) int {
	x := &tail{t: t, w: command.Stdout(t), first: true, cutting: cutting{n: 10}}
	args := t.Args[1:]
	if old, ok := tailObsolete(args); ok {
		args = old
	} else if len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && args[0][1] >= '0' && args[0][1] <= '9' {
		t.Errorf("option used in invalid context -- %c", args[0][1])
		return 1
	}
	// --follow has an optional argument, -f none.
	for i, arg := range args {
		if arg == "--" {
			break
		}
		if how, ok := strings.CutPrefix(arg, "--follow="); ok {
			if !x.follow.by(how) {
				t.Errorf("invalid argument %s for ‘--follow’\nValid arguments are:\n  - ‘descriptor’\n  - ‘name’", command.Quote(how))
				_, _ = t.Write(2, []byte("Try 'tail --help' for more information.\n"))
				return 1
			}
			args = append(append(append([]string(nil), args[:i]...), "--follow"), args[i+1:]...)
		}
	}
	a, status, ok := tailSpec.ParseArgs(t, args)
	if !ok {
		return status
	}
	x.delim = command.Delimiter(a)
	names := command.InputNames(a.Operands)
	x.headers = len(names) > 1
	if status := x.options(a); status != 0 {
		return status
	}
	if x.follow.retry && !x.follow.on {
		t.Errorf("warning: --retry ignored; --retry is useful only when following")
	}
	if x.follow.on && x.follow.name {
		for _, name := range names {
			if name == "-" {
				t.Errorf("cannot follow '-' by name")
				return 1
			}
		}
	}
	if x.follow.on {
		return x.following(names)
	}
	if x.n == 0 && !x.opposite {
		return 0
	}
	return slicing.Each(t, names, x.one)
}

func (x *tail) options(a *command.Args) int {
	t := x.t
	for _, f := range a.Flags {
		switch f.Key {
		case "c", "n":
			x.bytes = f.Key == "c"
			value := f.Value
			x.opposite = strings.HasPrefix(value, "+")
			if value != "" && (value[0] == '+' || value[0] == '-') {
				value = value[1:]
			}
			n, err := command.ParseUint(value, command.SizeSuffixes)
			if n > math.MaxInt64 && err == nil {
				n, err = math.MaxInt64, nil
			}
			if err != nil {
				command.BadNumber(t, "invalid number of "+unit(x.bytes), f.Value, err)
				return 1
			}
			x.n = int64(n)
		case "f":
			x.follow.on = true
		case "F":
			x.follow.on, x.follow.name, x.follow.retry = true, true, true
		case "retry":
			x.follow.retry = true
		case "q":
			x.headers = false
		case "v":
			x.headers = true
		case "pid":
			n, err := command.ParseUintWithin(f.Value, "", 0, math.MaxInt32)
			if err != nil {
				command.BadNumber(t, "invalid PID", f.Value, err)
				return 1
			}
			x.follow.pid = int(n)
		case "s":
			if !seconds(f.Value) {
				t.Errorf("invalid number of seconds: %s", command.Quote(f.Value))
				return 1
			}
		case "max-unchanged-stats":
			if _, err := command.ParseUint(f.Value, ""); err != nil {
				command.BadNumber(t, "invalid maximum number of unchanged stats between opens", f.Value, err)
				return 1
			}
		case "0", "1", "2", "3", "4", "5", "6", "7", "8", "9":
			t.Errorf("option used in invalid context -- %s", f.Key)
			return 1
		}
	}
	return 0
}

func seconds(s string) bool {
	digits, dots := 0, 0
	for _, c := range s {
		switch {
		case c >= '0' && c <= '9':
			digits++
		case c == '.':
			dots++
		default:
			return false
		}
	}
	return digits > 0 && dots <= 1
}

// tailObsolete reads -5, +5, -5c, +5lf and the like, which only the first of
// two or three arguments can be.
func tailObsolete(args []string) ([]string, bool) {
	n := len(args)
	switch {
	case n == 1:
	case n == 2 && (len(args[1]) < 2 || args[1][0] != '-'):
	case (n == 2 || n == 3) && args[1] == "--":
	default:
		return nil, false
	}
	arg := args[0]
	if arg == "" || arg[0] != '-' && arg[0] != '+' {
		return nil, false
	}
	if arg == "-" || arg == "-c" {
		return nil, false
	}
	i := 1
	for i < len(arg) && arg[i] >= '0' && arg[i] <= '9' {
		i++
	}
	number, what, rest := arg[1:i], "-n", arg[i:]
	if number == "" {
		number = "10"
	}
	switch {
	case strings.HasPrefix(rest, "b"):
		what, number, rest = "-c", number+"b", rest[1:]
	case strings.HasPrefix(rest, "c"):
		what, rest = "-c", rest[1:]
	case strings.HasPrefix(rest, "l"):
		rest = rest[1:]
	}
	var flags []string
	if strings.HasPrefix(rest, "f") {
		flags, rest = []string{"-f"}, rest[1:]
	}
	if rest != "" {
		return nil, false
	}
	if arg[0] == '+' {
		number = "+" + number
	}
	return append(append(flags, what, number), args[1:]...), true
}

func (x *tail) header(name string) {
	if x.headers {
		header(x.w, name, &x.first)
	}
}

func (x *tail) one(name string, r *command.Reader) {
	x.header(name)
	x.show(r)
	if err := r.Err(); err != nil && (x.bytes || x.opposite && x.n < 2) {
		command.ComplainFile(x.t, slicing.Read, name, err)
		x.t.Exit(1)
	}
}

// show shows the end of a file and leaves its offset there.
func (x *tail) show(r *command.Reader) {
	switch {
	case x.opposite:
		x.from(r)
	case x.n == 0:
		if f, ok := r.Desc().VFS(); ok {
			_, _ = f.Seek(0, io.SeekEnd) // what is no regular file is read below
			return
		}
		if !x.follow.on {
			return
		}
		for _, ok := r.Piece(); ok; _, ok = r.Piece() {
		}
	default:
		if f, start, size, ok := seekable(r); ok {
			x.seek(f, start, size)
			x.copy(r)
			return
		}
		if x.bytes {
			x.endBytes(r)
		} else {
			x.endLines(r)
		}
	}
}

func seekable(r *command.Reader) (f *vfs.File, start, size int64, ok bool) {
	f, ok = r.Desc().VFS()
	if !ok {
		return nil, 0, 0, false
	}
	i, err := f.Info()
	if err != nil || !i.IsRegular() || i.Size == 0 {
		return nil, 0, 0, false
	}
	start, err = f.Seek(0, io.SeekCurrent)
	return f, start, i.Size, err == nil
}

func (x *tail) copy(r *command.Reader) {
	for b, ok := r.Piece(); ok; b, ok = r.Piece() {
		x.w.Bytes(b)
	}
}

// from shows from a line or byte on.
func (x *tail) from(r *command.Reader) {
	skip := max(0, x.n-1)
	if x.bytes {
		if f, start, size, ok := seekable(r); ok {
			_, _ = f.Seek(min(start+skip, max(start, size)), io.SeekStart)
		} else {
			r.Skip(skip)
		}
		x.copy(r)
		return
	}
	for skip > 0 {
		b, ok := r.Piece()
		if !ok {
			return
		}
		end := 0
		for skip > 0 {
			i := bytes.IndexByte(b[end:], x.delim)
			if i < 0 {
				end = len(b)
				break
			}
			end += i + 1
			skip--
		}
		r.Unread(len(b) - end)
	}
	x.copy(r)
}

// seek finds where the end begins, from behind.
func (x *tail) seek(f *vfs.File, start, size int64) {
	if start >= size {
		return
	}
	if x.bytes {
		_, _ = f.Seek(max(start, size-min(x.n, size)), io.SeekStart)
		return
	}
	buf := make([]byte, 16<<10)
	left := x.n
	end := size
	for end > start {
		at := max(start, (end-1)/int64(len(buf))*int64(len(buf)))
		n, err := f.ReadAt(buf[:end-at], at)
		if err != nil || int64(n) < end-at {
			break // it shrinks while we look
		}
		b := buf[:n]
		x.t.Step(n >> 6)
		if end == size && b[n-1] == x.delim {
			b = b[:n-1] // the end of the last line
		}
		for {
			i := bytes.LastIndexByte(b, x.delim)
			if i < 0 {
				break
			}
			left--
			if left == 0 {
				_, _ = f.Seek(at+int64(i)+1, io.SeekStart)
				return
			}
			b = b[:i]
		}
		end = at
	}
	_, _ = f.Seek(start, io.SeekStart)
}

// A window holds the end of what was read.
type window struct {
	t     *kernel.Task
	b     []byte
	start int
}

func (w *window) add(b []byte) {
	if w.start > len(w.b)/2 {
		w.b = append(w.b[:0], w.b[w.start:]...)
		w.start = 0
	}
	w.b = append(command.Room(w.t, w.b, len(b)), b...)
}

func (x *tail) endBytes(r *command.Reader) {
	held := window{t: x.t}
	for b, ok := r.Piece(); ok; b, ok = r.Piece() {
		held.add(b)
		if over := int64(len(held.b)-held.start) - x.n; over > 0 {
			held.start += int(over)
		}
	}
	x.w.Bytes(held.b[held.start:])
	x.t.Shrink(cap(held.b))
}

func (x *tail) endLines(r *command.Reader) {
	held := window{t: x.t}
	var lines int64 // complete ones that are held
	for b, ok := r.Piece(); ok; b, ok = r.Piece() {
		held.add(b)
		lines += int64(bytes.Count(b, []byte{x.delim}))
		total := lines
		if held.b[len(held.b)-1] != x.delim {
			total++
		}
		for ; total > x.n; total-- {
			held.start += bytes.IndexByte(held.b[held.start:], x.delim) + 1
			lines--
		}
	}
	x.w.Bytes(held.b[held.start:])
	x.t.Shrink(cap(held.b))
}
