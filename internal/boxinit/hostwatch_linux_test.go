package boxinit

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sys"
)

// A watching is a watcher, and its guest kernel, which is this test.
type watching struct {
	t       *testing.T
	cookies []uint32 // of the reports of renames
	w       *HostWatch
	channel *sys.Channel
	refused []string
	ended   chan struct{}
}

// watchOf watches mounts. The hidden names are paths on the host.
func watchOf(t *testing.T, trees map[string]string, hidden ...string) *watching {
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
	if err := w.leaveOut(hidden); err != nil {
		t.Fatal(err)
	}
	if g.channel, err = sys.NewChannelOf(w.Peer()); err != nil {
		t.Fatal(err)
	}
	g.ended = make(chan struct{})
	go func() { defer close(g.ended); w.serve() }()
	t.Cleanup(func() { g.channel.Close(); <-g.ended })
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
	if r.Cookie != 0 {
		g.cookies = append(g.cookies, r.Cookie)
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
	for i := range uint32(3) { // as one refusal, because a list of all would displace others
		g.ask(WatchRequest{Kind: WatchAdd, ID: HostWatchMax + 1 + i, Path: fmt.Sprintf("/work/%d", i)})
		g.want(fmt.Sprintf("2 %d 0x0 ", HostWatchMax+1+i))
	}
	if list := slices.Compact(slices.Clone(g.refused)); len(g.refused) != 3 || len(list) != 1 || !strings.HasPrefix(list[0], "watch /work: ") {
		t.Errorf("it is refused as %q", g.refused)
	}
}

func TestNothingIsToldOfANameThatAMaskCovers(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a/secret", "a/open", "b/secret"} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	g := watchOf(t, map[string]string{"/work": dir}, filepath.Join(dir, "a/secret"), filepath.Join(dir, "missing/secret"))
	if err := os.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "c")); err != nil { // the mask follows
		t.Fatal(err)
	}
	for i, name := range []string{"c", "b"} {
		g.ask(WatchRequest{Kind: WatchAdd, ID: uint32(i), Path: "/work/" + name})
		g.want(fmt.Sprintf("1 %d 0x0 ", i))
	}
	for _, name := range []string{"c/secret", "b/secret", "c/open"} {
		if err := os.Chmod(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	g.want("3 1 0x4 secret")
	g.want("3 0 0x4 open")
	g.ask(WatchRequest{Kind: WatchDrop, ID: 0})
	g.ask(WatchRequest{Kind: WatchAdd, ID: 0, Path: "/work/missing"})
	g.want("2 0 0x0 ")
	if len(g.w.hides) > 0 {
		t.Errorf("it keeps %v", g.w.hides)
	}
}

func TestWhatMountsCoverIsHiddenByName(t *testing.T) {
	binds := []Bind{{Target: "/work"}, {Target: "/work/deps"}, {Target: "/file", IsFile: true}}
	var mounts []Mount
	for kind, target := range map[MountKind]string{
		MountMask: "/work/secret", MountReplace: "/work/replace", MountFile: "/work/file", MountAppend: "/work/append", MountKeys: "/work/keys",
		MountCopy: "/work/copy", MountView: "/work/view", MountTmpfs: "/work/tmp", MountBind: "/work/deps",
		MountLock: "/work/lock", MountPin: "/work/.git", MountDir: "/work/dir",
	} {
		mounts = append(mounts, Mount{Kind: kind, Target: Root + target})
	}
	for _, target := range []string{"/work", "/file", "/etc/hosts", "/workshop/x"} {
		mounts = append(mounts, Mount{Kind: MountBind, Target: Root + target})
	}
	got := covered(binds, mounts)
	slices.Sort(got)
	want := []string{"append", "copy", "deps", "file", "keys", "replace", "secret", "tmp", "view"}
	for i := range want {
		want[i] = Root + "/work/" + want[i]
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
}

func TestANameThatCannotBeHiddenIsAnError(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "real"), 0o755), os.Symlink("real", filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	w := &HostWatch{hidden: map[fileID][]string{}}
	if err := w.leaveOut([]string{filepath.Join(dir, "link/secret")}); !errors.Is(err, syscall.ENOTDIR) {
		t.Error(err)
	}
}

func TestRenamesHaveNumbersOfTheBoxesOwn(t *testing.T) {
	dir := t.TempDir()
	g := watchOf(t, map[string]string{"/work": dir})
	g.ask(WatchRequest{Kind: WatchAdd, ID: 1, Path: "/work"})
	g.want("1 1 0x0 ")
	name := filepath.Join(dir, "x")
	if err := os.Mkdir(name, 0o755); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := errors.Join(os.Rename(name, name+"~"), os.Rename(name+"~", name)); err != nil {
			t.Fatal(err)
		}
	}
	for range 1 + 6*2 {
		g.report()
	}
	if want := []uint32{1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6}; !slices.Equal(g.cookies, want) {
		t.Errorf("%d, not %d", g.cookies, want)
	}
	for i := range uint32(10 * cookiesMax) {
		if g.w.own(1<<31+i) == 0 || len(g.w.cookies) > cookiesMax {
			t.Fatalf("it keeps %d", len(g.w.cookies))
		}
	}
}

