package archive

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

func reason(err error) string { return vfs.Message(err) }

// A press is a run of gzip, bzip2, xz or zstd under any of their names.
type press struct {
	t      *kernel.Task
	format format
	suffix string

	unpack, stdout, force, keep, test, list bool
	quiet                                   bool
	verbose                                 int
	level                                   int
	noName, useName                         bool
	recursive                               bool
	out                                     string // zstd -o
	status                                  int
}

func pressSpec(name string, f format) *command.Spec {
	s := &command.Spec{
		Name: name, Synopsis: "[OPTION]... [FILE]...", About: "Compress or uncompress FILEs in the " + string(f) + " format.", NoTry: true,
		Options: []command.Option{
			{Short: 'c', Long: "stdout", Help: "write on standard output, keep original files unchanged"}, {Long: "to-stdout", Help: "same as -c"},
			{Short: 'd', Long: "decompress", Help: "decompress"}, {Long: "uncompress", Help: "same as -d"},
			{Short: 'f', Long: "force", Help: "force overwrite of output file and compress links"},
			{Short: 'k', Long: "keep", Help: "keep (don't delete) input files"},
			{Short: 'q', Long: "quiet", Help: "suppress all warnings"},
			{Short: 't', Long: "test", Help: "test compressed file integrity"},
			{Short: 'v', Long: "verbose", Help: "verbose mode"},
			{Short: 'z', Long: "compress", Help: "compress"},
			{Long: "fast", Help: "compress faster"}, {Long: "best", Help: "compress better"},
		},
	}
	for c := byte('0'); c <= '9'; c++ {
		s.Options = append(s.Options, command.Option{Short: c, Help: "compression level"})
	}
	add := func(o ...command.Option) { s.Options = append(s.Options, o...) }
	switch f {
	case gz:
		add(command.Option{Short: 'a', Long: "ascii", Help: "(ignored)"}, command.Option{Short: 'h', Help: "give this help"}, command.Option{Short: 'l', Long: "list", Help: "list compressed file contents"},
			command.Option{Short: 'L', Long: "license", Help: "display software license"}, command.Option{Short: 'n', Long: "no-name", Help: "do not save or restore the original name and timestamp"},
			command.Option{Short: 'N', Long: "name", Help: "save or restore the original name and timestamp"}, command.Option{Short: 'r', Long: "recursive", Help: "operate recursively on directories"},
			command.Option{Long: "rsyncable", Help: "(ignored)"}, command.Option{Short: 'S', Long: "suffix", Arg: command.Required, Name: "SUF", Help: "use suffix SUF on compressed files"},
			command.Option{Long: "synchronous", Help: "(ignored)"}, command.Option{Short: 'V', Help: "display version number"})
	case bz:
		add(command.Option{Short: 's', Long: "small", Help: "(ignored)"}, command.Option{Short: 'h', Help: "print this message"}, command.Option{Short: 'L', Long: "license", Help: "display software version & license"}, command.Option{Short: 'V', Help: "display software version & license"})
	case xzs, lz:
		add(command.Option{Short: 'l', Long: "list", Help: "list information about .xz files"}, command.Option{Short: 'e', Long: "extreme", Help: "(ignored)"}, command.Option{Short: 'S', Long: "suffix", Arg: command.Required, Name: ".SUF", Help: "use the suffix '.SUF' on compressed files"},
			command.Option{Short: 'T', Long: "threads", Arg: command.Required, Name: "NUM", Help: "(ignored)"}, command.Option{Short: 'M', Long: "memlimit", Arg: command.Required, Name: "LIMIT", Help: "(ignored)"},
			command.Option{Short: 'F', Long: "format", Arg: command.Required, Name: "FMT", Help: "file format: auto, xz, lzma, raw"}, command.Option{Short: 'C', Long: "check", Arg: command.Required, Name: "CHECK", Help: "(ignored)"},
			command.Option{Short: 'Q', Long: "no-warn", Help: "make warnings not affect the exit status"}, command.Option{Long: "single-stream", Help: "(ignored)"}, command.Option{Long: "no-sparse", Help: "(ignored)"}, command.Option{Short: 'h', Help: "display this short help and exit"}, command.Option{Short: 'V', Help: "display the version number and exit"})
	case zst:
		add(command.Option{Short: 'l', Long: "list", Help: "(not supported)"}, command.Option{Short: 'o', Arg: command.Required, Name: "OUTPUT", Help: "write output to a single file"}, command.Option{Long: "rm", Help: "remove input files after success"},
			command.Option{Short: 'r', Help: "operate recursively on directories"}, command.Option{Short: 'T', Long: "threads", Arg: command.Required, Name: "NUM", Help: "(ignored)"}, command.Option{Long: "ultra", Help: "enable levels beyond 19"}, command.Option{Long: "long", Arg: command.Optional, Help: "(ignored)"},
			command.Option{Long: "no-progress", Help: "(ignored)"}, command.Option{Long: "progress", Help: "(ignored)"}, command.Option{Short: 'C', Long: "check", Help: "(ignored)"}, command.Option{Long: "no-check", Help: "(ignored)"}, command.Option{Long: "sparse", Help: "(ignored)"}, command.Option{Long: "no-sparse", Help: "(ignored)"}, command.Option{Long: "adapt", Arg: command.Optional, Help: "(ignored)"},
			command.Option{Short: 'h', Help: "display usage and exit"}, command.Option{Short: 'V', Help: "display version and exit"}, command.Option{Long: "format", Arg: command.Required, Name: "FORMAT", Help: "(ignored)"})
	case none:
	}
	return s
}

