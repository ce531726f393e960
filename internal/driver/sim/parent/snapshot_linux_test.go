package parent

import (
	"bytes"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/description"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/parent/protocol"
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
		x := protocol.Bounded(bytes.NewReader(b), 1<<20, 100)
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
		err = store.Write(t.Context(), m, protocol.Bounded(bytes.NewReader(pieces(t, row.list...)), 1<<20, 100).Entries())
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
		yield(snapshot.Entry{}, fmt.Errorf("gone: %w", paddock.NotFound))
	}
	if err := protocol.SendFiles(&b, broken); err != nil {
		t.Error(err)
	}
	x := protocol.Bounded(&b, 1<<20, 100)
	for _, err := range x.Entries() {
		if !errors.Is(err, paddock.NotFound) {
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
	large := protocol.Bounded(io.MultiReader(bytes.NewReader(file), bytes.NewReader(bytes.Repeat(one, 10))), 0, 0)
	large.Bytes = 5
	many := protocol.Bounded(bytes.NewReader(bytes.Repeat(one, 10)), 0, 0)
	many.Pieces = 5
	for what, x := range map[string]*protocol.Stream{"bytes": large, "pieces": many} {
		if err := store.Write(t.Context(), description.NewMeta("", ""), x.Entries()); err == nil {
			t.Errorf("%s: it was kept", what)
		}
		if err := x.Drain(); !errors.Is(err, protocol.ErrNonsense) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