func TestADirectoryOfDevicesIsNotWatched(t *testing.T) {
	const table = `25 30 0:23 / /proc rw,nosuid - proc proc rw
24 30 0:5 / /root/work rw,nosuid shared:2 - devtmpfs udev rw,size=8M
26 24 0:26 / /root/work/pts rw - devpts devpts rw
27 24 0:27 / /root/x rw - tmpfs devpts rw
junk - devpts x
`
	got := deviceNumbers(table)
	if want := map[uint64]bool{sys.DeviceNumber(0, 5): true, sys.DeviceNumber(0, 26): true}; !maps.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
	dir := t.TempDir()
	g := watchOf(t, map[string]string{"/work": dir})
	st, err := sys.StatAt(sys.AtCWD, dir)
	if err != nil {
		t.Fatal(err)
	}
	g.w.devices = map[uint64]bool{st.Dev: true}
	g.ask(WatchRequest{Kind: WatchAdd, ID: 1, Path: "/work"})
	g.want("2 1 0x0 ")
}

func TestAnEndedWatcherHoldsUpNoSaveAndSaysSo(t *testing.T) {
	g := watchOf(t, map[string]string{"/work": t.TempDir()})
	g.ask(WatchRequest{Kind: 9}) // what it should not send
	if _, _, err := g.channel.Receive(); err == nil {
		t.Error("it goes on")
	}
	if err := g.w.Quiet(); err != nil {
		t.Error(err)
	}
	g.channel.Close()
	<-g.ended
	if want := []string{"watch /work: " + watchesEnded}; !slices.Equal(g.refused, want) {
		t.Errorf("it is refused as %q", g.refused)
	}
}

func TestTheEndOfTheBoxIsNoRefusal(t *testing.T) {
	g := watchOf(t, map[string]string{"/work": t.TempDir()})
	g.channel.Close()
	<-g.ended
	if len(g.refused) > 0 {
		t.Errorf("it is refused as %q", g.refused)
	}
}

func TestARequestAfterTheEndLeavesNothingOpen(t *testing.T) {
	g := watchOf(t, map[string]string{"/work": t.TempDir()})
	g.w.end()
	if g.w.add(1, "/work") || g.w.notifier != nil {
		t.Error("it watches")
	}
}

// The end comes while the host's file system has not answered yet.
func TestTheEndWaitsForNoFileSystem(t *testing.T) {
	g := watchOf(t, map[string]string{"/work": t.TempDir()})
	n, err := sys.NewNotifier()
	if err != nil {
		t.Fatal(err)
	}
	if !g.w.begin(n) {
		t.Fatal("it has ended")
	}
	g.w.end()
	if g.w.added(1, 1, nil) || len(g.w.watches) > 0 {
		t.Error("it watches")
	}
	g.w.free()
	if err := n.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the notifier is left open: %v", err)
	}
}

func TestAWatchThatEndsWhileItIsAddedIsRefused(t *testing.T) {
	g := watchOf(t, map[string]string{"/work": t.TempDir()})
	n, err := sys.NewNotifier()
	if err != nil {
		t.Fatal(err)
	}
	if !g.w.begin(n) {
		t.Fatal("it has ended")
	}
	g.w.told(sys.Change{Watch: 7, Mask: sys.ChangeEnds})
	defer g.w.free()
	if g.w.added(1, 7, nil) || len(g.w.watches) > 0 {
		t.Error("it watches")
	}
}

