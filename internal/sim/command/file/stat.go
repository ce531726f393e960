package file

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

var statSpec = &command.Spec{
	Name: "stat", Synopsis: "[OPTION]... FILE...", About: "Display file or file system status.",
	Options: []command.Option{
		{Short: 'L', Long: "dereference", Help: "follow links"},
		{Short: 'f', Long: "file-system", Help: "display file system status instead of file status"},
		{Long: "cached", Arg: command.Required, Name: "MODE", Help: "(ignored)"},
		{Short: 'c', Long: "format", Arg: command.Required, Name: "FORMAT", Help: "use the specified FORMAT instead of the default; output a newline after each use of FORMAT"},
		{Long: "printf", Arg: command.Required, Name: "FORMAT", Help: "like --format, but interpret backslash escapes, and do not output a mandatory trailing newline"},
		{Short: 't', Long: "terse", Help: "print the information in terse form"},
	},
}

type stater struct {
	t      *kernel.Task
	w      *command.Writer
	book   *command.Accounts
	zone   *time.Location
	fs     bool
	chosen bool // the format was given
	name   string
	info   vfs.Info
}

const (
	statFormat = "  File: %N\n  Size: %-10s\tBlocks: %-10b IO Block: %-6o %F\n" +
		"Device: %Hd,%Ld\tInode: %-10i  Links: %h\n" +
		"Access: (%04a/%10.10A)  Uid: (%5u/%8U)   Gid: (%5g/%8G)\n" +
		"Access: %x\nModify: %y\nChange: %z\n Birth: %w\n"
	statDevice = "  File: %N\n  Size: %-10s\tBlocks: %-10b IO Block: %-6o %F\n" +
		"Device: %Hd,%Ld\tInode: %-10i  Links: %-5h Device type: %Hr,%Lr\n" +
		"Access: (%04a/%10.10A)  Uid: (%5u/%8U)   Gid: (%5g/%8G)\n" +
		"Access: %x\nModify: %y\nChange: %z\n Birth: %w\n"
	statTerse   = "%n %s %b %f %u %g %D %i %h %t %T %X %Y %Z %W %o\n"
	statFS      = "  File: \"%n\"\n    ID: %-8i Namelen: %-7l Type: %T\nBlock size: %-10s Fundamental block size: %S\nBlocks: Total: %-10b Free: %-10f Available: %a\nInodes: Total: %-10c Free: %d\n"
	statFSTerse = "%n %i %l %t %s %S %b %f %a %c %d\n"
)

func runStat(t *kernel.Task) int {
	a, status, ok := statSpec.Parse(t)
	if !ok {
		return status
	}
	if len(a.Operands) == 0 {
		return statSpec.Usage(t, "missing operand")
	}
	s := &stater{t: t, w: command.Stdout(t), book: &command.Accounts{View: &t.View}, zone: zone(t), fs: a.Has("f")}
	format, escapes, newline := "", false, false
	for _, f := range a.Flags {
		switch f.Key {
		case "c":
			format, escapes, newline = f.Value, false, true
		case "printf":
			format, escapes, newline = f.Value, true, false
		}
	}
	s.chosen = escapes || newline
	for _, name := range a.Operands {
		s.name = name
		var err error
		if name == "-" && !s.fs {
			s.info, err = command.StatFD(t, 0)
		} else if a.Has("L") || s.fs {
			s.info, err = command.Stat(t, name)
		} else {
			s.info, err = t.View.Lstat(name)
		}
		if err != nil {
			if s.fs {
				t.Errorf("cannot read file system information for %s: %s", command.QuoteAlways(name), reason(err))
			} else {
				t.Errorf("cannot statx %s: %s", command.QuoteAlways(name), reason(err))
			}
			status = 1
			continue
		}
		f := format
		if !s.chosen {
			f = s.usual(a.Has("t"))
		}
		s.print(f, escapes)
		if newline {
			s.w.Byte('\n')
		}
	}
	return status
}

func (s *stater) usual(terse bool) string {
	switch kind := s.info.Mode & linux.S_IFMT; {
	case s.fs && terse:
		return statFSTerse
	case s.fs:
		return statFS
	case terse:
		return statTerse
	case kind == linux.S_IFCHR, kind == linux.S_IFBLK:
		return statDevice
	}
	return statFormat
}

func (s *stater) print(format string, escapes bool) {
	for i := 0; i < len(format); i++ {
		c := format[i]
		switch {
		case c == '%':
			i = s.directive(format, i)
		case c == '\\' && escapes:
			i = s.escape(format, i)
		default:
			s.w.Byte(c)
		}
	}
}

