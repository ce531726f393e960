package find

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/strftime"
)

// A segment is a piece of a format: text, or a directive.
type segment struct {
	text   string
	spec   string // the flags, width and precision of a directive
	c, sub byte   // c is 0 for text
}

// printf reads the format of -printf.
func (p *parser) printf(format string, o *output) test {
	var segments []segment
	var text strings.Builder
	flush := func() {
		if text.Len() > 0 {
			segments = append(segments, segment{text: text.String()})
			text.Reset()
		}
	}
	stop := false
	for i := 0; i < len(format) && !stop; i++ {
		switch c := format[i]; c {
		case '\\':
			n, end := p.escape(&text, format[i:])
			i += n - 1
			stop = end
		case '%':
			seg, n, ok := p.directive(format[i:])
			if !ok {
				return nil
			}
			i += n - 1
			switch seg.c {
			case 0:
				text.WriteString(seg.text)
			default:
				flush()
				segments = append(segments, seg)
			}
		default:
			text.WriteByte(c)
		}
	}
	flush()
	return func(f *finder, e *command.WalkEntry) bool {
		for i := range segments {
			s := &segments[i]
			if s.c == 0 {
				o.write([]byte(s.text))
			} else {
				o.write([]byte(f.field(s, e)))
			}
		}
		return true
	}
}

// escape reads a backslash sequence and tells how long it is, and whether the
// format ends there.
func (p *parser) escape(b *strings.Builder, s string) (n int, end bool) {
	if len(s) == 1 {
		p.f.t.Errorf("warning: escape `\\' followed by nothing at all")
		b.WriteByte('\\')
		return 1, false
	}
	c := s[1]
	if c >= '0' && c <= '7' {
		k := 1
		v := 0
		for k < len(s) && k < 4 && s[k] >= '0' && s[k] <= '7' {
			v = v*8 + int(s[k]-'0')
			k++
		}
		b.WriteByte(byte(v))
		return k, false
	}
	switch c {
	case 'a':
		b.WriteByte('\a')
	case 'b':
		b.WriteByte('\b')
	case 'c':
		return 2, true
	case 'f':
		b.WriteByte('\f')
	case 'n':
		b.WriteByte('\n')
	case 'r':
		b.WriteByte('\r')
	case 't':
		b.WriteByte('\t')
	case 'v':
		b.WriteByte('\v')
	case '\\':
		b.WriteByte('\\')
	default:
		p.f.t.Errorf("warning: unrecognized escape `\\%c'", c)
		b.WriteString(s[:2])
	}
	return 2, false
}

func (p *parser) directive(s string) (seg segment, n int, ok bool) {
	i := 1
	for i < len(s) && strings.IndexByte("-+ #0", s[i]) >= 0 {
		i++
	}
	width := i
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	if i-width > 4 {
		p.fail("invalid width in format")
		return seg, 0, false
	}
	if i < len(s) && s[i] == '.' {
		prec := i
		for i++; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
		}
		if i-prec > 5 {
			p.fail("invalid precision in format")
			return seg, 0, false
		}
	}
	if i == len(s) {
		p.f.errorf("error: %% at end of format string")
		p.bad = true
		return seg, 0, false
	}
	c := s[i]
	seg = segment{spec: s[1:i], c: c}
	switch {
	case c == '%':
		return segment{text: "%"}, i + 1, true
	case strings.IndexByte("abcdDfFgGhHiklmMnpPsStuUyYZ", c) >= 0:
		return seg, i + 1, true
	case c == 'A' || c == 'B' || c == 'C' || c == 'T':
		if i+1 == len(s) {
			p.f.t.Errorf("warning: format directive `%s' should be followed by another character", s)
			return segment{text: s}, len(s), true
		}
		seg.sub = s[i+1]
		return seg, i + 2, true
	}
	p.f.t.Errorf("warning: unrecognized format directive `%s'", s[:i+1])
	return segment{text: s[:i+1]}, i + 1, true
}