// known tells a tool's format by its name, and what that makes of it.
func known(name string) *press {
	p := &press{format: gz, suffix: ".gz", level: 6}
	switch name {
	case "gunzip":
		p.unpack = true
	case "zcat":
		p.unpack, p.stdout = true, true
	case "bzip2", "bunzip2", "bzcat":
		p.format, p.suffix, p.level = bz, ".bz2", 9
		p.unpack, p.stdout = name != "bzip2", name == "bzcat"
	case "xz", "unxz", "xzcat":
		p.format, p.suffix = xzs, ".xz"
		p.unpack, p.stdout = name != "xz", name == "xzcat"
	case "lzma", "unlzma", "lzcat":
		p.format, p.suffix = lz, ".lzma"
		p.unpack, p.stdout = name != "lzma", name == "lzcat"
	case "zstd", "unzstd", "zstdcat", "zstdmt":
		p.format, p.suffix, p.level, p.keep = zst, ".zst", 3, true
		p.unpack, p.stdout = name == "unzstd" || name == "zstdcat", name == "zstdcat"
	}
	return p
}

// called is what a tool calls itself in complaints.
func (p *press) called() string {
	switch p.format {
	case gz:
		return "gzip"
	case zst:
		return "zstd"
	}
	return p.t.Name()
}

func (p *press) complain(status int, format string, args ...any) {
	if p.status != 1 {
		p.status = status
	}
	if status == 2 && p.quiet {
		return
	}
	_ = p.t.Flush() // the end of the program tells of it
	_, _ = p.t.Write(2, []byte(p.called()+": "+fmt.Sprintf(format, args...)+"\n"))
}

func runPress(t *kernel.Task) int {
	p := known(t.Name())
	p.t = t
	spec := pressSpec(t.Name(), p.format)
	if p.format == xzs || p.format == lz {
		spec.Exit = 1
	}
	a, status, ok := spec.Parse(t)
	if !ok {
		if status == 0 {
			return 0
		}
		switch p.format {
		case gz:
			_, _ = t.Write(2, []byte("Try `gzip --help' for more information.\n"))
		case xzs, lz:
			_, _ = t.Write(2, []byte("xz: Try `xz --help' for more information.\n"))
		}
		return 1
	}
	for _, f := range a.Flags {
		switch f.Key {
		case "c", "to-stdout":
			p.stdout = true
		case "d", "uncompress":
			p.unpack = true
		case "z":
			p.unpack = false
		case "f":
			p.force = true
		case "k":
			p.keep = true
		case "rm":
			p.keep = false
		case "q":
			p.quiet = true
		case "t":
			p.test, p.unpack = true, true
		case "v":
			p.verbose++
		case "l":
			p.list, p.unpack = true, true
		case "fast":
			p.level = 1
		case "best":
			p.level = 9
		case "n":
			p.noName, p.useName = true, false
		case "N":
			p.noName, p.useName = false, true
		case "r":
			p.recursive = true
		case "S":
			p.suffix = f.Value
			if p.suffix == "" {
				p.complain(1, "invalid suffix '%s'", f.Value)
				return 1
			}
			if p.suffix[0] != '.' && p.format == gz {
				p.suffix = "." + p.suffix
			}
		case "F":
			switch f.Value {
			case "lzma", "alone":
				p.format, p.suffix = lz, ".lzma"
			case "xz", "auto":
			default:
				p.complain(1, "%s: Unknown file format type", f.Value)
				return 1
			}
		case "o":
			p.out = f.Value
		case "h":
			fmt.Fprintf(t.Out(), "Usage: %s %s\n", t.Name(), spec.Synopsis)
			return 0
		case "V", "L":
			fmt.Fprintf(t.Out(), "%s (Paddock)\n", t.Name())
			return 0
		case "0", "1", "2", "3", "4", "5", "6", "7", "8", "9":
			p.level = int(f.Key[0] - '0')
		}
	}
	if p.format == bz || p.format == gz {
		p.level = max(p.level, 1)
	}
	files := a.Operands
	if len(files) == 0 {
		files = []string{"-"}
	}
	if p.list && p.format == gz {
		return p.listAll(files)
	}
	for _, f := range files {
		if f == "-" {
			p.stream()
			continue
		}
		p.file(f)
	}
	return p.status
}

