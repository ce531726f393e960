package archive

import (
	"archive/tar"
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/pattern"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

var cpioSpec = &command.Spec{
	Name: "cpio", Synopsis: "-o|-i|-p [OPTION...] [PATTERN...|DIRECTORY]", Exit: 2, About: "Copy files to and from archives.",
	Options: []command.Option{
		{Short: 'o', Long: "create", Help: "create the archive: names come from standard input"},
		{Short: 'i', Long: "extract", Help: "extract files from an archive"},
		{Short: 'p', Long: "pass-through", Help: "copy files to a directory"},
		{Short: 't', Long: "list", Help: "print a table of contents of the input"},
		{Short: '0', Long: "null", Help: "names end with a null"},
		{Short: 'a', Long: "reset-access-time", Help: "(reading changes no times here)"},
		{Short: 'B', Help: "(blocks are written as they come)"},
		{Short: 'C', Long: "io-size", Arg: command.Required, Name: "NUMBER", Help: "(blocks are written as they come)"},
		{Short: 'c', Help: "use the old portable (ASCII) format: -H odc"},
		{Short: 'd', Long: "make-directories", Help: "create leading directories where needed"},
		{Short: 'E', Long: "pattern-file", Arg: command.Required, Name: "FILE", Help: "read patterns from FILE"},
		{Short: 'F', Long: "file", Arg: command.Required, Name: "FILE", Help: "use FILE as the archive"},
		{Short: 'f', Long: "nonmatching", Help: "only copy files that match none of the patterns"},
		{Short: 'H', Long: "format", Arg: command.Required, Name: "FORMAT", Help: "use bin, odc, newc, crc, ustar or tar"},
		{Short: 'I', Arg: command.Required, Name: "FILE", Help: "archive to read"},
		{Short: 'L', Long: "dereference", Help: "copy what links lead to"},
		{Short: 'l', Long: "link", Help: "link files instead of copying them, by -p"},
		{Short: 'm', Long: "preserve-modification-time", Help: "retain modification times"},
		{Short: 'n', Long: "numeric-uid-gid", Help: "show numbers of owners"},
		{Short: 'O', Arg: command.Required, Name: "FILE", Help: "archive to write"},
		{Short: 'u', Long: "unconditional", Help: "replace all files"},
		{Short: 'v', Long: "verbose", Help: "list the files processed"},
		{Short: 'V', Long: "dot", Help: "print a dot for each file"},
		{Long: "absolute-filenames", Help: "do not take slashes and .. away from names"},
		{Long: "no-absolute-filenames", Help: "names are below the working directory (the default here)"},
		{Long: "no-preserve-owner", Help: "do not change the ownership of files"},
		{Long: "quiet", Help: "do not print the number of blocks"},
		{Long: "to-stdout", Help: "extract files to standard output"},
	},
}

// A cpio is a run of it.
type cpio struct {
	t        *kernel.Task
	a        *command.Args
	status   int
	patterns []*pattern.Pattern
	book     *command.Accounts
	dir      string            // of -p, with a slash at its end
	links    map[uint64]placed // files that have more names, by number
	inodes   map[link]uint64   // their numbers in the archive
	dirs     []made            // whose times are set at the end
	warned   map[string]bool   // prefixes that were taken away
	bytes    int64             // of the archive
	total    int64             // of contents
	buf      []byte
}

type placed struct {
	name string
	ino  vfs.Ino
}

func runCPIO(t *kernel.Task) int {
	a, status, ok := cpioSpec.Parse(t)
	if !ok {
		return status
	}
	c := &cpio{t: t, a: a, book: &command.Accounts{View: &t.View}, links: map[uint64]placed{}, inodes: map[link]uint64{}, warned: map[string]bool{}, buf: make([]byte, 32<<10)}
	ops := ""
	for _, op := range []string{"o", "i", "p"} {
		if a.Has(op) {
			ops += op
		}
	}
	if ops == "" && a.Has("t") {
		ops = "i"
	}
	switch {
	case ops == "":
		return cpioSpec.Usage(t, "You must specify one of -oipt options.")
	case len(ops) > 1:
		return cpioSpec.Usage(t, "Mode already defined")
	case ops == "o" && len(a.Operands) > 0:
		return cpioSpec.Usage(t, "Too many arguments")
	case ops == "o":
		c.create()
	case ops == "p" && len(a.Operands) != 1:
		return cpioSpec.Usage(t, "Exactly one destination directory is needed")
	case ops == "p":
		c.dir = strings.TrimRight(a.Operands[0], "/") + "/"
		c.pass()
	default:
		c.extract()
	}
	for i := len(c.dirs) - 1; i >= 0; i-- {
		_ = t.View.Chmod(c.dirs[i].name, c.dirs[i].bits) // it is ours, or was before
		if a.Has("m") {
			_ = t.View.Chtimes(c.dirs[i].name, c.dirs[i].time, c.dirs[i].time, false)
		}
	}
	if a.Has("V") {
		_, _ = t.Write(2, []byte("\n"))
	}
	if !a.Has("quiet") && c.status != 3 {
		n := (c.bytes + 511) / 512
		word := "blocks"
		if n == 1 {
			word = "block"
		}
		_ = t.Flush() // the end of the program tells of it
		_, _ = t.Write(2, fmt.Appendf(nil, "%d %s\n", n, word))
	}
	return min(c.status, 2)
}

func (c *cpio) fail(format string, args ...any) {
	c.t.Errorf(format, args...)
	c.status = max(c.status, 2)
}

// fatal is fail for what ends it.
func (c *cpio) fatal(format string, args ...any) {
	c.fail(format, args...)
	c.status = 3
}

func (c *cpio) tell(name string) {
	switch {
	case c.a.Has("V"):
		_, _ = c.t.Write(2, []byte("."))
	case c.a.Has("v"):
		_, _ = c.t.Write(2, []byte(name+"\n"))
	}
}

// each reads the names of files.
func (c *cpio) each(do func(name string, i vfs.Info) bool) {
	delim := byte('\n')
	if c.a.Has("0") {
		delim = 0
	}
	for {
		b, err := c.t.In().ReadSlice(delim)
		if errors.Is(err, bufio.ErrBufferFull) {
			c.fatal("file name is too long")
			return
		}
		name := string(bytes.TrimSuffix(b, []byte{delim}))
		if name == "" {
			if err != nil {
				return
			}
			continue
		}
		c.t.Traverse(1)
		stat := c.t.View.Lstat
		if c.a.Has("L") {
			stat = c.t.View.Stat
		}
		i, serr := stat(name)
		if serr != nil {
			c.fail("%s: Cannot stat: %s", name, reason(serr))
		} else if !do(name, i) {
			return
		}
		if err != nil {
			return
		}
	}
}

// counter counts what is written of an archive.
type counter struct {
	c *cpio
	w io.Writer
}

func (w counter) Write(b []byte) (int, error) {
	w.c.bytes += int64(len(b))
	w.c.t.Step(1 + len(b)>>6)
	return w.w.Write(b)
}

func (c *cpio) create() {
	form := "bin"
	if c.a.Has("c") {
		form = "odc"
	}
	if f, ok := c.a.Value("H"); ok {
		if f == "tar" {
			f = "ustar"
		}
		if !strings.Contains(" bin odc newc crc ustar ", " "+f+" ") {
			c.fatal("invalid archive format '%s'; valid formats are:\ncrc newc odc bin ustar tar", f)
			return
		}
		form = f
	}
	var w io.Writer = c.t.Out()
	name, ok := c.a.Value("O")
	if !ok {
		name, ok = c.a.Value("F")
	}
	if ok {
		out, err := command.Create(c.t, name, linux.O_TRUNC)
		if err != nil {
			c.fatal("Cannot open %s: %s", name, reason(err))
			return
		}
		defer func() { _ = out.Close() }() // every write was looked at
		w = out
	}
	b := bufio.NewWriterSize(counter{c, w}, 32<<10)
	cw := &cpioWriter{w: b, form: form}
	if form == "ustar" {
		cw.tape = tar.NewWriter(b)
	}
	var err error
	c.each(func(name string, i vfs.Info) bool {
		err = c.add(cw, name, i)
		return err == nil
	})
	if err == nil {
		if cw.tape != nil {
			err = cw.tape.Close()
		} else if err = cw.head(&record{name: cpioTrailer, nlink: 1}); err == nil {
			at := c.bytes + int64(b.Buffered())
			_, err = b.Write(make([]byte, -at&511))
		}
	}
	if err == nil {
		err = b.Flush()
	}
	if err != nil {
		c.fatal("write error: %s", reason(err))
	}
}

// describe makes the header of a file. Numbers are of the archive only: they
// tell what belongs together, and nothing of the computer.
func (c *cpio) describe(name string, i vfs.Info) (*record, error) {
	key := link{i.Dev, i.Ino}
	h := &record{name: name, mode: i.Mode, uid: i.UID, gid: i.GID, nlink: i.Nlink, mtime: i.Mtime.Unix()}
	number, ok := c.inodes[key]
	if !ok {
		number = uint64(len(c.inodes) + 1)
		c.t.Grow(48)
		c.inodes[key] = number
	}
	h.ino = number
	switch i.Mode & linux.S_IFMT {
	case linux.S_IFREG:
		h.size = i.Size
	case linux.S_IFLNK:
		target, err := c.t.View.Readlink(name)
		if err != nil {
			return nil, err
		}
		h.target, h.size = target, int64(len(target))
	case linux.S_IFCHR, linux.S_IFBLK:
		h.rdev = uint64(i.Rdev)
	}
	return h, nil
}

// add writes a member; the error is one of writing.
func (c *cpio) add(w *cpioWriter, name string, i vfs.Info) error {
	h, err := c.describe(name, i)
	if err != nil {
		c.fail("%s: Cannot readlink: %s", name, reason(err))
		return nil
	}
	var src *command.Input
	if i.IsRegular() {
		if src, err = command.Open(c.t, name); err != nil {
			c.fail("%s: Cannot open: %s", name, reason(err))
			return nil
		}
		defer src.Close()
		if w.form == "crc" && !c.sum(h, name) {
			return nil
		}
	}
	c.tell(name)
	if err := w.head(h); err != nil {
		if errors.Is(err, linux.EFBIG) || w.tape != nil {
			c.fail("%s: cannot be stored in this format; not dumped", name)
			return nil
		}
		return err
	}
	if h.target != "" && w.tape == nil {
		if _, err := io.WriteString(w, h.target); err != nil {
			return err
		}
	}
	if src != nil {
		left := h.size
		for left > 0 {
			n, rerr := src.Read(c.buf[:min(int64(len(c.buf)), left)])
			if n > 0 {
				if _, err := w.Write(c.buf[:n]); err != nil {
					return err
				}
				left -= int64(n)
			}
			if rerr != nil {
				break
			}
		}
		if left > 0 {
			c.fail("File %s shrunk by %d bytes, padding with zeros", name, left)
			clear(c.buf)
		}
		for left > 0 {
			n, err := w.Write(c.buf[:min(int64(len(c.buf)), left)])
			if err != nil {
				return err
			}
			left -= int64(n)
		}
	}
	return w.filled()
}

// sum adds up a file for the format crc.
func (c *cpio) sum(h *record, name string) bool {
	in, err := command.Open(c.t, name)
	if err != nil {
		c.fail("%s: Cannot open: %s", name, reason(err))
		return false
	}
	defer in.Close()
	for {
		n, err := in.Read(c.buf)
		c.t.Step(1 + n>>4)
		for _, b := range c.buf[:n] {
			h.sum += uint32(b)
		}
		if err != nil {
			return true
		}
	}
}

// long writes a member as -tv has it.
func (c *cpio) long(h *record) {
	user, group := c.book.UserText(h.uid), c.book.GroupText(h.gid)
	if c.a.Has("n") {
		user, group = fmt.Sprint(h.uid), fmt.Sprint(h.gid)
	}
	size := fmt.Sprintf("%8d", h.size)
	if k := h.mode & linux.S_IFMT; k == linux.S_IFCHR || k == linux.S_IFBLK {
		size = fmt.Sprintf("%3d, %3d", h.rdev>>8, h.rdev&0xff)
	}
	at := time.Unix(h.mtime, 0).UTC()
	stamp := at.Format("Jan _2 15:04")
	if now := c.t.K.Now(); now.Sub(at) > 180*24*time.Hour || at.Sub(now) > time.Hour {
		stamp = at.Format("Jan _2  2006")
	}
	line := fmt.Sprintf("%s %3d %-8.8s %-8.8s %s %s %s", command.ModeString(h.mode), h.nlink, user, group, size, stamp, h.name)
	if h.target != "" && h.mode&linux.S_IFMT == linux.S_IFLNK {
		line += " -> " + h.target
	}
	_, _ = c.t.Out().WriteString(line + "\n") // the end of the program tells of it
}
