package drivertest

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func filePromises() []group {
	return []group{{promises: []promise{
		{"files of any size and content come back as they were written", roundTrips},
		{"commands and the caller see the same files", sameFiles},
		{"a range of a file is read", ranges},
		{"writing makes, cuts, appends, and refuses what is there, as asked", createOptions},
		{"a new file has the asked permissions, and belongs to the user", newFileMode},
		{"reading what cannot be read says why", unreadable},
		{"writing what cannot be written says why", unwritable},
		{"Stat describes files, directories and links themselves", describes},
		{"List goes as deep as it is asked, and not through links", lists},
		{"a directory of 5000 files is listed whole, and listing can stop early", listsMany},
		{"directories are made, with parents if asked", makesDirs},
		{"a rename moves, and replaces a file", renames},
		{"a removal removes what is asked and nothing else", removes},
		{"permissions are changed, and set-id bits are denied", chmods},
		{"a FIFO, a socket or a device holds nobody up", fifos},
		{"a program that was just written runs at once, also while others start", runsAtOnce},
		{"reading and writing go on after the call that opened the file", outlivesOpen},
		{"a reader or writer that is closed early leaves nothing running", closedEarly},
		{"a reader that stalls holds up nobody else", stalledReader},
	}}, {alone: true, promises: []promise{
		{"1 GB goes in and comes back in constant memory", gigabyte},
	}}, {walls: []paddock.Control{paddock.ControlIdentity}, promises: []promise{
		{"the caller has the rights of the sandbox's user, not more", userRights},
	}}}
}

func roundTrips(t *testing.T, s *suite) {
	b := s.box(t)
	for _, size := range []int64{0, 1, 511, 64<<10 - 1, 64 << 10, 256<<10 + 1, 10 << 20} {
		want, err := io.ReadAll(io.LimitReader(noise(byte(size)), size))
		if err != nil {
			t.Fatal(err)
		}
		b.put(t, b.in("file"), want, 0)
		if got := b.get(t, b.in("file")); !bytes.Equal(got, want) {
			t.Errorf("%d bytes came back as %d others", size, len(got))
		}
	}
}

func sameFiles(t *testing.T, s *suite) {
	b := s.box(t)
	b.put(t, b.in("outside"), []byte("from outside"), 0)
	if got := b.must(t, "cat outside; printf 'from inside' > inside"); got != "from outside" {
		t.Errorf("%q", got)
	}
	if got := b.get(t, b.in("inside")); string(got) != "from inside" {
		t.Errorf("%q", got)
	}
}

func ranges(t *testing.T, s *suite) {
	b := s.box(t)
	b.put(t, b.in("file"), []byte("0123456789"), 0)
	for o, want := range map[paddock.OpenOptions]string{
		{}:                      "0123456789",
		{Offset: 3}:             "3456789",
		{Offset: 3, Length: 4}:  "3456",
		{Length: 1}:             "0",
		{Offset: 8, Length: 99}: "89",
		{Offset: 10}:            "",
		{Offset: 1 << 40}:       "",
	} {
		if got, err := b.read(bounded(t), b.in("file"), o); err != nil || string(got) != want {
			t.Errorf("%+v: %q, %v, want %q", o, got, err, want)
		}
	}
	for _, o := range []paddock.OpenOptions{{Offset: -1}, {Length: -1}} {
		_, err := b.read(bounded(t), b.in("file"), o)
		wantKind(t, fmt.Sprintf("%+v", o), err, paddock.Invalid)
	}
}

func createOptions(t *testing.T, s *suite) {
	b := s.box(t)
	write := func(name, text string, o paddock.CreateOptions) error {
		return b.write(bounded(t), b.in(name), strings.NewReader(text), o)
	}
	want := func(name, text string) {
		t.Helper()
		if got := string(b.get(t, b.in(name))); got != text {
			t.Errorf("%s is %q, want %q", name, got, text)
		}
	}
	for _, step := range []struct {
		name, text string
		o          paddock.CreateOptions
		want       string
	}{
		{"file", "a long text", paddock.CreateOptions{}, "a long text"},
		{"file", "short", paddock.CreateOptions{}, "short"},
		{"file", " and more", paddock.CreateOptions{Append: true}, "short and more"},
		{"appended", "new", paddock.CreateOptions{Append: true}, "new"},
		{"exclusive", "first", paddock.CreateOptions{Exclusive: true}, "first"},
		{"a/b/c", "deep", paddock.CreateOptions{Parents: true}, "deep"},
		{"a/b/c", "again", paddock.CreateOptions{Parents: true}, "again"},
	} {
		if err := write(step.name, step.text, step.o); err != nil {
			t.Errorf("%s %+v: %v", step.name, step.o, err)
			continue
		}
		want(step.name, step.want)
	}
	wantKind(t, "exclusive, and it is there", write("exclusive", "second", paddock.CreateOptions{Exclusive: true}), paddock.Exists)
	want("exclusive", "first")
	wantKind(t, "without a parent", write("no/such/dir", "", paddock.CreateOptions{}), paddock.NotFound)
	if fi := b.stat(t, b.in("a")); fi.Mode.Perm() != 0o755 {
		t.Errorf("a made parent has the mode %v", fi.Mode)
	}
}

