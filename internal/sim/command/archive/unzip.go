package archive

import (
	"archive/zip"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/pattern"
	"github.com/paddock-sandbox/paddock/internal/sim/strftime"
)

var unzipSpec = &command.Spec{
	Name: "unzip", Synopsis: "[-opts[modifiers]] file[.zip] [list] [-x xlist] [-d exdir]", Exit: 10, NoTry: true, About: "List, test and extract compressed files in a ZIP archive.",
	Options: []command.Option{
		{Short: 'p', Help: "extract files to pipe, no messages"}, {Short: 'c', Help: "extract files to stdout with their names"}, {Short: 'l', Help: "list files (short format)"}, {Short: 'f', Help: "freshen existing files, create none"}, {Short: 't', Help: "test compressed archive data"}, {Short: 'u', Help: "update files, create if necessary"},
		{Short: 'z', Help: "display archive comment only"}, {Short: 'v', Help: "list verbosely"}, {Short: 'Z', Help: "list names as zipinfo -1 does"}, {Short: '1', Help: "with -Z: one name per line"}, {Short: 'n', Help: "never overwrite existing files"}, {Short: 'o', Help: "overwrite files WITHOUT prompting"}, {Short: 'q', Help: "quiet mode"}, {Short: 'a', Help: "(ignored)"}, {Short: 'b', Help: "(ignored)"},
		{Short: 'j', Help: "junk paths (do not make directories)"}, {Short: 'C', Help: "match filenames case-insensitively"}, {Short: 'L', Help: "make (some) names lowercase"}, {Short: 'X', Help: "(ignored)"}, {Short: 'K', Help: "(ignored)"}, {Short: 'D', Help: "(ignored)"}, {Short: 'V', Help: "(ignored)"}, {Short: 'M', Help: "(ignored)"}, {Short: 'U', Help: "(ignored)"}, {Short: 'W', Help: "(ignored)"}, {Short: ':', Help: "(refused)"},
		{Short: 'd', Arg: command.Required, Name: "exdir", Help: "extract files into exdir"}, {Short: 'P', Arg: command.Required, Help: "(refused)"}, {Short: 'O', Arg: command.Required, Help: "(ignored)"}, {Short: 'I', Arg: command.Required, Help: "(ignored)"},
	},
}

// An unzipper is a run of unzip.
type unzipper struct {
	t       *kernel.Task
	a       *command.Args
	g       guardian
	file    string
	r       *zip.Reader
	list    []*pattern.Pattern
	exclude []*pattern.Pattern
	used    []bool // of list
	dir     string
	quiet   int
	all     bool // overwrite without asking
	nothing bool // overwrite nothing
	zone    *time.Location
	status  int
}

func (u *unzipper) complain(text string) {
	_ = u.t.Flush() // the end of the program tells of it
	_, _ = u.t.Write(2, []byte(text))
}

func runUnzip(t *kernel.Task) int {
	u := &unzipper{t: t, g: guardian{t: t}, zone: strftime.Zone(t.Getenv("TZ"))}
	var args []string
	excluding := false
	for i := 1; i < len(t.Args); i++ {
		a := t.Args[i]
		switch {
		case a == "-x":
			excluding = true
		case strings.HasPrefix(a, "-"):
			excluding = false
			args = append(args, a)
			if strings.HasSuffix(a, "d") && i+1 < len(t.Args) {
				i++
				args = append(args, t.Args[i])
			}
		case excluding:
			u.exclude = append(u.exclude, compile(a))
		default:
			args = append(args, a)
		}
	}
	a, status, ok := unzipSpec.ParseArgs(t, args)
	if !ok {
		return status
	}
	u.a = a
	if len(a.Operands) == 0 {
		fmt.Fprintf(t.Out(), "Usage: unzip %s\n", unzipSpec.Synopsis)
		return 0
	}
	for _, f := range a.Flags {
		switch f.Key {
		case "q":
			u.quiet++
		case "o":
			u.all = true
		case "n":
			u.nothing = true
		case "d":
			u.dir = f.Value
		case "P":
			u.complain("unzip:  encryption is not supported\n")
			return 81
		}
	}
	for _, p := range a.Operands[1:] {
		u.list = append(u.list, pattern.Compile(p, pattern.Options{IgnoreCase: a.Has("C")}))
		u.used = append(u.used, false)
	}
	if status := u.open(a.Operands[0]); status != 0 {
		return status
	}
	switch {
	case a.Has("Z"):
		for _, f := range u.r.File {
			if u.wanted(f.Name) {
				_, _ = t.Out().WriteString(f.Name + "\n")
			}
		}
	case a.Has("z"):
		fmt.Fprintf(t.Out(), "Archive:  %s\n%s\n", u.file, u.r.Comment)
	case a.Has("l"):
		u.short()
	case a.Has("v"):
		u.long()
	case a.Has("t"):
		u.test()
	default:
		u.extract()
	}
	return u.unmatched()
}