// stream works from standard input to standard output.
func (p *press) stream() {
	t := p.t
	if _, _, terminal := command.TerminalSize(t, 1); terminal && !p.unpack && !p.force {
		p.complain(1, "compressed data not written to a terminal. Use -f to force compression.\nFor help, type: %s -h", t.Name())
		return
	}
	if p.test {
		p.through(t.In(), io.Discard, settings{}, "(stdin)")
		return
	}
	w := bufio.NewWriterSize(t.Stream(1), 32<<10)
	p.through(t.In(), w, settings{level: p.level}, "(stdin)")
	if err := w.Flush(); err != nil {
		p.complain(1, "stdout: %s", reason(err))
	}
}

// through packs or unpacks. It complains, and tells whether all went well.
func (p *press) through(r *bufio.Reader, w io.Writer, s settings, name string) bool {
	buf := make([]byte, 32<<10)
	if !p.unpack {
		z, err := pack(p.t, p.format, w, s)
		if err == nil {
			if err = copyAll(z, r, buf); err == nil {
				err = z.Close()
			}
		}
		if err != nil {
			p.complain(1, "%s: %s", name, reason(err))
		}
		return err == nil
	}
	head, err := r.Peek(13)
	if err != nil && err != io.EOF && len(head) == 0 {
		p.complain(1, "%s: %s", name, reason(err))
		return false
	}
	f := sniff(head)
	want := p.format
	switch {
	case f == want, f == lz && want == xzs, f == xzs && want == lz, f != none && want == zst:
	case p.force && p.stdout:
		f = none
	case want == gz && f == none && len(head) == 0, want == bz && len(head) == 0:
		p.broken(name, io.ErrUnexpectedEOF)
		return false
	default:
		p.unknown(name)
		return false
	}
	u, err := unpack(p.t, f, r)
	if err == nil {
		defer u.close()
		err = copyAll(w, u, buf)
	}
	if errors.Is(err, gzipTrailing) {
		return true
	}
	if err != nil {
		p.broken(name, err)
	}
	return err == nil
}

// gzipTrailing stands for garbage behind data that were complete.
var gzipTrailing = errors.New("trailing garbage")

func (p *press) unknown(name string) {
	switch p.format {
	case gz:
		p.blank()
		p.complain(1, "%s: not in gzip format", strings.Trim(name, "()"))
	case bz:
		p.complain(2, "%s is not a bzip2 file.", name)
		p.status = 2
	case zst:
		p.complain(1, "%s: unsupported format ", name)
	default:
		p.complain(1, "%s: File format not recognized", name)
	}
}

// blank is the line that gzip puts before complaints about what a file holds.
func (p *press) blank() {
	_ = p.t.Flush() // the end of the program tells of it
	_, _ = p.t.Write(2, []byte("\n"))
}