func (b box) stat(t testing.TB, name string) paddock.FileInfo {
	t.Helper()
	fi, err := b.FS().Stat(bounded(t), name)
	if err != nil {
		t.Fatalf("stat %q: %v", name, err)
	}
	return fi
}

func newFileMode(t *testing.T, s *suite) {
	b := s.box(t)
	id := strings.Fields(b.must(t, "id -u; id -g; id -un"))
	for mode, want := range map[fs.FileMode]fs.FileMode{0: 0o644, 0o600: 0o600, 0o777: 0o777, 0o640: 0o640} {
		name := b.in(fmt.Sprintf("%o", mode))
		b.put(t, name, nil, mode)
		fi := b.stat(t, name)
		if fi.Mode != want {
			t.Errorf("asked %v, got %v", want, fi.Mode)
		}
		if fmt.Sprint(fi.UID) != id[0] || fmt.Sprint(fi.GID) != id[1] || fi.User != id[2] {
			t.Errorf("it belongs to %d:%d (%s), id says %q", fi.UID, fi.GID, fi.User, id)
		}
	}
	name := b.in("600")
	if err := b.FS().Chmod(bounded(t), name, 0o700); err != nil {
		t.Fatal(err)
	}
	b.put(t, name, []byte("x"), 0o644)
	if fi := b.stat(t, name); fi.Mode != 0o700 {
		t.Errorf("writing over a file changed its mode to %v", fi.Mode)
	}
	err := b.write(bounded(t), b.in("setid"), strings.NewReader(""), paddock.CreateOptions{Mode: 0o755 | fs.ModeSetuid})
	wantKind(t, "create with a set-id bit", err, paddock.Denied, paddock.Invalid)
}

func unreadable(t *testing.T, s *suite) {
	b := s.box(t)
	b.put(t, b.in("file"), nil, 0)
	b.must(t, "ln -s loop loop")
	for name, kinds := range map[string][]paddock.Kind{
		b.in("missing"):      {paddock.NotFound},
		b.in("file/below"):   {paddock.NotFound, paddock.Invalid},
		b.dir:                {paddock.Invalid},
		b.in("loop"):         {paddock.Invalid, paddock.NotFound},
		b.in("missing/file"): {paddock.NotFound},
	} {
		_, err := b.read(bounded(t), name, paddock.OpenOptions{})
		wantKind(t, "open "+name, err, kinds...)
	}
	for name, kind := range map[string]paddock.Kind{b.in("missing"): paddock.NotFound, b.in("file"): paddock.Invalid} {
		_, err := b.list(bounded(t), name, 1)
		wantKind(t, "list "+name, err, kind)
	}
}

func unwritable(t *testing.T, s *suite) {
	b := s.box(t)
	b.put(t, b.in("file"), nil, 0)
	for name, kinds := range map[string][]paddock.Kind{
		b.in("missing/file"): {paddock.NotFound},
		b.dir:                {paddock.Invalid},
		b.in("file/below"):   {paddock.NotFound, paddock.Invalid},
	} {
		err := b.write(bounded(t), name, strings.NewReader("x"), paddock.CreateOptions{})
		wantKind(t, "create "+name, err, kinds...)
	}
}

func describes(t *testing.T, s *suite) {
	b := s.box(t)
	b.put(t, b.in("file"), []byte("12345"), 0o640)
	b.must(t, "mkdir dir; ln -s 'no such target' link; mkfifo fifo; touch -d '2020-02-02T02:02:02Z' file")
	for name, want := range map[string]fs.FileMode{"file": 0o640, "dir": fs.ModeDir, "link": fs.ModeSymlink, "fifo": fs.ModeNamedPipe} {
		fi := b.stat(t, b.in(name))
		if fi.Mode.Type() != want.Type() || fi.Name != b.in(name) {
			t.Errorf("%s: %+v", name, fi)
		}
	}
	if fi := b.stat(t, b.in("file")); fi.Size != 5 || fi.Mode.Perm() != 0o640 || fi.ModTime.Unix() != 1580608922 {
		t.Errorf("%+v", fi)
	}
	if fi := b.stat(t, b.in("link")); fi.Link != "no such target" {
		t.Errorf("%+v", fi)
	}
	_, err := b.FS().Stat(bounded(t), b.in("missing"))
	wantKind(t, "stat", err, paddock.NotFound)
}