// The path is too long for the host's kernel, which is no fault of a file that is gone.
func TestAnErrorOfTheHostIsSaid(t *testing.T) {
	g := watchOf(t, map[string]string{"/work": t.TempDir()})
	for path, want := range map[string]int{"/work/missing": 0, "/work/" + strings.Repeat("x", 300): 1} {
		g.refused = nil
		if g.w.add(1, path) || len(g.refused) != want {
			t.Errorf("it is refused as %q", g.refused)
		}
	}
}

func TestADeviceInAMountIsNotWatched(t *testing.T) {
	g := watchOf(t, map[string]string{"/dev": "/dev"})
	g.ask(WatchRequest{Kind: WatchAdd, ID: 1, Path: "/dev/null"})
	g.want("2 1 0x0 ")
}

// inodes returns what this process watches on the host.
func inodes(t *testing.T) (list []uint64) {
	t.Helper()
	const dir = "/proc/self/fdinfo"
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		data, _ := os.ReadFile(filepath.Join(dir, e.Name())) // one is that of the directory, and gone
		for line := range strings.Lines(string(data)) {
			if !strings.HasPrefix(line, "inotify ") {
				continue
			}
			_, rest, _ := strings.Cut(line, " ino:")
			number, _, _ := strings.Cut(rest, " ")
			n, err := strconv.ParseUint(number, 16, 64)
			if err != nil {
				t.Fatal(line)
			}
			list = append(list, n)
		}
	}
	return list
}

// numbers returns the inodes of files.
func numbers(t *testing.T, names ...string) (list []uint64) {
	t.Helper()
	for _, name := range names {
		st, err := sys.StatAt(sys.AtCWD, name)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, st.Ino)
	}
	return list
}

// The name is now that of a directory in the mount, now that of a link that leads out.
func TestADirectoryThatBecomesALinkWhileItIsAddedTellsNothingOfWhereTheLinkLeads(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	in := func(base string) string { return filepath.Join(dir, base) }
	err := errors.Join(os.MkdirAll(in("real/sub"), 0o755), os.Mkdir(filepath.Join(outside, "sub"), 0o755), os.Symlink(outside, in("link")))
	if err != nil {
		t.Fatal(err)
	}
	may := numbers(t, in("real"), in("real/sub"), in("link"))
	w, err := newHostWatch(nil, func(string, string, string) {})
	if err != nil {
		t.Fatal(err)
	}
	defer w.end() // nobody takes what it reports of the renames
	defer w.Peer().Close()
	if err := w.mount("/work", dir, false); err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		var err error
		for more := true; more && err == nil; {
			for _, now := range []string{"real", "link"} {
				err = errors.Join(err, os.Rename(in(now), in("swapped")), os.Rename(in("swapped"), in(now)))
			}
			select {
			case <-stop:
				more = false
			default:
			}
		}
		stopped <- err
	}()
	for id := range uint32(4000) {
		r := WatchRequest{Kind: WatchAdd, ID: id, Path: []string{"/work/swapped", "/work/swapped/sub"}[id%2]}
		if _, err := w.carryOut(r.Bytes()); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	for _, n := range inodes(t) {
		if !slices.Contains(may, n) {
			t.Errorf("the inode %d is watched, which is none of %d", n, may)
		}
	}
}