func (p *press) broken(name string, err error) {
	end := errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
	switch p.format {
	case gz:
		name = strings.Trim(name, "()")
		p.blank()
		switch {
		case end:
			p.complain(1, "%s: unexpected end of file", name)
		case strings.Contains(err.Error(), "checksum"):
			p.complain(1, "%s: invalid compressed data--crc error", name)
		default:
			p.complain(1, "%s: invalid compressed data--format violated", name)
		}
	case bz:
		if end {
			p.complain(2, "Compressed file ends unexpectedly;\n\tperhaps it is corrupted?  *Possible* reason follows.")
		} else {
			p.complain(2, "Data integrity error when decompressing.")
		}
		p.status = 2
	case zst:
		p.complain(1, "%s : Decoding error (36) : %s ", name, err)
	default:
		var e linux.Errno
		switch {
		case errors.As(err, &e):
			p.complain(1, "%s: %s", name, reason(err))
		case end:
			p.complain(1, "%s: %s", name, errXZEnd)
		case errors.Is(err, errXZFormat), errors.Is(err, errXZOptions), errors.Is(err, errXZMemory), errors.Is(err, errXZEnd):
			p.complain(1, "%s: %s", name, err)
		default:
			p.complain(1, "%s: %s", name, errXZCorrupt)
		}
	}
}