// list returns what List yields, keyed by path below the box's directory.
func (b box) list(ctx context.Context, name string, depth int) (map[string]paddock.FileInfo, error) {
	found := make(map[string]paddock.FileInfo)
	for fi, err := range b.FS().List(ctx, name, depth) {
		if err != nil {
			return found, err
		}
		if _, twice := found[fi.Name]; twice {
			return found, fmt.Errorf("%s is listed twice", fi.Name)
		}
		found[fi.Name] = fi
	}
	return found, nil
}

func lists(t *testing.T, s *suite) {
	b := s.box(t)
	b.must(t, "mkdir -p a/b/c; touch f a/f a/b/f a/b/c/f .hidden; ln -s a link; mkdir empty")
	one := []string{".hidden", "a", "empty", "f", "link"}
	two := append(slices.Clone(one), "a/b", "a/f")
	all := append(slices.Clone(two), "a/b/c", "a/b/f", "a/b/c/f")
	for depth, want := range map[int][]string{1: one, 2: two, 100: all} {
		found, err := b.list(bounded(t), b.dir, depth)
		if err != nil {
			t.Errorf("depth %d: %v", depth, err)
		}
		for _, name := range want {
			if _, ok := found[b.in(name)]; !ok {
				t.Errorf("depth %d: %s is missing", depth, name)
			}
			delete(found, b.in(name))
		}
		if len(found) > 0 {
			t.Errorf("depth %d: also %v", depth, found)
		}
	}
	if found, err := b.list(bounded(t), b.in("empty"), 1); err != nil || len(found) != 0 {
		t.Errorf("an empty directory: %v, %v", found, err)
	}
}

