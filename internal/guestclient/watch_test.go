//go:build linux

package guestclient_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

func watch(t *testing.T, fsys paddock.FS, name string, recursive bool) paddock.Watcher {
	t.Helper()
	w, err := fsys.Watch(t.Context(), name, paddock.WatchOptions{Recursive: recursive})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

// sees reads events until each of want has come, in this order. Others in
// between are let pass, but for those of forbid.
func sees(t *testing.T, w paddock.Watcher, want []string, forbid ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	var seen []string
	for len(want) > 0 {
		e, err := w.Next(ctx)
		if err != nil {
			t.Fatalf("%v; still to come %q after %q", err, want, seen)
		}
		got := string(e.Op) + " " + e.Name
		seen = append(seen, got)
		for _, f := range forbid {
			if got == f {
				t.Errorf("%q was told, after %q", got, seen)
			}
		}
		if got == want[0] {
			want = want[1:]
		}
	}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func fill(name, data string) error { return os.WriteFile(name, []byte(data), 0o600) }

func TestADirectoryIsWatched(t *testing.T) {
	fsys, dir := box(t)
	must(t, os.Mkdir(dir+"/sub", 0o755))
	w := watch(t, fsys, dir, false)
	odd := dir + "/odd \xff\nname"
	must(t, fill(odd, "x"), os.Chmod(odd, 0o644), os.Rename(odd, dir+"/b"), fill(dir+"/sub/hidden", ""), os.Remove(dir+"/b"), fill(dir+"/end", ""))
	sees(t, w, []string{"create " + odd, "write " + odd, "chmod " + odd, "rename " + odd, "create " + dir + "/b", "remove " + dir + "/b", "create " + dir + "/end"},
		"create "+dir+"/sub/hidden")
	must(t, w.Close(), w.Close())
	_, err := w.Next(t.Context())
	wantKind(t, err, paddock.Canceled)
}

func TestATreeIsWatchedAlsoWhatIsMadeLater(t *testing.T) {
	fsys, dir := box(t)
	must(t, os.MkdirAll(dir+"/old/deep", 0o755))
	w := watch(t, fsys, dir, true)
	must(t, fill(dir+"/old/deep/f", "x"))
	sees(t, w, []string{"create " + dir + "/old/deep/f", "write " + dir + "/old/deep/f"})
	// Faster than any watch can follow.
	must(t, os.MkdirAll(dir+"/a/b/c", 0o755), fill(dir+"/a/b/c/f", "x"))
	seen := map[string]int{}
	for seen[dir+"/a/b/c/f"] == 0 || seen[dir+"/a/b"] == 0 || seen[dir+"/a"] == 0 {
		e, err := w.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if e.Op == paddock.EventCreate {
			seen[e.Name]++
		}
	}
	must(t, fill(dir+"/a/b/c/g", "x"))
	for seen[dir+"/a/b/c/g"] == 0 {
		e, err := w.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if e.Op == paddock.EventCreate {
			seen[e.Name]++
		}
	}
	for name, n := range seen {
		if n > 1 {
			t.Errorf("%s was created %d times", name, n)
		}
	}
}

func TestWhatIsMovedWithinATreeIsWatchedUnderItsNewName(t *testing.T) {
	fsys, dir := box(t)
	must(t, os.MkdirAll(dir+"/a/b", 0o755))
	w := watch(t, fsys, dir, true)
	must(t, os.Rename(dir+"/a", dir+"/z"))
	sees(t, w, []string{"rename " + dir + "/a", "create " + dir + "/z", "create " + dir + "/z/b"})
	must(t, fill(dir+"/z/b/f", ""))
	sees(t, w, []string{"create " + dir + "/z/b/f"}, "create "+dir+"/a/b/f", "rename "+dir+"/a")
}

func TestWhatIsMovedOutOfATreeIsWatchedNoMore(t *testing.T) {
	fsys, dir := box(t)
	in, out := dir+"/in", dir+"/out"
	must(t, os.MkdirAll(in+"/a/b", 0o755), os.Mkdir(out, 0o755))
	w := watch(t, fsys, in, true)
	must(t, os.Rename(in+"/a", out+"/a"))
	sees(t, w, []string{"rename " + in + "/a"})
	must(t, fill(in+"/mark", ""))
	sees(t, w, []string{"create " + in + "/mark"}, "rename "+in+"/a")
	must(t, fill(out+"/a/b/f", ""), fill(in+"/end", ""))
	sees(t, w, []string{"create " + in + "/end"}, "create "+in+"/a/b/f", "rename "+in+"/a")
}

func TestAFileIsWatchedAcrossItsReplacement(t *testing.T) {
	fsys, dir := box(t)
	name := dir + "/f"
	must(t, fill(name, "1"), fill(dir+"/other", ""), os.Symlink("f", dir+"/link"))
	w, link := watch(t, fsys, name, false), watch(t, fsys, dir+"/link", true)
	must(t, fill(dir+"/other", "x"), fill(dir+"/new", "2"), os.Rename(dir+"/new", name), fill(name, "3"), os.Remove(name))
	sees(t, w, []string{"create " + name, "write " + name, "remove " + name}, "write "+dir+"/other", "create "+dir+"/new")
	sees(t, link, []string{"create " + dir + "/link", "write " + dir + "/link", "remove " + dir + "/link"})
}

func TestADirectoryBehindALinkIsWatchedUnderTheNameAskedFor(t *testing.T) {
	fsys, dir := box(t)
	must(t, os.MkdirAll(dir+"/real/sub", 0o755), os.Symlink("real", dir+"/link"))
	w := watch(t, fsys, dir+"/link/../link/", true)
	must(t, fill(dir+"/real/sub/f", ""))
	sees(t, w, []string{"create " + dir + "/link/../link/sub/f"})
}

func TestTheWatchedDirectoryMayBeRemoved(t *testing.T) {
	for _, recursive := range []bool{false, true} {
		fsys, dir := box(t)
		must(t, os.MkdirAll(dir+"/d/sub", 0o755))
		w := watch(t, fsys, dir+"/d", recursive)
		must(t, os.RemoveAll(dir+"/d"))
		sees(t, w, []string{"remove " + dir + "/d/sub", "remove " + dir + "/d"})
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := w.Next(ctx)
		wantKind(t, err, paddock.Timeout)
	}
}

func TestLostEventsAreTold(t *testing.T) {
	fsys, dir := box(t)
	w := watch(t, fsys, dir, false)
	// More than every queue on the way holds, while nobody reads. Two names in
	// turn, because repetitions are one event.
	const n = 12_000
	for i := range n {
		must(t, os.WriteFile(fmt.Sprintf("%s/%s%d", dir, strings.Repeat("n", 100), i%2), nil, 0o600), os.Remove(fmt.Sprintf("%s/%s%d", dir, strings.Repeat("n", 100), i%2)))
	}
	for got := 0; ; got++ {
		e, err := w.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if e.Lost {
			return
		}
		if got > 4*n {
			t.Fatal("nothing was lost")
		}
	}
}