func copyAll(w io.Writer, r io.Reader, buf []byte) error {
	for {
		n, err := r.Read(buf)
		if n > 0 {
			if _, werr := w.Write(buf[:n]); werr != nil {
				return werr
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// target gives the name of what comes out.
func (p *press) target(name string) (string, bool) {
	if !p.unpack {
		return name + p.suffix, true
	}
	for _, s := range [][2]string{
		{p.suffix, ""}, {".tgz", ".tar"}, {".taz", ".tar"}, {".gz", ""}, {"-gz", ""}, {".z", ""}, {"-z", ""}, {".Z", ""},
		{".tbz2", ".tar"}, {".tbz", ".tar"}, {".bz2", ""}, {".bz", ""}, {".txz", ".tar"}, {".tlz", ".tar"}, {".xz", ""}, {".lzma", ""}, {".tzst", ".tar"}, {".zst", ""},
	} {
		own := map[format]string{gz: "gz-gz.tgz.taz.z-z.Z", bz: ".bz2.bz.tbz2.tbz", xzs: ".xz.lzma.txz.tlz", lz: ".xz.lzma.txz.tlz", zst: ".zst.tzst"}[p.format]
		if s[0] != p.suffix && !strings.Contains(own+".gz", s[0]) || s[0] == ".gz" && p.format != gz {
			continue
		}
		if b, ok := strings.CutSuffix(name, s[0]); ok && b != "" && !strings.HasSuffix(b, "/") {
			return b + s[1], true
		}
	}
	return name, false
}

// file packs or unpacks a file into another.
func (p *press) file(name string) {
	t := p.t
	i, err := t.View.Lstat(name)
	if err == nil && i.IsLink() {
		i, err = t.View.Stat(name)
		if err == nil && !p.stdout && !p.force && !p.test && p.format != zst {
			p.link(name)
			return
		}
	}
	if err == linux.ENOENT && p.unpack && p.format == gz {
		if _, ok := p.target(name); !ok {
			name += p.suffix
			i, err = t.View.Stat(name)
		}
	}
	switch {
	case err != nil:
		p.cannotOpen(name, err)
		return
	case i.IsDir() && p.recursive:
		p.below(name)
		return
	case i.IsDir():
		p.isDirectory(name)
		return
	}
	to, ok := p.target(name)
	if p.out != "" {
		to, ok = p.out, true
	}
	if !p.stdout && !p.test && !p.named(name, &to, ok) {
		return
	}
	in, err := command.Open(t, name)
	if err != nil {
		p.cannotOpen(name, err)
		return
	}
	defer in.Close()
	r := bufio.NewReaderSize(in, 32<<10)
	s := settings{level: p.level}
	if !p.noName {
		s.name, s.time = path.Base(name), i.Mtime
	}
	switch {
	case p.test:
		if p.through(r, io.Discard, s, name) && p.verbose > 0 {
			p.tell(name + ":\t OK")
		}
		return
	case p.stdout:
		w := bufio.NewWriterSize(t.Stream(1), 32<<10)
		p.through(r, w, s, name)
		if err := w.Flush(); err != nil {
			p.complain(1, "stdout: %s", reason(err))
		}
		return
	}
	p.replace(name, to, i, r, s)
}

// named reports whether a file may be packed or unpacked under its name.
func (p *press) named(name string, to *string, ok bool) bool {
	switch {
	case p.unpack && !ok:
		switch p.format {
		case gz:
			p.complain(2, "%s: unknown suffix -- ignored", name)
		case bz:
			if !p.quiet {
				_, _ = p.t.Write(2, []byte(p.called()+": Can't guess original name for "+name+" -- using "+name+".out\n"))
			}
			*to = name + ".out"
			return true
		case zst:
			p.complain(1, "%s: unknown suffix (.zst/.tzst/.gz/.tgz/.lzma/.xz/.txz/.lz4/.tlz4 expected). Can't derive the output file name. Specify it with -o dstFileName. Ignoring.", name)
		default:
			if b, err := p.t.View.Open(name, linux.O_RDONLY, 0); err == nil {
				head := make([]byte, 13)
				n, _ := b.ReadAt(head, 0) // an empty file is of no format
				_ = b.Close()             // it was only read
				if f := sniff(head[:n]); f != xzs && f != lz {
					p.complain(1, "%s: File format not recognized", name)
					return false
				}
			}
			p.complain(2, "%s: Filename has an unknown suffix, skipping", name)
		}
		return false
	case !p.unpack && !p.force && strings.HasSuffix(name, p.suffix) && p.format != zst:
		switch p.format {
		case gz:
			before := p.status
			p.complain(2, "%s already has %s suffix -- unchanged", name, p.suffix)
			p.status = before
		case bz:
			p.complain(1, "Input file %s already has %s suffix.", name, p.suffix)
		default:
			p.complain(2, "%s: File already has `%s' suffix, skipping", name, p.suffix)
		}
		return false
	}
	if p.force {
		return true
	}
	if _, err := p.t.View.Lstat(*to); err != nil {
		return true
	}
	switch p.format {
	case gz:
		if _, _, terminal := command.TerminalSize(p.t, 0); terminal {
			_ = p.t.Flush() // the end of the program tells of it
			_, _ = p.t.Write(2, []byte("gzip: "+*to+" already exists; do you wish to overwrite (y or n)? "))
			line, err := p.t.In().ReadString('\n')
			if (err == nil || line != "") && strings.HasPrefix(strings.ToLower(line), "y") {
				return true
			}
			_, _ = p.t.Write(2, []byte("\tnot overwritten\n"))
			p.status = max(p.status, 2)
			return false
		}
		p.complain(2, "%s already exists;\tnot overwritten", *to)
	case bz:
		p.complain(1, "Output file %s already exists.", *to)
	case zst:
		p.complain(1, "%s already exists; not overwritten  ", *to)
	default:
		p.complain(1, "%s: File exists", *to)
	}
	return false
}

// replace writes the new file and removes the old one.
func (p *press) replace(name, to string, i vfs.Info, r *bufio.Reader, s settings) {
	t := p.t
	if p.force {
		if err := t.View.Unlink(to); err != nil && err != linux.ENOENT {
			p.complain(1, "%s: %s", to, reason(err))
			return
		}
	}
	out, err := command.Create(t, to, linux.O_EXCL)
	if err != nil {
		p.complain(1, "%s: %s", to, reason(err))
		return
	}
	whole := false
	defer func() {
		_ = out.Close()
		if !whole {
			_ = t.View.Unlink(to) // the complaint was about why
		}
	}()
	w := bufio.NewWriterSize(out, 32<<10)
	if !p.through(r, w, s, name) {
		return
	}
	if err := w.Flush(); err != nil {
		p.complain(1, "%s: %s", to, reason(err))
		return
	}
	whole = true
	_ = t.View.Chtimes(to, i.Atime, i.Mtime, true) // it is ours
	_ = t.View.Chmod(to, i.Mode&command.ModeBits)  // it is ours
	if t.View.UID == 0 {
		_ = t.View.Chown(to, i.UID, i.GID, true) // root may
	}
	if p.verbose > 0 {
		p.ratio(name, to, i)
	}
	if !p.keep {
		if err := t.View.Unlink(name); err != nil {
			p.complain(1, "%s: %s", name, reason(err))
		}
	}
}

func (p *press) tell(line string) {
	_ = p.t.Flush() // the end of the program tells of it
	_, _ = p.t.Write(2, []byte(line+"\n"))
}

func (p *press) ratio(name, to string, i vfs.Info) {
	o, err := p.t.View.Stat(to)
	if err != nil {
		return
	}
	small, big := o.Size, i.Size
	if p.unpack {
		small, big = big, small
	}
	saved := 0.0
	if big > 0 {
		saved = float64(big-small) * 100 / float64(big)
	}
	verb := "replaced with"
	if p.keep {
		verb = "created"
	}
	switch p.format {
	case gz:
		p.tell(fmt.Sprintf("%s:\t%5.1f%% -- %s %s", name, saved, verb, to))
	case bz:
		if p.unpack {
			p.tell("  " + name + ": done")
			return
		}
		if big == 0 {
			p.tell("  " + name + ":  no data compressed.")
			return
		}
		p.tell(fmt.Sprintf("  %s: %6.3f:1, %6.3f bits/byte, %5.2f%% saved, %d in, %d out.", name, float64(big)/float64(small), float64(small)*8/float64(big), saved, big, small))
	default:
		p.tell(fmt.Sprintf("%s: %d => %d", name, i.Size, o.Size))
	}
}

func (p *press) cannotOpen(name string, err error) {
	switch p.format {
	case bz:
		p.complain(1, "Can't open input file %s: %s.", name, reason(err))
	case zst:
		p.complain(1, "can't stat %s : %s -- ignored ", name, reason(err))
	default:
		p.complain(1, "%s: %s", name, reason(err))
	}
}

func (p *press) isDirectory(name string) {
	switch p.format {
	case gz:
		p.complain(2, "%s is a directory -- ignored", name)
	case bz:
		p.complain(1, "Input file %s is a directory.", name)
	case zst:
		p.complain(1, "%s is a directory -- ignored ", name)
	default:
		p.complain(2, "%s: Is a directory, skipping", name)
	}
}

func (p *press) link(name string) {
	switch p.format {
	case gz:
		p.complain(2, "%s is not a directory or a regular file - ignored", name)
	case bz:
		p.complain(1, "Input file %s is not a normal file.", name)
	default:
		p.complain(2, "%s: Is a symbolic link, skipping", name)
	}
}

// listAll shows what gzip files hold.
func (p *press) listAll(files []string) int {
	t := p.t
	w := t.Out()
	if p.verbose > 0 {
		_, _ = w.WriteString("method  crc     date  time  ")
	}
	if !p.quiet {
		_, _ = w.WriteString("         compressed        uncompressed  ratio uncompressed_name\n")
	}
	var in, out int64
	header := int64(18)
	for _, name := range files {
		n, size, crc, err := p.measure(name)
		if err == errNotGzip {
			p.unknown(name)
			continue
		}
		if err != nil {
			p.cannotOpen(name, err)
			continue
		}
		in, out = in+n, out+size
		to, _ := p.target(name)
		if name == "-" {
			to = "stdout"
		}
		if p.verbose > 0 {
			stamp := "            "
			if i, err := t.View.Stat(name); err == nil {
				stamp = i.Mtime.In(time.UTC).Format("Jan _2 15:04")
			}
			fmt.Fprintf(w, "defla %08x %s ", crc, stamp)
		}
		fmt.Fprintf(w, "%19d %19d %s %s\n", n, size, percent(n-header, size), to)
		header = 0 // only the first is taken off, as by gzip itself
	}
	if len(files) > 1 && !p.quiet {
		if p.verbose > 0 {
			_, _ = w.WriteString("                            ")
		}
		fmt.Fprintf(w, "%19d %19d %s (totals)\n", in, out, percent(in, out))
	}
	return p.status
}

func percent(in, out int64) string {
	if out == 0 {
		return "  0.0%"
	}
	return fmt.Sprintf("%5.1f%%", float64(out-in)*100/float64(out))
}

var errNotGzip = errors.New("not in gzip format")

// measure tells a file's length, and what stands at its end: the length of
// its contents and their check sum.
func (p *press) measure(name string) (n, size int64, crc uint32, err error) {
	b, err := command.ReadAll(p.t, name)
	if err != nil {
		return 0, 0, 0, err
	}
	if len(b) < 18 || sniff(b) != gz {
		return 0, 0, 0, errNotGzip
	}
	end := b[len(b)-8:]
	return int64(len(b)), int64(binary.LittleEndian.Uint32(end[4:])), binary.LittleEndian.Uint32(end), nil
}

// counted counts what is read.
type counted struct {
	r io.Reader
	n int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}