func (u *unzipper) open(name string) int {
	t := u.t
	for _, n := range []string{name, name + ".zip", name + ".ZIP"} {
		i, err := t.View.Stat(n)
		if err != nil || !i.IsRegular() {
			continue
		}
		b, err := command.ReadAll(t, n)
		if err != nil {
			u.complain("error:  cannot open zipfile [ " + n + " ]\n        " + reason(err) + "\n")
			return 9
		}
		u.file = n
		err = guard(func() error {
			var err error
			u.r, err = listed(t, b)
			return err
		})
		if err != nil && u.r == nil {
			fmt.Fprintf(t.Out(), "Archive:  %s\n", n)
			u.complain("  End-of-central-directory signature not found.  Either this file is not\n  a zipfile, or it constitutes one disk of a multi-part archive.  In the\n  latter case the central directory and zipfile comment will be found on\n  the last disk(s) of this archive.\n" +
				"unzip:  cannot find zipfile directory in one of " + name + " or\n        " + name + ".zip, and cannot find " + name + ".ZIP, period.\n")
			return 9
		}
		return 0
	}
	u.complain("unzip:  cannot find or open " + name + ", " + name + ".zip or " + name + ".ZIP.\n")
	return 9
}

func (u *unzipper) wanted(name string) bool {
	u.t.Step(1)
	if matches(u.t, u.exclude, name) {
		return false
	}
	if u.list == nil {
		return true
	}
	for i, p := range u.list {
		if ok, err := p.Match(name, meter{u.t}); ok && err == nil {
			u.used[i] = true
			return true
		}
	}
	return false
}

func (u *unzipper) unmatched() int {
	for i, used := range u.used {
		if !used {
			u.complain("caution: filename not matched:  " + u.list[i].String() + "\n")
			u.status = max(u.status, 11)
		}
	}
	return u.status
}

func (u *unzipper) head() {
	if u.quiet == 0 {
		fmt.Fprintf(u.t.Out(), "Archive:  %s\n", u.file)
	}
}

func plural(n int) string {
	if n == 1 {
		return "1 file"
	}
	return fmt.Sprintf("%d files", n)
}

func (u *unzipper) short() {
	w := u.t.Out()
	u.head()
	if u.quiet < 2 {
		_, _ = w.WriteString("  Length      Date    Time    Name\n---------  ---------- -----   ----\n")
	}
	n, sum := 0, uint64(0)
	for _, f := range u.r.File {
		if !u.wanted(f.Name) {
			continue
		}
		n++
		sum += f.UncompressedSize64
		fmt.Fprintf(w, "%9d  %s   %s\n", f.UncompressedSize64, u.stamp(f), printable(f.Name))
	}
	if u.quiet < 2 {
		fmt.Fprintf(w, "---------                     -------\n%9d                     %s\n", sum, plural(n))
	}
}

// printable shows a member's name without control characters.
func printable(name string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, name)
}

func (u *unzipper) stamp(f *zip.File) string {
	return f.Modified.In(u.zone).Format("2006-01-02 15:04")
}

func saved(big, small uint64) string {
	if big == 0 {
		return "0%"
	}
	return fmt.Sprintf("%.0f%%", (float64(big)-float64(small))*100/float64(big))
}

func (u *unzipper) long() {
	w := u.t.Out()
	u.head()
	_, _ = w.WriteString(" Length   Method    Size  Cmpr    Date    Time   CRC-32   Name\n--------  ------  ------- ---- ---------- ----- --------  ----\n")
	n, sum, packed := 0, uint64(0), uint64(0)
	for _, f := range u.r.File {
		if !u.wanted(f.Name) {
			continue
		}
		n++
		sum, packed = sum+f.UncompressedSize64, packed+f.CompressedSize64
		method := map[uint16]string{0: "Stored", 8: "Defl:N"}[f.Method]
		if method == "" {
			method = fmt.Sprintf("Unk:%03d", f.Method)
		}
		fmt.Fprintf(w, "%8d  %-6s %8d %4s %s %08x  %s\n", f.UncompressedSize64, method, f.CompressedSize64, saved(f.UncompressedSize64, f.CompressedSize64), u.stamp(f), f.CRC32, printable(f.Name))
	}
	fmt.Fprintf(w, "--------          -------  ---                            -------\n%8d         %8d %4s                            %s\n", sum, packed, saved(sum, packed), plural(n))
}

