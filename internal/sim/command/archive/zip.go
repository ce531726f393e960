package archive

import (
	"archive/zip"
	"compress/flate"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/pattern"
	"github.com/paddock-sandbox/paddock/internal/sim/strftime"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

var zipSpec = &command.Spec{
	Name: "zip", Synopsis: "[-options] [zipfile list]", Exit: 16, NoTry: true, About: "Package and compress files.",
	Options: []command.Option{
		{Short: 'r', Long: "recurse-paths", Help: "recurse into directories"}, {Short: 'R', Help: "recurse into the current directory"}, {Short: 'q', Long: "quiet", Help: "quiet operation"}, {Short: 'v', Long: "verbose", Help: "verbose operation"}, {Short: 'j', Long: "junk-paths", Help: "junk (don't record) directory names"},
		{Short: 'd', Long: "delete", Help: "delete entries in zipfile"}, {Short: 'u', Long: "update", Help: "only changed or new files"}, {Short: 'f', Long: "freshen", Help: "only changed files"}, {Short: 'm', Long: "move", Help: "move into zipfile (delete OS files)"}, {Short: 'T', Long: "test", Help: "test zipfile integrity"},
		{Short: 'y', Long: "symlinks", Help: "store symbolic links as the link instead of the referenced file"}, {Short: 'D', Long: "no-dir-entries", Help: "do not add directory entries"}, {Short: 'X', Long: "no-extra", Help: "eXclude eXtra file attributes"}, {Short: 'o', Long: "latest-time", Help: "(ignored)"}, {Short: 'l', Help: "(ignored)"}, {Short: 'g', Long: "grow", Help: "(ignored)"}, {Short: 'k', Help: "(ignored)"}, {Short: 'F', Long: "fix", Help: "(ignored)"},
		{Short: '@', Long: "names-stdin", Help: "read names from stdin"}, {Short: 'n', Long: "suffixes", Arg: command.Required, Help: "don't compress these suffixes"}, {Short: 'b', Arg: command.Required, Help: "(ignored)"}, {Short: 't', Arg: command.Required, Help: "(ignored)"}, {Short: 'P', Long: "password", Arg: command.Required, Help: "(refused)"}, {Short: 'e', Long: "encrypt", Help: "(refused)"},
		{Short: '0'}, {Short: '1'}, {Short: '2'}, {Short: '3'}, {Short: '4'}, {Short: '5'}, {Short: '6'}, {Short: '7'}, {Short: '8'}, {Short: '9'},
	},
}

// A zipper is a run of zip.
type zipper struct {
	t       *kernel.Task
	a       *command.Args
	level   int
	include []*pattern.Pattern
	exclude []*pattern.Pattern
	old     *zip.Reader
	files   []wanting
	at      map[string]int
	out     bool // the archive goes to standard output
	zone    *time.Location
}

// wanting is a file that is to be put in.
type wanting struct {
	name string // in the archive
	path string
	in   vfs.Ino
	info vfs.Info
}

// lists takes -x and -i with all that follows them out of the arguments.
func (z *zipper) lists(args []string) []string {
	var rest []string
	var into *[]*pattern.Pattern
	for _, a := range args {
		switch {
		case a == "-x" || a == "--exclude":
			into = &z.exclude
		case a == "-i" || a == "--include":
			into = &z.include
		case strings.HasPrefix(a, "-x") && len(a) > 2:
			z.exclude = append(z.exclude, compile(a[2:]))
			into = nil
		case strings.HasPrefix(a, "-i") && len(a) > 2 && !strings.HasPrefix(a, "--"):
			z.include = append(z.include, compile(a[2:]))
			into = nil
		case into != nil && a != "@" && !strings.HasPrefix(a, "-"):
			*into = append(*into, compile(a))
		case a == "@":
			into = nil
		default:
			into = nil
			rest = append(rest, a)
		}
	}
	return rest
}

func (z *zipper) fail(status int, format string, args ...any) int {
	z.tell("\nzip error: " + fmt.Sprintf(format, args...) + "\n")
	return status
}

func (z *zipper) warn(format string, args ...any) {
	z.tell("\tzip warning: " + fmt.Sprintf(format, args...) + "\n")
}

func (z *zipper) say(format string, args ...any) {
	if z.a.Has("q") {
		return
	}
	z.tell(fmt.Sprintf(format, args...) + "\n")
}

// tell writes to standard output, unless the archive goes there.
func (z *zipper) tell(text string) {
	if z.out {
		_, _ = z.t.Write(2, []byte(text))
		return
	}
	_, _ = z.t.Out().WriteString(text) // the end of the program tells of an error
}

func runZip(t *kernel.Task) int {
	z := &zipper{t: t, level: 6, at: map[string]int{}, zone: strftime.Zone(t.Getenv("TZ"))}
	a, status, ok := zipSpec.ParseArgs(t, z.lists(t.Args[1:]))
	if !ok {
		return status
	}
	z.a = a
	for _, f := range a.Flags {
		if len(f.Key) == 1 && f.Key[0] >= '0' && f.Key[0] <= '9' {
			z.level = int(f.Key[0] - '0')
		}
	}
	if a.Has("P") || a.Has("e") {
		return z.fail(16, "Invalid command arguments (encryption is not supported)")
	}
	if len(a.Operands) == 0 {
		fmt.Fprintf(t.Out(), "Usage: zip %s\n", zipSpec.Synopsis)
		return 0
	}
	file := a.Operands[0]
	z.out = file == "-"
	if !z.out && !strings.Contains(base(file), ".") {
		file += ".zip"
	}
	names := a.Operands[1:]
	if a.Has("@") {
		b, err := command.ReadAll(t, "-")
		if err != nil {
			return z.fail(11, "Read error (%s)", reason(err))
		}
		for line := range strings.SplitSeq(string(b), "\n") {
			if line != "" {
				names = append(names, line)
			}
		}
	}
	if !z.out {
		if b, err := command.ReadAll(t, file); err == nil {
			old, err := listed(t, b)
			if err != nil && len(b) > 0 {
				return z.fail(3, "Zip file structure invalid (%s)", file)
			}
			z.old = old
		}
	}
	switch {
	case a.Has("d"):
		return z.delete(file, names)
	case a.Has("T") && len(names) == 0:
		return z.test(file)
	}
	if a.Has("R") {
		for _, n := range names {
			z.include = append(z.include, compile(n), compile("*/"+n))
		}
		names = []string{"."}
	}
	for _, n := range names {
		if !z.find(n) {
			z.warn("name not matched: %s", n)
		}
	}
	if a.Has("f") && len(names) == 0 && z.old != nil {
		for _, f := range z.old.File {
			z.find(f.Name)
		}
	}
	if len(z.files) == 0 {
		if a.Has("u") || a.Has("f") {
			return 12
		}
		if len(names) > 0 && a.Has("r") {
			return z.fail(12, "Nothing to do! (try: zip -r %s . -i %s)", file, strings.Join(names, " "))
		}
		return z.fail(12, "Nothing to do! (%s)", file)
	}
	return z.write(file)
}

// find collects the files that a name stands for.
func (z *zipper) find(name string) bool {
	t := z.t
	if name == "-" {
		z.add(wanting{name: "-", path: "-", info: vfs.Info{Mode: linux.S_IFREG | 0o600, Mtime: time.Now()}})
		return true
	}
	o := command.WalkOptions{Bounded: !z.a.Has("r") && !z.a.Has("R"), Follow: command.FollowAll}
	if z.a.Has("y") {
		o.Follow = command.FollowNever
	}
	found := false
	command.Walk(t, name, o, func(e *command.WalkEntry) command.WalkOrder {
		switch e.What {
		case command.VisitLost:
			return command.WalkNext
		case command.VisitFailed:
			z.warn("could not open directory for reading: %s", e.Path)
			return command.WalkNext
		case command.VisitLoop:
			return command.WalkSkip
		case command.VisitBefore, command.VisitAfter:
		}
		found = true
		if e.Info.IsLink() && !z.a.Has("y") {
			z.warn("name not matched: %s", e.Path)
			return command.WalkNext
		}
		n := e.Path
		for strings.HasPrefix(n, "./") {
			n = strings.TrimLeft(n[2:], "/")
		}
		n = strings.TrimLeft(n, "/")
		if e.Info.IsDir() {
			if n = strings.TrimRight(n, "/"); n == "" || n == "." || z.a.Has("j") || z.a.Has("D") {
				return command.WalkNext
			}
			n += "/"
		} else if z.a.Has("j") {
			n = base(n)
		}
		if !e.Info.IsRegular() && !e.Info.IsDir() && !e.Info.IsLink() {
			return command.WalkNext
		}
		if z.match(z.exclude, n) || z.include != nil && !z.match(z.include, n) {
			return command.WalkNext
		}
		z.add(wanting{name: n, path: e.Name, in: e.In.Dir, info: e.Info})
		return command.WalkNext
	})
	return found
}

func (z *zipper) match(list []*pattern.Pattern, name string) bool {
	for _, p := range list {
		if ok, err := p.Match(name, meter{z.t}); ok && err == nil {
			return true
		}
	}
	return false
}

func (z *zipper) add(w wanting) {
	z.t.Grow(len(w.name) + 200)
	if i, ok := z.at[w.name]; ok {
		z.files[i] = w
		return
	}
	z.at[w.name] = len(z.files)
	z.files = append(z.files, w)
}

// write makes the archive anew: what stays of the old one, and the files.
func (z *zipper) write(file string) int {
	t := z.t
	b := held{t: t}
	defer b.free()
	w := zip.NewWriter(&b)
	kept := map[string]time.Time{}
	if z.old != nil {
		for _, f := range z.old.File {
			kept[f.Name] = f.Modified
			if i, ok := z.at[f.Name]; ok && !z.stale(z.files[i], f.Modified) {
				z.at[f.Name] = -1
			} else if ok {
				if err := z.put(w, z.files[i], true); err != nil {
					z.warn("could not open for reading: %s (%s)", f.Name, reason(err))
				}
				z.at[f.Name] = -1
				continue
			}
			if err := w.Copy(f); err != nil {
				return z.fail(3, "Zip file structure invalid (%s)", file)
			}
		}
	}
	for _, f := range z.files {
		if z.at[f.name] < 0 {
			continue
		}
		_, there := kept[f.name]
		if z.a.Has("f") && !there {
			continue
		}
		if err := z.put(w, f, there); err != nil {
			z.warn("could not open for reading: %s (%s)", f.name, reason(err))
			continue
		}
	}
	if z.old != nil && z.old.Comment != "" {
		_ = w.SetComment(z.old.Comment) // it was one
	}
	if err := w.Close(); err != nil {
		return z.fail(14, "Write error (%s)", err)
	}
	if z.out {
		_, _ = t.Out().Write(b.b)
		return 0
	}
	if err := t.View.WriteFile(file, b.b, 0o666); err != nil {
		return z.fail(15, "Could not create output file (%s)", file)
	}
	if z.a.Has("T") {
		z.say("test of %s OK", file)
	}
	if z.a.Has("m") {
		own := t.View.Dir
		for i := len(z.files) - 1; i >= 0; i-- {
			f := z.files[i]
			t.View.Dir = f.in
			if f.info.IsDir() {
				_ = t.View.Rmdir(f.path) // one that holds something stays
			} else {
				_ = t.View.Unlink(f.path) // one that cannot go stays
			}
		}
		t.View.Dir = own
	}
	return 0
}

// stale reports whether a file is to replace the archive's.
func (z *zipper) stale(f wanting, at time.Time) bool {
	if !z.a.Has("u") && !z.a.Has("f") {
		return true
	}
	return f.info.Mtime.Unix() > at.Unix()+1
}

func (z *zipper) put(w *zip.Writer, f wanting, there bool) error {
	t := z.t
	h := &zip.FileHeader{Name: f.name, Method: zip.Deflate}
	h.Modified = f.info.Mtime.In(z.zone).Truncate(time.Second)
	h.CreatorVersion = 3<<8 | 30
	h.ExternalAttrs = f.info.Mode << 16
	var data []byte
	switch {
	case f.info.IsDir():
		h.ExternalAttrs |= 0x10
	case f.info.IsLink():
		own := t.View.Dir
		t.View.Dir = f.in
		target, err := t.View.Readlink(f.path)
		t.View.Dir = own
		if err != nil {
			return err
		}
		data = []byte(target)
	default:
		own := t.View.Dir
		if f.path != "-" {
			t.View.Dir = f.in
		}
		var err error
		data, err = command.ReadAll(t, f.path)
		t.View.Dir = own
		defer func() { t.Shrink(cap(data)) }()
		if err != nil {
			return err
		}
	}
	packed := held{t: t}
	defer packed.free()
	if z.level > 0 && len(data) > 0 {
		d, err := flate.NewWriter(&packed, z.level)
		if err != nil {
			return err
		}
		t.Step(len(data)>>4 + 1)
		if _, err = d.Write(data); err == nil {
			err = d.Close()
		}
		if err != nil {
			return err
		}
	}
	verb, how := "  adding", "stored 0%"
	if there {
		verb = "updating"
	}
	body := data
	h.Method = zip.Store
	if len(packed.b) > 0 && len(packed.b) < len(data) {
		h.Method, body = zip.Deflate, packed.b
		how = fmt.Sprintf("deflated %.0f%%", float64(len(data)-len(packed.b))*100/float64(len(data)))
	}
	h.CRC32 = crc32.ChecksumIEEE(data)
	h.UncompressedSize64, h.CompressedSize64 = uint64(len(data)), uint64(len(body))
	out, err := w.CreateRaw(h)
	if err != nil {
		return err
	}
	if _, err := out.Write(body); err != nil {
		return err
	}
	z.say("%s: %s (%s)", verb, f.name, how)
	return nil
}

func (z *zipper) delete(file string, names []string) int {
	if z.old == nil {
		return z.fail(13, "No such file (%s)", file)
	}
	var list []*pattern.Pattern
	for _, n := range names {
		list = append(list, compile(n))
	}
	b := held{t: z.t}
	defer b.free()
	w := zip.NewWriter(&b)
	n := 0
	for _, f := range z.old.File {
		if z.match(list, f.Name) {
			z.say("deleting: %s", f.Name)
			n++
			continue
		}
		if err := w.Copy(f); err != nil {
			return z.fail(3, "Zip file structure invalid (%s)", file)
		}
	}
	if n == 0 {
		for _, name := range names {
			z.warn("name not matched: %s", name)
		}
		return z.fail(12, "Nothing to do! (%s)", file)
	}
	if err := w.Close(); err != nil {
		return z.fail(14, "Write error (%s)", err)
	}
	if n == len(z.old.File) {
		z.warn("zip file empty")
		if err := z.t.View.Unlink(file); err != nil {
			return z.fail(15, "Could not remove %s", file)
		}
		return 0
	}
	if err := z.t.View.WriteFile(file, b.b, 0o666); err != nil {
		return z.fail(15, "Could not create output file (%s)", file)
	}
	return 0
}

func (z *zipper) test(file string) int {
	if z.old == nil {
		return z.fail(13, "No such file (%s)", file)
	}
	for _, f := range z.old.File {
		if err := drain(z.t, f, io.Discard); err != nil {
			return z.fail(8, "Zip file invalid, could not spawn unzip, or wrong unzip (original files unmodified)")
		}
	}
	z.say("test of %s OK", file)
	return 0
}

// drain reads a member, counted and guarded.
func drain(t *kernel.Task, f *zip.File, w io.Writer) error {
	var r io.ReadCloser
	err := guard(func() error {
		var err error
		r, err = f.Open()
		return err
	})
	if err != nil {
		return err
	}
	u := &unpacker{t: t, r: r}
	err = copyAll(w, u, make([]byte, 32<<10))
	return errors.Join(err, r.Close())
}

// match helps unzip, too.
func matches(t *kernel.Task, list []*pattern.Pattern, name string) bool {
	return slices.ContainsFunc(list, func(p *pattern.Pattern) bool {
		ok, err := p.Match(name, meter{t})
		return ok && err == nil
	})
}
