package archive

import (
	"archive/tar"
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// blocking is the length that archives are a multiple of.
const blocking = 20 * 512

func (p *tape) run() int {
	if p.op == 0 {
		return p.usage("You must specify one of the '-Acdtrux', '--delete' or '--test-label' options")
	}
	if !p.fileSet {
		if p.file = p.t.Getenv("TAPE"); p.file == "" {
			p.file = "-"
		}
	}
	if p.auto && p.op != 'x' && p.op != 't' && p.op != 'd' && p.format == none {
		p.format, p.level = bySuffix(p.file)
	}
	var status int
	switch p.op {
	case 'c':
		if len(p.names) == 0 {
			return p.usage("Cowardly refusing to create an empty archive")
		}
		if _, _, terminal := command.TerminalSize(p.t, 1); terminal && p.file == "-" {
			return p.fatal("Refusing to write archive contents to terminal (missing -f option?)")
		}
		status = p.create()
	case 'r', 'u':
		status = p.append()
	default:
		if _, _, terminal := command.TerminalSize(p.t, 0); terminal && p.file == "-" {
			return p.fatal("Refusing to read archive contents from terminal (missing -f option?)")
		}
		status = p.read()
	}
	if status != 0 {
		return status
	}
	if p.totals {
		p.t.Errorf("")
	}
	if p.status > 1 {
		p.t.Errorf("Exiting with failure status due to previous errors")
	}
	return p.status
}

func bySuffix(name string) (format, int) {
	switch {
	case strings.HasSuffix(name, ".gz"), strings.HasSuffix(name, ".tgz"), strings.HasSuffix(name, ".taz"):
		return gz, 6
	case strings.HasSuffix(name, ".bz2"), strings.HasSuffix(name, ".tbz2"), strings.HasSuffix(name, ".tbz"), strings.HasSuffix(name, ".tz2"):
		return bz, 9
	case strings.HasSuffix(name, ".xz"), strings.HasSuffix(name, ".txz"):
		return xzs, 6
	case strings.HasSuffix(name, ".lzma"), strings.HasSuffix(name, ".tlz"):
		return lz, 6
	case strings.HasSuffix(name, ".zst"), strings.HasSuffix(name, ".tzst"):
		return zst, 3
	}
	return none, 6
}

// renamed gives a member's name as --transform wants it.
func (p *tape) renamed(name string, link bool) string {
	for _, s := range p.rename {
		if !link || s.links {
			name = s.apply(name)
		}
	}
	return name
}

// excluded reports whether a name is left out.
func (p *tape) excluded(name string) bool {
	name = strings.TrimRight(name, "/")
	for _, x := range p.exclude {
		for start := 0; start <= len(name); {
			for end := start; ; {
				i := strings.IndexByte(name[end:], '/')
				if i < 0 {
					end = len(name)
				} else {
					end += i
				}
				if ok, err := x.Match(name[start:end], meter{p.t}); ok && err == nil {
					return true
				}
				if end == len(name) {
					break
				}
				end++
			}
			i := strings.IndexByte(name[start:], '/')
			if i < 0 || p.anchored {
				break
			}
			start += i + 1
		}
	}
	return false
}

// shown writes a name as lists have it.
func shown(name string) string {
	plain := true
	for i := range len(name) {
		if c := name[i]; c < ' ' || c >= 0x7f || c == '\\' {
			plain = false
		}
	}
	if plain {
		return name
	}
	var b strings.Builder
	for i := 0; i < len(name); {
		r, n := utf8.DecodeRuneInString(name[i:])
		switch {
		case name[i] == '\\':
			b.WriteString(`\\`)
		case name[i] >= 7 && name[i] <= 13:
			b.WriteByte('\\')
			b.WriteByte("abtnvfr"[name[i]-7])
		case r == utf8.RuneError && n == 1 || !command.IsPrintable(r):
			for k := range n {
				fmt.Fprintf(&b, "\\%03o", name[i+k])
			}
		default:
			b.WriteString(name[i : i+n])
		}
		i += n
	}
	return b.String()
}

// describe writes the line of a member for -v and -t.
func (p *tape) describe(h *tar.Header, name string, detailed bool) string {
	if !detailed {
		return shown(name) + "\n"
	}
	kind := map[byte]uint32{
		tar.TypeDir: linux.S_IFDIR, tar.TypeSymlink: linux.S_IFLNK, tar.TypeChar: linux.S_IFCHR, tar.TypeBlock: linux.S_IFBLK, tar.TypeFifo: linux.S_IFIFO,
	}[h.Typeflag]
	if kind == 0 {
		kind = linux.S_IFREG
	}
	perms := []byte(command.ModeString(kind | uint32(h.Mode)&command.ModeBits))
	if h.Typeflag == tar.TypeLink {
		perms[0] = 'h'
	}
	user, group := h.Uname, h.Gname
	if user == "" || p.numeric {
		user = strconv.Itoa(h.Uid)
	}
	if group == "" || p.numeric {
		group = strconv.Itoa(h.Gid)
	}
	size := strconv.FormatInt(h.Size, 10)
	if kind == linux.S_IFCHR || kind == linux.S_IFBLK {
		size = fmt.Sprintf("%d,%d", h.Devmajor, h.Devminor)
	}
	pad := len(user) + 1 + len(group) + 1 + len(size)
	p.width = max(p.width, pad)
	stamp := h.ModTime.In(p.zone).Format("2006-01-02 15:04")
	if p.fullTime {
		stamp = h.ModTime.In(p.zone).Format("2006-01-02 15:04:05")
	}
	line := fmt.Sprintf("%s %s/%s %*s %s %s", perms, user, group, p.width-pad+len(size), size, stamp, shown(name))
	switch h.Typeflag {
	case tar.TypeSymlink:
		line += " -> " + shown(h.Linkname)
	case tar.TypeLink:
		line += " link to " + shown(h.Linkname)
	}
	return line + "\n"
}

// tell prints a member's line; to standard error where standard output has
// the archive or contents.
func (p *tape) tell(h *tar.Header, name string, atLeast int) {
	if p.verbose < atLeast {
		return
	}
	line := p.describe(h, name, p.verbose > atLeast)
	if p.toStdout || p.op != 'x' && p.op != 't' && p.op != 'd' && p.file == "-" {
		_ = p.t.Flush() // the end of the program tells of it
		_, _ = p.t.Write(2, []byte(line))
		return
	}
	_, _ = p.t.Out().WriteString(line)
}

// stripped takes away what must not be at a name's start, and says so once.
func (p *tape) stripped(name, what string) string {
	if p.absolute {
		return name
	}
	safe, prefix := safeName(name)
	if prefix != "" && !p.warned[what+prefix] {
		p.warned[what+prefix] = true
		p.t.Errorf("Removing leading `%s' from %s", prefix, what)
	}
	if safe == "" {
		if !p.warned["."+what] {
			p.warned["."+what] = true
			p.t.Errorf("Substituting `.' for empty member name")
		}
		return "."
	}
	return safe
}

// A source is an archive that is read.
type source struct {
	in   *command.Input
	u    *unpacker
	r    *tar.Reader
	sums *counted
}

func (s *source) close() {
	if s.u != nil {
		s.u.close()
	}
	_ = s.in.Close() // it was only read
}

// open begins to read the archive.
func (p *tape) open() (*source, int) {
	in, err := command.Open(p.t, p.file)
	if err != nil {
		return nil, p.fatal("%s: Cannot open: %s", p.file, reason(err))
	}
	s := &source{in: in}
	buf := bufio.NewReaderSize(in, 32<<10)
	head, err := buf.Peek(13)
	if err != nil && err != io.EOF {
		s.close()
		return nil, p.fatal("%s: Cannot read: %s", p.file, reason(err))
	}
	f := sniff(head)
	if p.format != none && f != p.format && len(head) > 0 {
		s.close()
		p.complainFormat()
		p.t.Errorf("Child returned status 1")
		p.t.Errorf("Error is not recoverable: exiting now")
		return nil, 2
	}
	u, err := unpack(p.t, f, buf)
	if err != nil {
		s.close()
		return nil, p.fatal("%s: %s", p.file, err)
	}
	s.u = u
	s.sums = &counted{r: u}
	s.r = tar.NewReader(s.sums)
	return s, 0
}

// complainFormat says that the archive is not compressed as was said.
func (p *tape) complainFormat() {
	text := "\ngzip: stdin: not in gzip format\n"
	switch p.format {
	case bz:
		text = "bzip2: (stdin) is not a bzip2 file.\n"
	case xzs, lz:
		text = "xz: (stdin): File format not recognized\n"
	case zst:
		text = "zstd: /*stdin*\\: unsupported format \n"
	}
	_, _ = p.t.Write(2, []byte(text))
}

// A wanted name is one that is to be extracted or listed.
type wanted struct {
	operandOf
	match func(string) bool
	found bool
}

func (p *tape) wanted() []*wanted {
	list := make([]*wanted, 0, len(p.names))
	for _, n := range p.names {
		w := &wanted{operandOf: n}
		name := strings.TrimRight(n.name, "/")
		if p.wild && strings.ContainsAny(name, "*?[\\") {
			one := &tape{t: p.t, anchored: true}
			one.exclude = append(one.exclude, compile(name))
			w.match = one.excluded
		} else {
			w.match = func(m string) bool {
				m = strings.TrimRight(m, "/")
				return m == name || strings.HasPrefix(m, name) && (strings.HasSuffix(name, "/") || m[len(name)] == '/')
			}
		}
		list = append(list, w)
	}
	return list
}

// read lists, extracts or compares.
func (p *tape) read() int {
	s, status := p.open()
	if s == nil {
		return status
	}
	defer s.close()
	want := p.wanted()
	var x extraction
	x.begin(p)
	some := false
	for {
		var h *tar.Header
		err := guard(func() error {
			var err error
			h, err = s.r.Next()
			return err
		})
		if err == io.EOF {
			if !some && s.sums.n == 0 {
				p.fail("This does not look like a tar archive")
				return 0
			}
			if s.sums.n%512 != 0 {
				return x.cut()
			}
			break
		}
		if err != nil {
			switch {
			case errors.Is(err, tar.ErrHeader) && !some:
				p.fail("This does not look like a tar archive")
				p.fail("Skipping to next header")
				return 0
			case errors.Is(err, tar.ErrHeader):
				p.fail("Skipping to next header")
			case errors.Is(err, io.ErrUnexpectedEOF):
				return x.cut()
			default:
				return p.fatal("%s", reason(err))
			}
			break
		}
		some = true
		p.t.Traverse(1)
		if h.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		dir, ok := p.chosen(want, h.Name)
		if !ok || p.excluded(h.Name) {
			continue
		}
		if err := x.member(s, h, dir); err != nil {
			if errors.Is(err, io.ErrUnexpectedEOF) {
				return x.cut()
			}
			return p.fatal("%s", reason(err))
		}
	}
	x.end()
	for _, w := range want {
		if !w.found {
			if !p.wild && strings.ContainsAny(w.name, "*?[") && !p.warned["pattern"] {
				p.warned["pattern"] = true
				p.t.Errorf("Pattern matching characters used in file names")
				p.t.Errorf("Use --wildcards to enable pattern matching, or --no-wildcards to suppress this warning")
			}
			p.fail("%s: Not found in archive", shown(w.name))
		}
	}
	return 0
}

// chosen reports whether a member is asked for, and the directory for it.
func (p *tape) chosen(want []*wanted, name string) (string, bool) {
	if len(want) == 0 {
		return p.dir, true
	}
	for _, w := range want {
		p.t.Step(1)
		if w.match(name) {
			w.found = true
			return w.dir, true
		}
	}
	return "", false
}

// strip takes leading parts away; false is that nothing is left.
func (p *tape) stripParts(name string) (string, bool) {
	for range p.strip {
		name = strings.TrimLeft(name, "/")
		i := strings.IndexByte(name, '/')
		if i < 0 {
			return "", false
		}
		name = name[i+1:]
	}
	if p.strip > 0 {
		name = strings.TrimLeft(name, "/")
	}
	return name, name != ""
}

// header describes a file for the archive.
func (p *tape) header(i vfs.Info, name, target string) *tar.Header {
	h := &tar.Header{
		Name: name, Linkname: target, Mode: int64(i.Mode & command.ModeBits), Uid: i.UID, Gid: i.GID, ModTime: time.Unix(i.Mtime.Unix(), 0), Format: tar.FormatGNU,
	}
	switch p.pax {
	case "pax", "posix":
		h.Format, h.ModTime = tar.FormatPAX, i.Mtime
	case "ustar":
		h.Format = tar.FormatUSTAR
	}
	switch i.Mode & linux.S_IFMT {
	case linux.S_IFREG:
		h.Typeflag, h.Size = tar.TypeReg, i.Size
	case linux.S_IFDIR:
		h.Typeflag = tar.TypeDir
		if !strings.HasSuffix(h.Name, "/") {
			h.Name += "/"
		}
	case linux.S_IFLNK:
		h.Typeflag = tar.TypeSymlink
	case linux.S_IFIFO:
		h.Typeflag = tar.TypeFifo
	case linux.S_IFCHR:
		h.Typeflag = tar.TypeChar
	case linux.S_IFBLK:
		h.Typeflag = tar.TypeBlock
	}
	if h.Typeflag == tar.TypeChar || h.Typeflag == tar.TypeBlock {
		h.Devmajor, h.Devminor = int64(i.Rdev>>8&0xfff), int64(i.Rdev&0xff)
	}
	if !p.mtime.IsZero() {
		h.ModTime = p.mtime
		if h.Format != tar.FormatPAX {
			h.ModTime = time.Unix(p.mtime.Unix(), 0)
		}
	}
	if p.bits != nil {
		b, _ := p.bits.Apply(uint32(h.Mode), i.IsDir(), 0)
		h.Mode = int64(b)
	}
	p.owners(h)
	return h
}

func (p *tape) owners(h *tar.Header) {
	set := func(s string, id *int, name *string, byName func(string) (int, bool)) {
		n, number, both := strings.Cut(s, ":")
		if k, err := strconv.Atoi(number); both && err == nil {
			*id, *name = k, n
			return
		}
		if k, err := strconv.Atoi(strings.TrimPrefix(n, "+")); err == nil {
			*id, *name = k, ""
			return
		}
		*name = n
		if k, ok := byName(n); ok {
			*id = k
		}
	}
	if p.owner != "" {
		set(p.owner, &h.Uid, &h.Uname, p.book.UserID)
	}
	if p.group != "" {
		set(p.group, &h.Gid, &h.Gname, p.book.GroupID)
	}
	if p.numeric {
		h.Uname, h.Gname = "", ""
		return
	}
	if h.Uname == "" {
		h.Uname, _ = p.book.UserName(h.Uid)
	}
	if h.Gname == "" {
		h.Gname, _ = p.book.GroupName(h.Gid)
	}
}