func (u *unzipper) test() {
	w := u.t.Out()
	u.head()
	bad := 0
	for _, f := range u.r.File {
		if !u.wanted(f.Name) {
			continue
		}
		err := drain(u.t, f, io.Discard)
		result := "OK"
		if err != nil {
			bad++
			result = "bad CRC or data: " + err.Error()
		}
		if u.quiet == 0 {
			fmt.Fprintf(w, "    testing: %-22s   %s\n", printable(f.Name), result)
		}
	}
	if bad > 0 {
		fmt.Fprintf(w, "At least one error was detected in %s.\n", u.file)
		u.status = 2
		return
	}
	if u.quiet < 2 {
		fmt.Fprintf(w, "No errors detected in compressed data of %s.\n", u.file)
	}
}

func (u *unzipper) extract() {
	t := u.t
	pipe := u.a.Has("p") || u.a.Has("c")
	if !u.a.Has("p") {
		u.head()
	}
	if u.dir != "" && !pipe {
		if err := t.View.MkdirAll(u.dir, 0o777); err != nil {
			u.complain("checkdir:  cannot create extraction directory: " + u.dir + "\n           " + reason(err) + "\n")
			u.status = 2
			return
		}
		if err := t.View.Chdir(u.dir); err != nil {
			u.complain("checkdir:  cannot create extraction directory: " + u.dir + "\n           " + reason(err) + "\n")
			u.status = 2
			return
		}
	}
	type late struct {
		name string
		f    *zip.File
	}
	var dirs []late
	for _, f := range u.r.File {
		t.Traverse(1)
		if !u.wanted(f.Name) {
			continue
		}
		if pipe {
			if strings.HasSuffix(f.Name, "/") {
				continue
			}
			if u.a.Has("c") && u.quiet == 0 {
				fmt.Fprintf(t.Out(), "  inflating: %-22s  \n", printable(f.Name))
			}
			if err := drain(t, f, t.Out()); err != nil {
				u.complain("error: invalid compressed data for " + f.Name + "\n")
				u.status = max(u.status, 2)
			}
			continue
		}
		name, prefix := safeName(f.Name)
		if prefix != "" && strings.Contains(prefix, "..") {
			u.complain("warning:  skipped \"../\" path component(s) in " + printable(f.Name) + "\n")
			u.status = max(u.status, 1)
		} else if prefix != "" {
			u.complain("warning:  stripped absolute path spec from " + printable(f.Name) + "\n")
			u.status = max(u.status, 1)
		}
		name = strings.ReplaceAll(name, "\\", "/")
		name, _ = safeName(name)
		if u.a.Has("L") {
			name = strings.ToLower(name)
		}
		dir := strings.HasSuffix(name, "/")
		name = strings.TrimRight(name, "/")
		if u.a.Has("j") {
			if dir {
				continue
			}
			name = base(name)
		}
		if name == "" {
			continue
		}
		if u.g.through(name, dir) {
			u.complain("error:  " + printable(f.Name) + " lies behind a link of the archive that leads out of the directory\n")
			u.status = max(u.status, 2)
			continue
		}
		if dir {
			if u.directory(name) {
				dirs = append(dirs, late{name, f})
			}
			continue
		}
		u.member(f, name)
	}
	for i := len(dirs) - 1; i >= 0; i-- {
		d := dirs[i]
		if m := d.f.ExternalAttrs >> 16 & command.ModeBits; m != 0 {
			_ = t.View.Chmod(d.name, m&^t.View.Umask|0o700) // it is ours
		}
		_ = t.View.Chtimes(d.name, d.f.Modified, d.f.Modified, false) // it is ours
	}
}

func (u *unzipper) shown(name string) string {
	if u.dir != "" {
		return printable(strings.TrimRight(u.dir, "/") + "/" + name)
	}
	return printable(name)
}