// escape writes a backslash sequence and tells where it ends.
func (s *stater) escape(format string, i int) int {
	i++
	if i == len(format) {
		s.t.Errorf("warning: backslash at end of format")
		s.w.Byte('\\')
		return i
	}
	const from, to = "abefnrtv\\\"", "\a\b\x1b\f\n\r\t\v\\\""
	c := format[i]
	if k := strings.IndexByte(from, c); k >= 0 {
		s.w.Byte(to[k])
		return i
	}
	if c >= '0' && c <= '7' {
		end := i
		for end < len(format) && end < i+3 && format[end] >= '0' && format[end] <= '7' {
			end++
		}
		n, _ := strconv.ParseUint(format[i:end], 8, 16) // at most three digits
		s.w.Byte(byte(n))
		return end - 1
	}
	if c == 'x' {
		end := i + 1
		for end < len(format) && end < i+3 && strings.IndexByte("0123456789abcdefABCDEF", format[end]) >= 0 {
			end++
		}
		if end > i+1 {
			n, _ := strconv.ParseUint(format[i+1:end], 16, 16) // at most two digits
			s.w.Byte(byte(n))
			return end - 1
		}
	}
	s.t.Errorf("warning: unrecognized escape '\\%c'", c)
	s.w.Byte(c)
	return i
}

// directive writes what stands at format[i:], from the percent sign on, and
// tells where that ends.
func (s *stater) directive(format string, i int) int {
	start := i
	i++
	for i < len(format) && strings.IndexByte("-+ #0'I", format[i]) >= 0 {
		i++
	}
	flags := format[start+1 : i]
	width, precision := 0, -1
	for i < len(format) && format[i] >= '0' && format[i] <= '9' {
		width = min(width*10+int(format[i]-'0'), 1<<16)
		i++
	}
	if i < len(format) && format[i] == '.' {
		precision = 0
		for i++; i < len(format) && format[i] >= '0' && format[i] <= '9'; i++ {
			precision = min(precision*10+int(format[i]-'0'), 1<<16)
		}
	}
	if i == len(format) {
		s.w.String(format[start:])
		return i
	}
	c := format[i]
	part := byte(0)
	if (c == 'H' || c == 'L') && !s.fs && i+1 < len(format) && (format[i+1] == 'd' || format[i+1] == 'r') {
		part = c
		i++
		c = format[i]
	}
	if c == '%' {
		if i != start+1 {
			s.t.Errorf("%s: invalid directive", command.Quote(format[start:i+1]))
			s.t.Exit(1)
		}
		s.w.Byte('%')
		return i
	}
	text, kind, ok := s.value(c, part, precision)
	if !ok {
		s.w.Byte('?')
		return i
	}
	s.w.String(pad(text, kind, flags, width, precision))
	return i
}

// pad lays a value out as C's printf does. kind is d, o, x, s or f (a number
// that has its precision already).
func pad(text string, kind byte, flags string, width, precision int) string {
	has := func(c byte) bool { return strings.IndexByte(flags, c) >= 0 }
	switch kind {
	case 's':
		if precision >= 0 && precision < len(text) {
			text = text[:precision]
		}
	case 'd', 'o', 'x':
		if precision > len(text) {
			text = strings.Repeat("0", precision-len(text)) + text
		}
		if has('#') {
			switch {
			case kind == 'o' && text != "0" && text[0] != '0':
				text = "0" + text
			case kind == 'x' && text != "0":
				text = "0x" + text
			}
		}
		if kind == 'd' && text[0] != '-' {
			switch {
			case has('+'):
				text = "+" + text
			case has(' '):
				text = " " + text
			}
		}
	}
	if len(text) >= width {
		return text
	}
	fill := width - len(text)
	switch {
	case has('-'):
		return text + strings.Repeat(" ", fill)
	case has('0') && kind != 's' && (precision < 0 || kind == 'f'):
		sign := 0
		if text[0] == '-' || text[0] == '+' || text[0] == ' ' {
			sign = 1
		}
		return text[:sign] + strings.Repeat("0", fill) + text[sign:]
	}
	return strings.Repeat(" ", fill) + text
}