// FuzzHostWatch is a guest kernel that was taken over. Each line is a request.
func FuzzHostWatch(f *testing.F) {
	request := func(r WatchRequest) string { return string(r.Bytes()) }
	for _, seed := range [][]string{
		{request(WatchRequest{Kind: WatchAdd, ID: 1, Path: "/work/src"}), request(WatchRequest{Kind: WatchAdd, ID: 1, Path: "/work"}), request(WatchRequest{Kind: WatchDrop, ID: 1})},
		{request(WatchRequest{Kind: WatchAdd, ID: 1, Path: "/work/out/sub"}), request(WatchRequest{Kind: WatchAdd, ID: 2, Path: "/work/out"}), request(WatchRequest{Kind: WatchAdd, ID: 3, Path: "/work/src/up"})},
		{request(WatchRequest{Kind: WatchAdd, ID: 1, Path: "/work/src"}), request(WatchRequest{Kind: WatchAdd, ID: 2, Path: "/work/src"}), request(WatchRequest{Kind: WatchDrop, ID: 1}), request(WatchRequest{Kind: WatchDrop, ID: 1})},
		{request(WatchRequest{Kind: WatchQuiet, ID: 0}), request(WatchRequest{Kind: WatchQuiet, ID: 9}), request(WatchRequest{Kind: WatchAdd, ID: 5, Path: "/file/x"}), request(WatchRequest{Kind: WatchAdd, ID: 5, Path: "/file"})},
		{request(WatchRequest{Kind: WatchAdd, ID: 1, Path: "/work/\xff\x01"}), request(WatchRequest{Kind: WatchAdd, ID: 1, Path: "/work/src/../../outside"}), "\x01\x01\x00\x00\x00/wor"},
	} {
		f.Add(strings.Join(seed, "\n"))
	}
	f.Fuzz(func(t *testing.T, packets string) {
		base := t.TempDir()
		in := func(name string) string { return filepath.Join(base, name) }
		err := errors.Join(
			os.MkdirAll(in("work/src"), 0o755), os.MkdirAll(in("outside/sub"), 0o755), os.WriteFile(in("file"), nil, 0o644),
			os.Symlink("../outside", in("work/out")), os.Symlink("..", in("work/src/up")), os.WriteFile(in("work/src/\xff\x01"), nil, 0o644))
		if err != nil {
			t.Fatal(err)
		}
		may := numbers(t, in("work"), in("work/src"), in("work/out"), in("work/src/up"), in("work/src/\xff\x01"), in("file"))
		w, err := newHostWatch(nil, func(string, string, string) {})
		if err != nil {
			t.Fatal(err)
		}
		defer w.end()
		defer w.Peer().Close()
		if err := errors.Join(w.mount("/work", in("work"), false), w.mount("/file", in("file"), true)); err != nil {
			t.Fatal(err)
		}
		for packet := range strings.SplitSeq(packets, "\n") {
			if _, err := w.carryOut([]byte(packet)); err != nil {
				break
			}
		}
		for _, n := range inodes(t) {
			if !slices.Contains(may, n) {
				t.Errorf("the inode %d is watched, which is none of %d", n, may)
			}
		}
		all := 0
		for watch, ids := range w.ids {
			for _, id := range ids {
				if w.watches[id] != watch {
					t.Errorf("%d is of watch %d and %d", id, watch, w.watches[id])
				}
			}
			all += len(ids)
		}
		if all != len(w.watches) {
			t.Errorf("%v, and %v", w.watches, w.ids)
		}
	})
}

func TestAGuestKernelThatTakesNothingOrAnswersLateHoldsUpNoSave(t *testing.T) {
	g := watchOf(t, map[string]string{"/work": t.TempDir()})
	g.w.patience = time.Millisecond
	if err := g.w.Quiet(); err == nil {
		t.Fatal("it is said to be quiet")
	}
	g.want("5 1 0x0 ")
	g.want("6 0 0x0 ")

	// The answer to the first round is none to the second.
	g.w.patience = time.Minute
	quiet := make(chan error, 1)
	g.ask(WatchRequest{Kind: WatchQuiet, ID: 1})
	go func() { quiet <- g.w.Quiet() }()
	g.want("5 2 0x0 ")
	g.ask(WatchRequest{Kind: WatchQuiet, ID: 1})
	g.ask(WatchRequest{Kind: WatchAdd, ID: 7, Path: "/work"})
	g.want("1 7 0x0 ")
	select {
	case err := <-quiet:
		t.Fatal("it is said to be quiet, by its earlier answer", err)
	default:
	}
	g.ask(WatchRequest{Kind: WatchQuiet, ID: 2})
	if err := <-quiet; err != nil {
		t.Fatal(err)
	}
	g.w.Wake()
	g.want("6 0 0x0 ")

	full := make(chan struct{})
	go func() {
		defer close(full)
		for g.w.channel.Send(WatchReport{Kind: WatchLost}.Bytes()) == nil {
		}
	}()
	g.w.patience = time.Millisecond
	for g.w.Quiet() != nil { // as soon as there is no more room, nothing is told any more
	}
	<-full
}

func TestNothingIsToldWhileAGuestKernelIsSaved(t *testing.T) {
	dir := t.TempDir()
	g := watchOf(t, map[string]string{"/work": dir})
	g.ask(WatchRequest{Kind: WatchAdd, ID: 1, Path: "/work"})
	g.want("1 1 0x0 ")
	quiet := make(chan error)
	go func() { quiet <- g.w.Quiet() }()
	g.want("5 1 0x0 ")
	g.ask(WatchRequest{Kind: WatchQuiet, ID: 1})
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