// field writes one directive.
func (f *finder) field(s *segment, e *command.WalkEntry) string {
	i := e.Info
	str := func(v string) string { return fmt.Sprintf("%"+strings.Trim(s.spec, "#+")+"s", v) }
	if s.spec == "" {
		str = func(v string) string { return v }
	}
	switch s.c {
	case 'p':
		return str(e.Path)
	case 'f':
		path := e.Path
		if i := strings.LastIndexByte(strings.TrimRight(path, "/"), '/'); i >= 0 && strings.Trim(path, "/") != "" {
			path = path[i+1:]
		}
		return str(path)
	case 'h':
		path := e.Path
		k := strings.LastIndexByte(path, '/')
		switch {
		case strings.Trim(path, "/") == "":
			return str("")
		case k < 0:
			return str(".")
		}
		return str(path[:k])
	case 'H':
		return str(f.root)
	case 'P':
		return str(strings.TrimPrefix(e.Path[len(f.root):], "/"))
	case 'd':
		return fmt.Sprintf("%"+s.spec+"d", e.Depth)
	case 'm':
		return fmt.Sprintf("%"+s.spec+"o", i.Mode&command.ModeBits)
	case 'M':
		return str(command.ModeString(i.Mode))
	case 's':
		return str(strconv.FormatInt(i.Size, 10))
	case 'b':
		return str(strconv.FormatInt(max(i.Blocks, 0), 10))
	case 'k':
		return str(strconv.FormatInt((max(i.Blocks, 0)+1)/2, 10))
	case 'n':
		return str(strconv.Itoa(i.Nlink))
	case 'i':
		return str(strconv.FormatUint(uint64(i.Ino), 10))
	case 'D':
		return str(strconv.FormatUint(i.Dev, 10))
	case 'u':
		return str(f.book.UserText(i.UID))
	case 'g':
		return str(f.book.GroupText(i.GID))
	case 'U':
		return str(strconv.Itoa(i.UID))
	case 'G':
		return str(strconv.Itoa(i.GID))
	case 'l':
		target := ""
		if i.IsLink() {
			target, _ = e.In.Readlink(e.Name) // one that cannot be read is empty
		}
		return str(target)
	case 'y':
		return str(letter(i.Mode))
	case 'Y':
		if i.IsLink() {
			to, err := e.In.Stat(e.Name)
			switch err {
			case nil:
				return str(letter(to.Mode))
			case linux.ENOENT, linux.ENOTDIR:
				return str("N")
			case linux.ELOOP:
				return str("L")
			}
			return str("?")
		}
		return str(letter(i.Mode))
	case 'F':
		return str("tmpfs")
	case 'S':
		if i.Size == 0 {
			return fmt.Sprintf("%"+s.spec+"g", 1.0)
		}
		return fmt.Sprintf("%"+s.spec+"g", float64(i.Blocks)*512/float64(i.Size))
	case 'Z':
		return str("")
	case 'a':
		return str(f.clock(i.Atime))
	case 'c':
		return str(f.clock(i.Ctime))
	case 't':
		return str(f.clock(i.Mtime))
	case 'A':
		return str(f.part(i.Atime, s.sub))
	case 'C', 'B':
		return str(f.part(i.Ctime, s.sub))
	case 'T':
		return str(f.part(i.Mtime, s.sub))
	}
	return ""
}

func letter(m uint32) string {
	if m&linux.S_IFMT == linux.S_IFREG {
		return "f"
	}
	return string(command.TypeLetter(m))
}

func (f *finder) clock(m time.Time) string {
	m = m.In(f.zone)
	return m.Format("Mon Jan _2 15:04:05") + fmt.Sprintf(".%09d0", m.Nanosecond()) + m.Format(" 2006")
}

// part writes a part of a time. Seconds have a fraction of ten digits.
func (f *finder) part(m time.Time, c byte) string {
	m = m.In(f.zone)
	frac := fmt.Sprintf(".%09d0", m.Nanosecond())
	switch c {
	case '@':
		return strconv.FormatInt(m.Unix(), 10) + frac
	case 'S':
		return m.Format("05") + frac
	case 'T', 'X':
		return m.Format("15:04:05") + frac
	case '+':
		return m.Format("2006-01-02+15:04:05") + frac
	case 'r':
		return m.Format("03:04:05") + frac + m.Format(" PM")
	case 'c':
		return m.Format("Mon Jan _2 15:04:05") + frac + m.Format(" 2006")
	}
	b, err := strftime.Append(nil, "%"+string(c), m, strftime.Date)
	if err != nil {
		return ""
	}
	return string(b)
}