func (s *stater) value(c, part byte, precision int) (text string, kind byte, ok bool) {
	if s.fs {
		return s.fsValue(c)
	}
	i := s.info
	number := func(n uint64) (string, byte, bool) { return strconv.FormatUint(n, 10), 'd', true }
	hex := func(n uint64) (string, byte, bool) { return strconv.FormatUint(n, 16), 'x', true }
	major := func(d uint64) uint64 { return d >> 8 & 0xfff }
	minor := func(d uint64) uint64 { return d&0xff | d>>12&0xfff00 }
	switch c {
	case 'n':
		return s.name, 's', true
	case 'N':
		l := lister{quoting: "literal"}
		if s.chosen {
			if l.quoting = s.t.Getenv("QUOTING_STYLE"); l.quoting == "" {
				l.quoting = "shell-escape-always"
			}
		}
		q := l.quote(s.name)
		if i.IsLink() {
			target, err := s.t.View.Readlink(s.name)
			if err != nil {
				s.t.Errorf("cannot read symbolic link %s: %s", command.QuoteAlways(s.name), reason(err))
			}
			q += " -> " + l.quote(target)
		}
		return q, 's', true
	case 'd':
		switch part {
		case 'H':
			return number(major(i.Dev))
		case 'L':
			return number(minor(i.Dev))
		}
		return number(i.Dev)
	case 'D':
		return hex(i.Dev)
	case 'i':
		return number(uint64(i.Ino))
	case 'a':
		return strconv.FormatUint(uint64(i.Mode&command.ModeBits), 8), 'o', true
	case 'A':
		return command.ModeString(i.Mode), 's', true
	case 'f':
		return hex(uint64(i.Mode))
	case 'F':
		return kindOf(i), 's', true
	case 'h':
		return number(uint64(i.Nlink))
	case 'u':
		return number(uint64(i.UID))
	case 'U':
		return s.nameOr(s.book.UserName(i.UID)), 's', true
	case 'g':
		return number(uint64(i.GID))
	case 'G':
		return s.nameOr(s.book.GroupName(i.GID)), 's', true
	case 'm':
		return s.mount(), 's', true
	case 's':
		return number(uint64(i.Size))
	case 'r':
		switch part {
		case 'H':
			return number(major(uint64(i.Rdev)))
		case 'L':
			return number(minor(uint64(i.Rdev)))
		}
		return number(uint64(i.Rdev))
	case 'R':
		return hex(uint64(i.Rdev))
	case 't':
		return hex(major(uint64(i.Rdev)))
	case 'T':
		return hex(minor(uint64(i.Rdev)))
	case 'B':
		return "512", 'd', true
	case 'b':
		return number(uint64(max(i.Blocks, 0)))
	case 'o':
		return "4096", 'd', true
	case 'C':
		return "?", 's', true
	case 'w':
		return "-", 's', true
	case 'W':
		return "0", 'd', true
	case 'x':
		return s.time(i.Atime), 's', true
	case 'y':
		return s.time(i.Mtime), 's', true
	case 'z':
		return s.time(i.Ctime), 's', true
	case 'X':
		return seconds(i.Atime, precision), 'f', true
	case 'Y':
		return seconds(i.Mtime, precision), 'f', true
	case 'Z':
		return seconds(i.Ctime, precision), 'f', true
	}
	return "", 0, false
}

func (s *stater) nameOr(name string, ok bool) string {
	if !ok {
		return "UNKNOWN"
	}
	return name
}

func (s *stater) time(m time.Time) string {
	return m.In(s.zone).Format("2006-01-02 15:04:05.000000000 -0700")
}

// seconds writes a time with as many digits behind the point as are asked for.
func seconds(m time.Time, precision int) string {
	if precision <= 0 {
		return strconv.FormatInt(m.Unix(), 10)
	}
	frac := fmt.Sprintf("%09d", m.Nanosecond())
	if precision <= 9 {
		frac = frac[:precision]
	} else {
		frac += strings.Repeat("0", precision-9)
	}
	return strconv.FormatInt(m.Unix(), 10) + "." + frac
}

// mount finds the directory at which the file's file system is mounted.
func (s *stater) mount() string {
	path, err := canonical(&s.t.View, s.name, allParts, !s.info.IsLink())
	if err != nil {
		return "?"
	}
	for path != "/" {
		up := parent(path)
		i, err := s.t.View.Stat(up)
		if err != nil || i.Dev != s.info.Dev {
			break
		}
		path = up
	}
	return path
}

func (s *stater) fsValue(c byte) (text string, kind byte, ok bool) {
	used, files, maxUsed, maxFiles := s.t.View.FS.Usage()
	number := func(n int64) (string, byte, bool) { return strconv.FormatInt(max(n, 0), 10), 'd', true }
	switch c {
	case 'n':
		return s.name, 's', true
	case 'i':
		return strconv.FormatUint(s.info.Dev, 16), 'x', true
	case 'l':
		return "255", 'd', true
	case 't':
		return "1021994", 'x', true
	case 'T':
		return "tmpfs", 's', true
	case 's', 'S':
		return "4096", 'd', true
	case 'b':
		return number(maxUsed / 4096)
	case 'f', 'a':
		return number((maxUsed - used) / 4096)
	case 'c':
		return number(maxFiles)
	case 'd':
		return number(maxFiles - files)
	}
	return "", 0, false
}