func (u *unzipper) directory(name string) bool {
	t := u.t
	if i, err := t.View.Stat(name); err == nil && i.IsDir() {
		return false
	}
	if err := t.View.MkdirAll(name, 0o777); err != nil {
		u.complain("checkdir error:  cannot create " + u.shown(name) + "\n                 " + reason(err) + "\n                 unable to process " + name + "/.\n")
		u.status = max(u.status, 2)
		return false
	}
	if u.quiet == 0 {
		fmt.Fprintf(t.Out(), "   creating: %s/\n", u.shown(name))
	}
	return true
}

// overwritten decides about a file that is in the way. It may give another
// name.
func (u *unzipper) overwritten(name string, f *zip.File) (string, bool) {
	t := u.t
	for {
		i, err := t.View.Lstat(name)
		if err != nil {
			return name, !u.a.Has("f")
		}
		if (u.a.Has("f") || u.a.Has("u")) && !f.Modified.After(i.Mtime) {
			return name, false
		}
		switch {
		case i.IsDir():
			u.complain("error:  cannot create " + u.shown(name) + "\n        " + reason(linux.EISDIR) + "\n")
			u.status = max(u.status, 2)
			return name, false
		case u.nothing:
			return name, false
		case u.all:
			return name, true
		}
		u.complain("replace " + u.shown(name) + "? [y]es, [n]o, [A]ll, [N]one, [r]ename: ")
		line, err := t.In().ReadString('\n')
		if err != nil && line == "" {
			u.complain(" NULL\n(EOF or read error, treating as \"[N]one\" ...)\n")
			u.nothing = true
			u.status = max(u.status, 1)
			return name, false
		}
		switch strings.TrimSpace(line) {
		case "y":
			return name, true
		case "n":
			return name, false
		case "A":
			u.all = true
			return name, true
		case "N":
			u.nothing = true
			return name, false
		case "r":
			u.complain("new name: ")
			line, err := t.In().ReadString('\n')
			if err != nil && line == "" {
				return name, false
			}
			if fresh, _ := safeName(strings.TrimSpace(line)); fresh != "" && !u.g.through(fresh, false) {
				name = fresh
			}
		}
	}
}

func (u *unzipper) member(f *zip.File, name string) {
	t := u.t
	name, ok := u.overwritten(name, f)
	if !ok {
		return
	}
	bad := func(err error) {
		u.complain("error:  cannot create " + u.shown(name) + "\n        " + reason(err) + "\n")
		u.status = max(u.status, 50)
	}
	if err := u.g.parents(name); err != nil {
		bad(err)
		return
	}
	if err := u.g.clear(name); err != nil {
		bad(err)
		return
	}
	attrs := f.ExternalAttrs >> 16
	if attrs&linux.S_IFMT == linux.S_IFLNK && f.UncompressedSize64 < 4096 {
		b := held{t: t}
		defer b.free()
		if err := drain(t, f, &b); err != nil {
			bad(err)
			return
		}
		target := string(b.b)
		if err := t.View.Symlink(target, name); err != nil {
			bad(err)
			return
		}
		u.g.made(name, target)
		if u.quiet == 0 {
			fmt.Fprintf(t.Out(), "    linking: %-22s  -> %s \n", u.shown(name), printable(target))
		}
		return
	}
	verb := "  inflating"
	if f.Method == zip.Store {
		verb = " extracting"
	}
	if u.quiet == 0 {
		fmt.Fprintf(t.Out(), "%s: %-22s  \n", verb, u.shown(name))
	}
	h, err := t.View.Open(name, linux.O_WRONLY|linux.O_CREAT|linux.O_EXCL, 0o600)
	if err != nil {
		bad(err)
		return
	}
	err = drain(t, f, fileWriter{h})
	_ = h.Close() // every write was looked at
	if err != nil {
		u.complain("error:  " + u.shown(name) + ": " + reason(err) + "\n")
		u.status = max(u.status, 2)
	}
	u.attributes(f, name, attrs)
}

func (u *unzipper) attributes(f *zip.File, name string, attrs uint32) {
	v := &u.t.View
	bits := uint32(0o666)
	if attrs&0o777 != 0 {
		bits = attrs & 0o777
	}
	_ = v.Chmod(name, bits&^v.Umask)                   // it is ours
	_ = v.Chtimes(name, f.Modified, f.Modified, false) // it is ours
}