func listsMany(t *testing.T, s *suite) {
	b := s.box(t)
	b.must(t, "mkdir many; cd many; seq 1 5000 | xargs touch")
	found, err := b.list(bounded(t), b.in("many"), 1)
	if err != nil || len(found) != 5000 {
		t.Errorf("%d, %v", len(found), err)
	}
	for range 10 {
		for _, err := range b.FS().List(bounded(t), b.in("many"), 1) {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
	}
}

func makesDirs(t *testing.T, s *suite) {
	b := s.box(t)
	mkdir := func(name string, o paddock.MkdirOptions) error { return b.FS().Mkdir(bounded(t), b.in(name), o) }
	if err := mkdir("dir", paddock.MkdirOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := mkdir("private", paddock.MkdirOptions{Mode: 0o700}); err != nil {
		t.Fatal(err)
	}
	if err := mkdir("a/b/c", paddock.MkdirOptions{Parents: true}); err != nil {
		t.Fatal(err)
	}
	if err := mkdir("a/b/c", paddock.MkdirOptions{Parents: true}); err != nil {
		t.Errorf("with parents, and it is there: %v", err)
	}
	for name, want := range map[string]fs.FileMode{"dir": 0o755, "private": 0o700, "a/b": 0o755} {
		if fi := b.stat(t, b.in(name)); fi.Mode != want|fs.ModeDir {
			t.Errorf("%s: %v", name, fi.Mode)
		}
	}
	b.put(t, b.in("file"), nil, 0)
	wantKind(t, "it is there", mkdir("dir", paddock.MkdirOptions{}), paddock.Exists)
	wantKind(t, "a file is there", mkdir("file", paddock.MkdirOptions{}), paddock.Exists)
	wantKind(t, "no parent", mkdir("x/y", paddock.MkdirOptions{}), paddock.NotFound)
	wantKind(t, "below a file", mkdir("file/x", paddock.MkdirOptions{Parents: true}), paddock.Invalid, paddock.NotFound, paddock.Exists)
}

func renames(t *testing.T, s *suite) {
	b := s.box(t)
	b.must(t, "echo 1 > one; echo 2 > two; mkdir full dir; touch full/f dir/g")
	rename := func(from, to string) error { return b.FS().Rename(bounded(t), b.in(from), b.in(to)) }
	if err := rename("one", "two"); err != nil {
		t.Fatal(err)
	}
	if got := string(b.get(t, b.in("two"))); got != "1\n" || b.exists(t, b.in("one")) {
		t.Errorf("two is %q", got)
	}
	wantKind(t, "a directory over a full one", rename("dir", "full"), paddock.Conflict)
	wantKind(t, "from nothing", rename("missing", "x"), paddock.NotFound)
	wantKind(t, "to nowhere", rename("two", "no/such/dir"), paddock.NotFound)
	wantKind(t, "a file over a directory", rename("two", "dir"), paddock.Invalid, paddock.Exists)
	if err := rename("dir", "moved"); err != nil || !b.exists(t, b.in("moved/g")) {
		t.Errorf("a directory: %v", err)
	}
}

func removes(t *testing.T, s *suite) {
	b := s.box(t)
	b.must(t, "mkdir -p full/a/b keep empty; touch full/f full/a/b/f keep/f file; ln -s ../keep full/link; ln -s keep link")
	remove := func(name string, all bool) error { return b.FS().Remove(bounded(t), b.in(name), all) }
	for _, name := range []string{"file", "empty", "link"} {
		if err := remove(name, false); err != nil || b.exists(t, b.in(name)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	wantKind(t, "a full directory", remove("full", false), paddock.Conflict)
	wantKind(t, "what is not there", remove("missing", false), paddock.NotFound)
	if err := remove("full", true); err != nil || b.exists(t, b.in("full")) {
		t.Errorf("all of a full directory: %v", err)
	}
	if !b.exists(t, b.in("keep/f")) {
		t.Error("a removal followed a link")
	}
	if err := remove("full", true); err != nil {
		t.Errorf("all of what is not there: %v", err)
	}
}

func chmods(t *testing.T, s *suite) {
	b := s.box(t)
	b.put(t, b.in("file"), nil, 0o644)
	for _, mode := range []fs.FileMode{0o600, 0o755, 0o400, 0} {
		if err := b.FS().Chmod(bounded(t), b.in("file"), mode); err != nil {
			t.Errorf("%v: %v", mode, err)
		}
		if fi := b.stat(t, b.in("file")); fi.Mode != mode {
			t.Errorf("%v, want %v", fi.Mode, mode)
		}
	}
	for _, mode := range []fs.FileMode{fs.ModeSetuid | 0o755, fs.ModeSetgid | 0o755} {
		wantKind(t, mode.String(), b.FS().Chmod(bounded(t), b.in("file"), mode), paddock.Denied)
	}
	if fi := b.stat(t, b.in("file")); fi.Mode != 0 {
		t.Errorf("a denied change left %v", fi.Mode)
	}
	wantKind(t, "what is not there", b.FS().Chmod(bounded(t), b.in("missing"), 0o644), paddock.NotFound)
}

func fifos(t *testing.T, s *suite) {
	b := s.box(t)
	b.must(t, "mkfifo fifo")
	_, err := b.read(bounded(t), b.in("fifo"), paddock.OpenOptions{})
	wantKind(t, "open", err, paddock.Invalid)
	err = b.write(bounded(t), b.in("fifo"), strings.NewReader("x"), paddock.CreateOptions{})
	wantKind(t, "create", err, paddock.Invalid)
	if _, err := b.list(bounded(t), b.dir, 1); err != nil {
		t.Errorf("list: %v", err)
	}
	if err := b.FS().Remove(bounded(t), b.in("fifo"), false); err != nil {
		t.Errorf("remove: %v", err)
	}
}

// runsAtOnce executes a file at a moment when a command that is being started still holds
// the file open for writing.
func runsAtOnce(t *testing.T, s *suite) {
	b := s.box(t)
	ctx := bounded(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			name := b.in(fmt.Sprint("program-", i))
			for round := range 10 {
				text := fmt.Sprintf("#!%s\necho %d\n", s.h.Shell, round)
				if err := b.write(ctx, name, strings.NewReader(text), paddock.CreateOptions{Mode: 0o755}); err != nil {
					t.Errorf("write: %v", err)
				}
				if r, err := b.try(ctx, paddock.Cmd{Args: []string{name}}); err != nil || r.out != fmt.Sprintln(round) {
					t.Errorf("%+v, %v", r, err)
				}
			}
		})
	}
	wg.Wait()
}

func outlivesOpen(t *testing.T, s *suite) {
	b := s.box(t)
	data := bytes.Repeat([]byte(patternLine), 1<<18) // 4 MB
	ctx, cancel := context.WithCancel(t.Context())
	w, err := b.FS().Create(ctx, b.in("file"), paddock.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if n, err := w.Write(data); err != nil || n != len(data) {
		t.Errorf("write: %d, %v", n, err)
	}
	if err := w.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	r, err := b.FS().Open(ctx, b.in("file"), paddock.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	got, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("read %d bytes of %d: %v", len(got), len(data), err)
	}
	if err := r.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func closedEarly(t *testing.T, s *suite) {
	b := s.box(t)
	b.must(t, patternScript(16<<20)+" > big")
	for range 20 {
		r, err := b.FS().Open(bounded(t), b.in("big"), paddock.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(r, make([]byte, 10)); err != nil {
			t.Errorf("read: %v", err)
		}
		if err := r.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if _, err := r.Read(make([]byte, 10)); err == nil {
			t.Error("a closed reader still reads")
		}
	}
	b.must(t, "echo alive")
}

func stalledReader(t *testing.T, s *suite) {
	b := s.box(t)
	b.must(t, patternScript(16<<20)+" > big")
	for range 10 {
		r, err := b.FS().Open(bounded(t), b.in("big"), paddock.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if _, err := io.ReadFull(r, make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
	}
	for range 10 {
		b.must(t, "echo alive")
		b.put(t, b.in("small"), []byte("small"), 0)
		if got := b.get(t, b.in("small")); string(got) != "small" {
			t.Errorf("%q", got)
		}
	}
}

// blocks generates or checks size bytes in which no block repeats.
type blocks struct {
	block []byte
	n     int64
	bad   bool
}

const blockSize = 1 << 20

func newBlocks() *blocks {
	b := &blocks{block: make([]byte, blockSize)}
	if _, err := io.ReadFull(noise(9), b.block); err != nil {
		panic(err) // ChaCha8 never fails
	}
	return b
}

// part returns the next bytes, at most up to the end of a block.
func (b *blocks) part() []byte {
	binary.LittleEndian.PutUint64(b.block, uint64(b.n/blockSize)*0x9e3779b97f4a7c15)
	return b.block[b.n%blockSize:]
}

func (b *blocks) Read(p []byte) (int, error) {
	n := copy(p, b.part())
	b.n += int64(n)
	return n, nil
}

func (b *blocks) Write(p []byte) (int, error) {
	total := len(p)
	for len(p) > 0 {
		want := b.part()
		want = want[:min(len(want), len(p))]
		b.bad = b.bad || !bytes.Equal(want, p[:len(want)])
		b.n += int64(len(want))
		p = p[len(want):]
	}
	return total, nil
}

func gigabyte(t *testing.T, s *suite) {
	if testing.Short() {
		t.Skip("moves 2 GB")
	}
	const size = 1 << 30
	b := s.own(t, func(spec *paddock.Spec) {
		if s.enforces(paddock.ControlDisk) {
			spec.Limits.Disk = 2 * size
		}
		if s.enforces(paddock.ControlMemory) {
			spec.Limits.Memory = 3 * size // the private layer may be in memory
		}
	})
	limit := int64(64 << 20)
	if s.h.Memory {
		limit += size + size/4 // and what is collected later
	}
	grown := growth(t, limit)
	if err := b.write(bounded(t), b.in("big"), io.LimitReader(newBlocks(), size), paddock.CreateOptions{}); err != nil {
		t.Fatalf("write: %v", err)
	}
	r, err := b.FS().Open(bounded(t), b.in("big"), paddock.OpenOptions{})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	defer r.Close()
	got := newBlocks()
	if _, err := io.Copy(got, r); err != nil {
		t.Errorf("read: %v", err)
	}
	if got.n != size || got.bad {
		t.Errorf("%d bytes came back, wrong: %v", got.n, got.bad)
	}
	grown()
}

func userRights(t *testing.T, s *suite) {
	b := s.box(t)
	for _, name := range []string{"/etc/paddock-drivertest", "/usr/paddock-drivertest", "/paddock-drivertest", "/proc/sys/kernel/core_pattern"} {
		err := b.write(bounded(t), name, strings.NewReader("x"), paddock.CreateOptions{})
		wantKind(t, "write "+name, err, paddock.Denied, paddock.NotFound)
	}
	for _, name := range []string{"/etc/shadow", "/etc/sudoers", "/proc/1/environ", "/proc/1/mem"} {
		if _, err := b.read(bounded(t), name, paddock.OpenOptions{}); err == nil {
			// A readable file is fine if it is the sandbox's own and commands can read it
			// too.
			if r := b.sh(t, `cat "$1"`, name); r.exit.Code != 0 {
				t.Errorf("the caller reads %s, which commands cannot", name)
			}
		}
	}
}
