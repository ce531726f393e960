package parent

import (
	"bytes"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/description"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/parent/protocol"
	"github.com/paddock-sandbox/paddock/internal/program"
	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/snapshot"
)

func TestASnapshotGoesBetweenProcesses(t *testing.T) {
	dir := t.TempDir()
	first, err := New(Options{Snapshots: dir})
	if err != nil {
		t.Fatal(err)
	}
	sb, err := first.Create(t.Context(), paddock.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	say(t, sb, `mkdir -p work; echo one > work/a; ln work/a work/b; ln -s a work/c; chmod 600 work/a; truncate -s 3M work/hole; rm -f .profile
head -c 5000000 /dev/zero | tr '\0' x > work/large; printf 'x\0\xff' > work/$'odd\nname'; touch -d @12345 work/a`)
	id, err := sb.Snapshot(t.Context(), paddock.SnapshotOptions{Name: "kept"})
	if err != nil {
		t.Fatal(err)
	}
	if got := say(t, sb, "echo still here"); got != "still here\n" {
		t.Errorf("after a snapshot: %q", got)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	const look = `cd work; cat b c; stat -c '%a %h %Y' a; wc -c < hole; cat -v $'odd\nname'; echo; md5sum < large; ls -A ~ | grep -c profile || :; echo more >> a; cat b`
	want := fmt.Sprintf("one\none\n600 2 12345\n3145728\nx^@M-^?\n%x  -\n0\none\nmore\n", md5.Sum(bytes.Repeat([]byte("x"), 5_000_000)))
	in, err := sim.New(sim.Options{Snapshots: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	second, err := New(Options{Snapshots: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	for what, d := range map[string]paddock.Driver{"a child": second, "this process": in} {
		for range 2 {
			again, err := d.Create(t.Context(), paddock.Spec{Root: paddock.Root{Kind: paddock.RootSnapshot, Snapshot: id}})
			if err != nil {
				t.Fatal(err)
			}
			if got := say(t, again, look); got != want {
				t.Errorf("in %s: %q, want %q", what, got, want)
			}
		}
	}
}

// A script chooses how deep its directories are.
func TestATreeNearTheBoundOfDepthIsSavedAndBegunWith(t *testing.T) {
	for path, levels := range map[int64]int{0: 65, 8192: 130} { // of 251 bytes: four times the limit
		d := starter(t, Options{Limits: budget.Limits{Path: path}})
		sb, err := d.Create(t.Context(), paddock.Spec{})
		if err != nil {
			t.Fatal(err)
		}
		const in = `n=$(printf '%%0250d' 0); for i in {1..%d}; do %s cd -P $n || exit 9; done; `
		say(t, sb, fmt.Sprintf(in, levels, "mkdir $n;")+`echo text > f; mkdir $n && exit 8; cd; echo other > g`)
		id, err := sb.Snapshot(t.Context(), paddock.SnapshotOptions{})
		if err != nil {
			t.Fatal(err)
		}
		again, err := d.Create(t.Context(), paddock.Spec{Root: paddock.Root{Kind: paddock.RootSnapshot, Snapshot: id}})
		if err != nil {
			t.Fatal(err)
		}
		for _, sb := range []paddock.Sandbox{sb, again} {
			if got := say(t, sb, "cat g; "+fmt.Sprintf(in, levels, "")+"cat f"); got != "other\ntext\n" {
				t.Errorf("%q", got)
			}
		}
		if path == 0 {
			continue
		}
		usual := starter(t, Options{Snapshots: d.snapshots})
		if _, err := usual.Create(t.Context(), paddock.Spec{Root: paddock.Root{Kind: paddock.RootSnapshot, Snapshot: id}}); !errors.Is(err, paddock.Exhausted) || !strings.Contains(err.Error(), "raise it") {
			t.Errorf("with shorter paths: %v", err)
		}
	}
}

// What lies below a mount is no sandbox's to bound. Changed attributes put all of a file into a snapshot.
func TestAnHonestChildSendsNoMoreThanTheHostReads(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/f", bytes.Repeat([]byte("x"), 70<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	d := starter(t, Options{Limits: budget.Limits{Disk: 1 << 20}})
	sb, err := d.Create(t.Context(), paddock.Spec{Mounts: []paddock.Mount{{Source: dir, Target: "/mnt/d", Overlay: true}}, User: "root"})
	if err != nil {
		t.Fatal(err)
	}
	say(t, sb, "chmod 600 /mnt/d/f")
	if _, err := sb.Snapshot(t.Context(), paddock.SnapshotOptions{}); !errors.Is(err, paddock.Exhausted) || !strings.Contains(err.Error(), "disk limit") {
		t.Errorf("70 MiB of a mount: %v", err)
	}
	say(t, sb, "chmod 644 /mnt/d/f")
}

func TestAStreamEndsWhereItsReaderHasNoRoom(t *testing.T) {
	text := func(yield func(snapshot.Extent, error) bool) {
		_ = yield(snapshot.Extent{Bytes: []byte("abc")}, nil) && yield(snapshot.Extent{Offset: 3, Bytes: []byte("d")}, nil)
	}
	files := func(yield func(snapshot.Entry, error) bool) {
		for _, name := range []string{"a", "a/b", "a/b/c"} {
			if !yield(snapshot.Entry{Path: name, Kind: snapshot.File, Size: 4, Data: text}, nil) {
				return
			}
		}
	}
	for what, change := range map[string]func(*protocol.Room){
		"nothing": func(*protocol.Room) {},
		"bytes":   func(r *protocol.Room) { r.Bytes = 5 * 4096 },
		"entries": func(r *protocol.Room) { r.Entries = 50 },
		"pieces":  func(r *protocol.Room) { r.Pieces = 5 },
		"paths":   func(r *protocol.Room) { r.Path = 4 },
	} {
		room := protocol.RoomOf(1<<20, 100, 0)
		change(&room)
		var b bytes.Buffer
		if err := protocol.SendFiles(&b, files, room); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		x := protocol.Bounded(&b, room)
		var last error
		n := 0
		for _, err := range x.Entries() {
			if last = err; err == nil {
				n++
			}
		}
		if what == "nothing" && (last != nil || n != 3) || what != "nothing" && (!errors.Is(last, paddock.Exhausted) || n == 0) {
			t.Errorf("%s: %d entries, then %v", what, n, last)
		}
		if err := x.Drain(); err != nil {
			t.Errorf("%s: its end: %v", what, err)
		}
	}
}

func say(t *testing.T, sb paddock.Sandbox, script string) string {
	t.Helper()
	var out bytes.Buffer
	p, err := sb.Start(t.Context(), paddock.Cmd{Args: []string{"bash", "-c", script}, Output: paddock.Output{Stdout: &out, Stderr: &out}})
	if err != nil {
		t.Fatal(err)
	}
	if exit, err := p.Wait(t.Context()); err != nil || exit.Code != 0 {
		t.Fatalf("%s: %+v, %v, %s", script, exit, err, &out)
	}
	return out.String()
}

// pieces gives messages, as the other side would send them.
func pieces(t testing.TB, list ...protocol.Piece) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, p := range list {
		b.Write(message(t, p))
	}
	return b.Bytes()
}

func FuzzStream(f *testing.F) {
	dir, file := &protocol.Entry{Path: "a", Kind: byte(snapshot.Dir), Mode: 0o755}, &protocol.Entry{Path: "a/b", Kind: byte(snapshot.File), Size: 3}
	f.Add(pieces(f, protocol.Piece{Entry: dir}, protocol.Piece{Entry: file}, protocol.Piece{Bytes: "abc"}, protocol.Piece{End: true}))
	f.Add(pieces(f, protocol.Piece{Entry: file}, protocol.Piece{Offset: 1, Bytes: "bc"}, protocol.Piece{End: true, Error: "x", Kind: paddock.Denied}))
	f.Add(pieces(f, protocol.Piece{Bytes: "abc"}))
	f.Add(pieces(f, protocol.Piece{}))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	store, err := snapshot.Open(f.TempDir(), snapshot.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = store.Close() })
	f.Fuzz(func(t *testing.T, b []byte) {
		x := protocol.Bounded(bytes.NewReader(b), protocol.RoomOf(1<<20, 100, 0))
		m := description.NewMeta("", "")
		err := store.Write(t.Context(), m, x.Entries())
		rest := x.Drain()
		if err == nil && rest != nil {
			t.Errorf("it was kept, and then: %v", rest)
		}
		if err == nil && !x.Ended {
			t.Error("it was kept without an end")
		}
		if _, again := x.Look(); again == nil {
			t.Error("something comes after the end")
		}
	})
}

func TestAStreamThatIsWrongIsNotKept(t *testing.T) {
	file := &protocol.Entry{Path: "f", Kind: byte(snapshot.File), Size: 3}
	for what, row := range map[string]struct {
		list []protocol.Piece
		kind paddock.Kind // of the error; 0 is any
	}{
		"bytes first":           {[]protocol.Piece{{Bytes: "abc"}, {End: true}}, 0},
		"nothing":               {[]protocol.Piece{{}, {End: true}}, 0},
		"both":                  {[]protocol.Piece{{Entry: file, Bytes: "abc"}, {End: true}}, 0},
		"no end":                {[]protocol.Piece{{Entry: file}}, 0},
		"a path that leads out": {[]protocol.Piece{{Entry: &protocol.Entry{Path: "../f", Kind: byte(snapshot.File)}}, {End: true}}, paddock.Invalid},
		"bytes behind its end":  {[]protocol.Piece{{Entry: file}, {Offset: 2, Bytes: "abc"}, {End: true}}, paddock.Invalid},
		"an error of its own":   {[]protocol.Piece{{Entry: file}, {End: true, Error: "no", Kind: paddock.Exhausted}}, paddock.Exhausted},
	} {
		store, err := snapshot.Open(t.TempDir(), snapshot.Options{})
		if err != nil {
			t.Fatal(err)
		}
		m := description.NewMeta("", "")
		err = store.Write(t.Context(), m, protocol.Bounded(bytes.NewReader(pieces(t, row.list...)), protocol.RoomOf(1<<20, 100, 0)).Entries())
		if err == nil || row.kind != 0 && !errors.Is(err, row.kind) {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := store.Read(m.ID); !errors.Is(err, paddock.NotFound) {
			t.Errorf("%s: there is one: %v", what, err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
	var b bytes.Buffer
	broken := func(yield func(snapshot.Entry, error) bool) {
		yield(snapshot.Entry{}, fmt.Errorf("refused: %w", paddock.Denied)) // NotFound is not for a child to say
	}
	if err := protocol.SendFiles(&b, broken, protocol.Unbounded()); err != nil {
		t.Error(err)
	}
	x := protocol.Bounded(&b, protocol.RoomOf(1<<20, 100, 0))
	for _, err := range x.Entries() {
		if !errors.Is(err, paddock.Denied) {
			t.Error(err)
		}
	}
	if err := x.Drain(); err != nil && !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

func TestAStreamWithoutEndIsGivenUp(t *testing.T) {
	store, err := snapshot.Open(t.TempDir(), snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	one := pieces(t, protocol.Piece{Bytes: "x"})
	file := pieces(t, protocol.Piece{Entry: &protocol.Entry{Path: "f", Kind: byte(snapshot.File), Size: 1 << 40}})
	stream := func(change func(*protocol.Room)) *protocol.Stream {
		x := protocol.Bounded(io.MultiReader(bytes.NewReader(file), bytes.NewReader(bytes.Repeat(one, 10))), protocol.RoomOf(0, 0, 0))
		change(&x.Left)
		return x
	}
	for what, x := range map[string]*protocol.Stream{
		"bytes":                    stream(func(r *protocol.Room) { r.Bytes = 5 }),
		"a file for each":          stream(func(r *protocol.Room) { r.Bytes = 5 * 4096 }),
		"pieces":                   stream(func(r *protocol.Room) { r.Pieces = 5 }),
		"names":                    stream(func(r *protocol.Room) { r.Entries = 5 }),
		"a path":                   stream(func(r *protocol.Room) { r.Path = 0 }),
		"a path that goes on":      protocol.Bounded(bytes.NewReader(pieces(t, protocol.Piece{Entry: &protocol.Entry{Same: 1, Path: "f", Kind: byte(snapshot.Dir)}})), protocol.RoomOf(0, 0, 0)),
		"a path less than nothing": protocol.Bounded(bytes.NewReader(pieces(t, protocol.Piece{Entry: &protocol.Entry{Same: -1, Path: "f", Kind: byte(snapshot.Dir)}})), protocol.RoomOf(0, 0, 0)),
	} {
		if err := store.Write(t.Context(), description.NewMeta("", ""), x.Entries()); err == nil {
			t.Errorf("%s: it was kept", what)
		}
		if err := x.Drain(); !errors.Is(err, protocol.ErrNonsense) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// repeated reads what a function gives, again and again.
type repeated struct {
	next func() []byte
	rest []byte
	read int64
}

func (e *repeated) Read(p []byte) (int, error) {
	if len(e.rest) == 0 {
		e.rest = e.next()
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	e.read += int64(n)
	return n, nil
}

// What is not content once had no bound at all.
func TestNamesWithoutEndAreGivenUp(t *testing.T) {
	text := strings.Repeat("x", 60_000)
	for what, entry := range map[string]func(i int) *protocol.Entry{
		"texts of links": func(i int) *protocol.Entry {
			return &protocol.Entry{Path: fmt.Sprintf("%09d", i), Kind: byte(snapshot.Link), Target: text}
		},
		"long paths": func(i int) *protocol.Entry {
			long := strings.Repeat(strings.Repeat("d", 249)+"/", 60)
			return &protocol.Entry{Path: fmt.Sprintf("%09d/%s", i, long[:len(long)-1]), Kind: byte(snapshot.Dir)}
		},
	} {
		dir := t.TempDir()
		store, err := snapshot.Open(dir, snapshot.Options{List: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		i := 0
		in := &repeated{next: func() []byte {
			i++
			return pieces(t, protocol.Piece{Entry: entry(i)})
		}}
		x := protocol.Bounded(in, protocol.RoomOf(1<<20, 100, 0))
		if err := store.Write(t.Context(), description.NewMeta("", ""), x.Entries()); !errors.Is(err, paddock.Exhausted) {
			t.Errorf("%s: %v", what, err)
		}
		if err := x.Drain(); !errors.Is(err, protocol.ErrNonsense) {
			t.Errorf("%s: %v", what, err)
		}
		if in.read > 128<<20 {
			t.Errorf("%s: %d bytes were read", what, in.read)
		}
		if size := sizeOf(t, dir); size > 1<<20 {
			t.Errorf("%s: %d bytes are left on the disk", what, size)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
}

// sizeOf tells the bytes of all files in a directory.
func sizeOf(t *testing.T, dir string) (n int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		i, err := d.Info()
		if err == nil {
			n += i.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// starter makes a driver with a directory for snapshots.
func starter(t *testing.T, o Options) *Driver {
	t.Helper()
	d, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func TestNamesOfAFarFileTakeLittle(t *testing.T) {
	dir := t.TempDir()
	d := starter(t, Options{Snapshots: dir})
	sb, err := d.Create(t.Context(), paddock.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	// The file gets its names first, and then its far place.
	say(t, sb, `mkdir -p a/b /tmp/z; echo text > a/b/f; for i in {1..1000}; do ln a/b/f /tmp/z/$i; done
p=a; for i in {1..15}; do n=$(printf '%0250d' $i); mkdir $n; mv $p $n/; p=$n; done`)
	id, err := sb.Snapshot(t.Context(), paddock.SnapshotOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if size := sizeOf(t, dir); size > 200_000 {
		t.Errorf("1,000 names of one file take %d bytes", size)
	}
	again, err := d.Create(t.Context(), paddock.Spec{Root: paddock.Root{Kind: paddock.RootSnapshot, Snapshot: id}})
	if err != nil {
		t.Fatal(err)
	}
	if got := say(t, again, `stat -c %h /tmp/z/1; cat /tmp/z/1000; find 0* -name f | wc -c`); got != "1001\ntext\n3771\n" {
		t.Errorf("%q", got)
	}
}

func TestASnapshotThatDoesNotFitStartsNothing(t *testing.T) {
	dir := t.TempDir()
	first := starter(t, Options{Snapshots: dir})
	sb, err := first.Create(t.Context(), paddock.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	say(t, sb, `head -c 3000000 /dev/zero | tr '\0' x > f`)
	id, err := sb.Snapshot(t.Context(), paddock.SnapshotOptions{})
	if err != nil {
		t.Fatal(err)
	}
	root := paddock.Root{Kind: paddock.RootSnapshot, Snapshot: id}
	// This one can start nothing.
	second := starter(t, Options{Snapshots: dir, Program: program.Embedded("nothing", []byte{})})
	_, err = second.Create(t.Context(), paddock.Spec{Root: root, Limits: paddock.Limits{Disk: 1 << 20}})
	if !errors.Is(err, paddock.Exhausted) || !strings.Contains(err.Error(), "raise it") {
		t.Errorf("into a disk of 1 MiB: %v", err)
	}
	if err := first.fits(snapshot.Size{Bytes: 10, Files: 1_000_000}, paddock.Limits{}); !errors.Is(err, paddock.Exhausted) {
		t.Errorf("a million files: %v", err)
	}
	// Its own sandbox has room for more than the default.
	if err := first.fits(snapshot.Size{Bytes: 3 << 30, Files: 10}, paddock.Limits{Disk: 4 << 30}); err != nil {
		t.Error(err)
	}
	if _, err := first.Create(t.Context(), paddock.Spec{Root: root, Limits: paddock.Limits{Disk: 5 << 20}}); err != nil {
		t.Error(err)
	}
}

func TestACreateThatIsGivenUpSendsNoMore(t *testing.T) {
	d := starter(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	sent := 0
	files := func(yield func(snapshot.Entry, error) bool) {
		for yield(snapshot.Entry{Path: fmt.Sprintf("f%09d", sent), Kind: snapshot.Pipe}, nil) {
			if sent++; sent == 3 {
				cancel()
			}
			if sent > 100_000 {
				t.Error("it goes on")
				return
			}
		}
	}
	spec := paddock.Spec{ID: "sim-given-up", Root: paddock.Root{Kind: paddock.RootSnapshot, Snapshot: "snap-endless"}}
	if _, err := d.start(ctx, beginning{spec, files, nil}); !errors.Is(err, paddock.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	if sent > 3 {
		t.Errorf("%d files were sent after the end of the context", sent-3)
	}
}

func TestAStreamToAChildEnds(t *testing.T) {
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	p := protocol.Patient{Ctx: t.Context(), Conn: here, Time: time.Hour, Last: time.Now().Add(-time.Second)}
	if _, err := p.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after its last moment: %v", err)
	}
}
