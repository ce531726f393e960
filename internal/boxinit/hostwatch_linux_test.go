package boxinit

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sys"
)

// A watching is a watcher, and its guest kernel, which is this test.
type watching struct {
	t       *testing.T
	w       *HostWatch
	channel *sys.Channel
	refused []string
}

func watchOf(t *testing.T, trees map[string]string) *watching {
	t.Helper()
	g := &watching{t: t}
	w, err := newHostWatch(nil, func(op, target, rule string) { g.refused = append(g.refused, op+" "+target+": "+rule) })
	if err != nil {
		t.Fatal(err)
	}
	g.w = w
	for target, dir := range trees {
		st, err := os.Stat(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.mount(target, dir, !st.IsDir()); err != nil {
			t.Fatal(err)
		}
	}
	if g.channel, err = sys.NewChannelOf(w.Peer()); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); w.serve() }()
	t.Cleanup(func() { g.channel.Close(); <-ended })
	return g
}

// report returns the next report, as text.
func (g *watching) report() string {
	g.t.Helper()
	data, _, err := g.channel.Receive()
	if err != nil {
		g.t.Fatal(err)
	}
	r, err := ParseWatchReport(data)
	if err != nil {
		g.t.Fatal(err)
	}
	return fmt.Sprintf("%d %d %#x %s", r.Kind, r.ID, r.Mask, r.Name)
}

func (g *watching) ask(r WatchRequest) {
	g.t.Helper()
	if err := g.channel.Send(r.Bytes()); err != nil {
		g.t.Fatal(err)
	}
}

func (g *watching) want(want string) {
	g.t.Helper()
	if got := g.report(); got != want {
		g.t.Errorf("it reports %q, not %q", got, want)
	}
}

func TestAGuestKernelIsToldWhatChangesInMountsAlone(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	for _, name := range []string{"src/deep", "late"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	single := filepath.Join(outside, "file")
	if err := os.WriteFile(single, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	g := watchOf(t, map[string]string{"/work": dir, "/file": single})

	for _, path := range []string{"/etc", "/workshop", "/work/link/x", "/work/missing", "/file/x"} {
		g.ask(WatchRequest{Kind: WatchAdd, ID: 1, Path: path})
		g.want("2 1 0x0 ")
	}
	g.ask(WatchRequest{Kind: WatchAdd, ID: 1, Path: "/work/src"})
	g.want("1 1 0x0 ")
	g.ask(WatchRequest{Kind: WatchAdd, ID: 1, Path: "/work/late"}) // the number is taken
	g.want("2 1 0x0 ")
	g.ask(WatchRequest{Kind: WatchAdd, ID: 2, Path: "/file"})
	g.want("1 2 0x0 ")

	// A link is watched itself, and nothing that it leads to.
	g.ask(WatchRequest{Kind: WatchAdd, ID: 9, Path: "/work/link"})
	g.want("1 9 0x0 ")
	if err := os.Mkdir(filepath.Join(outside, "new"), 0o755); err != nil {
		t.Fatal(err)
	}

	if err := os.WriteFile(filepath.Join(dir, "src/new"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"3 1 0x100 new", "3 1 0x2 new", "3 1 0x8 new"} {
		g.want(want)
	}
	if err := os.Chmod(single, 0o600); err != nil {
		t.Fatal(err)
	}
	g.want("3 2 0x4 ")

	// Of what is not watched nothing is told, nor of what no longer is.
	if err := os.WriteFile(filepath.Join(dir, "src/deep/x"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	g.ask(WatchRequest{Kind: WatchDrop, ID: 1})
	g.ask(WatchRequest{Kind: WatchAdd, ID: 3, Path: "/work/late"})
	g.want("1 3 0x0 ")
	if err := os.Remove(filepath.Join(dir, "src/new")); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "late")); err != nil {
		t.Fatal(err)
	}
	g.want("3 3 0x400 ")
	g.want("3 3 0x8000 ")
	if len(g.w.watches) != 2 || len(g.w.ids) != 2 { // of the file and the link
		t.Errorf("it keeps %v and %v", g.w.watches, g.w.ids)
	}
}

func TestOneDirectoryAtTwoPathsIsToldForBoth(t *testing.T) {
	dir := t.TempDir()
	g := watchOf(t, map[string]string{"/a": dir, "/b": dir})
	g.ask(WatchRequest{Kind: WatchAdd, ID: 1, Path: "/a"})
	g.want("1 1 0x0 ")
	g.ask(WatchRequest{Kind: WatchAdd, ID: 2, Path: "/b"})
	g.want("1 2 0x0 ")
	mkdir := func(name string) {
		t.Helper()
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	mkdir("x")
	g.want("3 1 0x40000100 x")
	g.want("3 2 0x40000100 x")
	g.ask(WatchRequest{Kind: WatchDrop, ID: 1})
	g.ask(WatchRequest{Kind: WatchAdd, ID: 1, Path: "/missing"})
	g.want("2 1 0x0 ")
	mkdir("y")
	g.want("3 2 0x40000100 y")
}

func TestAGuestKernelHasABoundOfWatchesAndIsTold(t *testing.T) {
	dir := t.TempDir()
	g := watchOf(t, map[string]string{"/work": dir})
	for id := range uint32(HostWatchMax) {
		g.ask(WatchRequest{Kind: WatchAdd, ID: id + 1, Path: "/work"}) // one directory of the host's
		g.want(fmt.Sprintf("1 %d 0x0 ", id+1))
	}
	g.ask(WatchRequest{Kind: WatchAdd, ID: HostWatchMax + 1, Path: "/work"})
	g.want(fmt.Sprintf("2 %d 0x0 ", HostWatchMax+1))
	if len(g.refused) != 1 || !strings.HasPrefix(g.refused[0], "watch /work: ") {
		t.Errorf("it is refused as %q", g.refused)
	}
}

func TestNothingIsToldWhileAGuestKernelIsSaved(t *testing.T) {
	dir := t.TempDir()
	g := watchOf(t, map[string]string{"/work": dir})
	g.ask(WatchRequest{Kind: WatchAdd, ID: 1, Path: "/work"})
	g.want("1 1 0x0 ")
	quiet := make(chan error)
	go func() { quiet <- g.w.Quiet() }()
	g.want("5 0 0x0 ")
	g.ask(WatchRequest{Kind: WatchQuiet})
	if err := <-quiet; err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	g.ask(WatchRequest{Kind: WatchAdd, ID: 2, Path: "/work"}) // an answer is no change
	g.want("1 2 0x0 ")
	g.w.Wake()
	g.want("6 0 0x0 ")
	g.want("3 1 0x40000100 x")
}
