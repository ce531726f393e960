package boxinit

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/protect"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// bareTree makes a directory in a protected tree with these names in it, and returns its broker and path.
func bareTree(t *testing.T, in string, names ...string) (*broker, string) {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b, err := newBroker(&Config{Trees: []Tree{{Path: top, Protected: true, Source: "/home/me/w"}}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := os.OpenRoot(top)
	if err != nil {
		t.Fatal(err)
	}
	full := top
	for comp := range strings.SplitSeq(in, "/") {
		if err := r.Mkdir(comp, 0o777); err != nil {
			t.Fatal(err)
		}
		below, err := r.OpenRoot(comp)
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		r, full = below, full+"/"+comp
	}
	defer r.Close()
	for _, name := range names {
		if err := r.Mkdir(name, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	return b, full
}

func wantProtected(t *testing.T, b *broker, path string) {
	t.Helper()
	if _, hit := b.judge(b.treeOf(path), path, nowhere); hit != protect.Protected {
		t.Errorf("...%s: %v, want protected", path[max(0, len(path)-60):], hit)
	}
}

// The paths of its entries are too long for the kernel. Whoever then renames a directory above makes
// them short.
func TestARepositoryAtTheEndOfALongPathIsFound(t *testing.T) {
	const room = 4090 // of 4096
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	left := room - len(base) - 1
	var comps []string
	for left > 255 {
		n := min(200, left-2)
		comps, left = append(comps, strings.Repeat("d", n)), left-n-1
	}
	in := strings.Join(append(comps, strings.Repeat("e", left)), "/")
	b, dir := bareTree(t, in, "HEAD", "objects", "refs")
	if len(dir) < room-2 || len(dir) > room+2 {
		t.Fatalf("a path of %d bytes", len(dir))
	}
	wantProtected(t, b, dir+"/config")
	b, dir = bareTree(t, in, "objects", "refs", "config")
	wantProtected(t, b, dir+"/HEAD")
}

// The guest has the directory open, and takes the right to search one above from everybody.
func TestARepositoryBehindADirectoryWithoutSearchRightIsFound(t *testing.T) {
	b, dir := bareTree(t, "above/x", "objects", "refs", "config")
	above := filepath.Dir(dir)
	if err := os.Chmod(above, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(above, 0o777) })
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with its user
		if os.Geteuid() == 0 {
			if err := syscall.Setfsuid(65534); err != nil {
				t.Error(err)
			}
		}
		wantProtected(t, b, dir+"/HEAD")
	}()
	<-done
}

func TestANameThatSomeFileSystemsTakeForAPartMakesARepository(t *testing.T) {
	for _, row := range []struct {
		name string
		with []string
	}{
		{"HE\u200cAD", []string{"objects", "refs", "config"}},
		{"refs ", []string{"HEAD", "objects", "config"}},
		{"CommonDir", []string{"HEAD"}},
	} {
		b, dir := bareTree(t, "x", row.with...)
		wantProtected(t, b, dir+"/"+row.name)
	}
	b, dir := bareTree(t, "x", "HEAD", "objects", "refs2")
	if rule, hit := b.judge(b.treeOf(dir+"/config"), dir+"/config", nowhere); hit != protect.Miss {
		t.Errorf("a plain directory is protected by %s", rule)
	}
}

// Two sandboxes may have the same workspace, and a broker each.
func TestTwoBrokersMakeNoRepositoryThatNeitherMayMake(t *testing.T) {
	for _, row := range []struct {
		last [2]string
		with string
	}{
		{[2]string{"objects", "refs"}, "HEAD config"},
		{[2]string{"HEAD", "config"}, "objects refs"},
		{[2]string{"refs", "hooks"}, "HEAD objects"},
		{[2]string{"refs", "info/attributes"}, "HEAD objects info"},
	} {
		last := row.last
		first, dir := bareTree(t, "x", strings.Fields(row.with)...)
		second, err := newBroker(&Config{Trees: []Tree{{Path: filepath.Dir(dir), Protected: true, Source: "/home/me/w"}}})
		if err != nil {
			t.Fatal(err)
		}
		one, a := placeOf(t, first, dir+"/"+last[0])
		two, b := placeOf(t, second, dir+"/"+last[1])
		if err := one.claim(a); err != nil {
			t.Fatal(err)
		}
		if err := two.claim(b); !errors.Is(err, syscall.EBUSY) {
			t.Errorf("%q: both may be judged before either is made: %v", last, err)
		}
		if !first.mayAt("make", a, true) {
			t.Fatalf("%q: the first may not be made", last)
		}
		if err := sys.MkdirAt(a.dir, a.base, 0o777); err != nil {
			t.Fatal(err)
		}
		a.close()
		if err := two.claim(b); err != nil {
			t.Errorf("%q: %v", last, err)
		}
		if second.mayAt("make", b, true) {
			t.Errorf("%q: both were made", last)
		}
		b.close()
	}
}

// placeOf resolves a path as a broker does for a call.
func placeOf(t *testing.T, b *broker, path string) (*call, *place) {
	t.Helper()
	c := &call{broker: b}
	p, err := c.resolve(sys.AtCWD, path, false)
	if err != nil {
		t.Fatal(err)
	}
	return c, p
}

// Another sandbox exchanges a repository and another directory while the path is judged.
func TestARepositoryIsFoundFromTheOpenDirectory(t *testing.T) {
	b, dir := bareTree(t, "x", "HEAD", "objects", "refs", "hooks")
	_, p := placeOf(t, b, dir+"/hooks/post-checkout")
	defer p.close()
	if err := os.Rename(dir, dir+"2"); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir+"/hooks", 0o777); err != nil {
		t.Fatal(err)
	}
	if b.mayAt("write", p, false) {
		t.Error("a hook of the repository may be written")
	}
}

// Programs write a file under one name, link it to another, remove the first and then set the mode.
func TestAFileThatLostTheNameItWasOpenedByKeepsItsRights(t *testing.T) {
	b, dir := bareTree(t, "x")
	f, err := os.Create(dir + "/first")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := errors.Join(os.Link(dir+"/first", dir+"/second"), os.Remove(dir+"/first")); err != nil {
		t.Fatal(err)
	}
	st, err := sys.StatAt(int(f.Fd()), "")
	if err != nil {
		t.Fatal(err)
	}
	path, err := sys.PathOf(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	if c := (&call{broker: b}); !c.mayFile("chmod", path, b.treeOf(path), st, true) {
		t.Errorf("the mode of %s may not be changed", path)
	}
}

// A mount may be a single file, and commands make the directory of one that is there.
func TestTheTopOfATreeIsClaimed(t *testing.T) {
	b, _ := bareTree(t, "x")
	c, p := placeOf(t, b, b.trees[0].path)
	defer p.close()
	if err := c.claim(p); err != nil {
		t.Error(err)
	}
}

// The kernel walks the path of a socket again, and another sandbox may have changed it.
func TestASocketThatCouldMakeARepositoryIsBoundInTheOpenDirectory(t *testing.T) {
	b, dir := bareTree(t, "x")
	b.landlock = true
	c := &call{broker: b}
	at, err := sys.OpenDirAt(sys.AtCWD, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close(at)
	for name, want := range map[string]bool{"socket": true, "refs": false, "Objects": false} {
		if got := c.keepsAddress(at, ".", dir+"/"+name, false); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
