package boxinit

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/protect"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// hostile returns names and paths that have deceived other programs.
func hostile() []string {
	return []string{
		"", "/", "//", "///", ".", "..", "./", "../", "a", "a/", "a//", "/a", "//a", "/a//b///", "a/..", "/..", "/proj/.",
		"/proj", "/proj/", "/proj/.git/hooks/pre-commit", "/proj/.git/hooks/", "/proj/.git /hooks", "/proj/.git\n/hooks",
		"/proj (deleted)", "/proj/.git (deleted)/hooks", "/proj/x (deleted)", "/projspace/.git/hooks", "/proj\n/.git/hooks",
		"/proj/.GIT/hooks", "/proj/sub/.git/hooks/x", "/proj/\xff\xfe/.git", "/proj/.git/config\x00x", "/home/user/.ssh/x", "/home",
		"/proj/secret", "/proj/secret/x", "/proj/secrets", "/home/user/mnt/x", "/home/user/mntx", "/tmp/proj/.git/hooks",
		strings.Repeat("/a", 3000), "/proj/" + strings.Repeat("x", 10_000), "/" + strings.Repeat("../", 2000), strings.Repeat("/", 5000),
	}
}

func FuzzSplit(f *testing.F) {
	for _, path := range hostile() {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		dir, base := split(path)
		if dir == "" || strings.Contains(base, "/") {
			t.Fatalf("%q is split into %q and %q", path, dir, base)
		}
		whole := strings.TrimRight(path, "/")
		joined := dir + "/" + base
		switch {
		case !strings.Contains(whole, "/"):
			joined = strings.TrimPrefix(joined, "./")
		case strings.LastIndex(whole, "/") == 0:
			joined = strings.TrimPrefix(joined, "/")
		}
		if joined != whole {
			t.Fatalf("%q is split into %q and %q", path, dir, base)
		}
		// If only one of path and directory part were absolute, they would begin at
		// different places.
		if base != "" && strings.HasPrefix(dir, "/") != strings.HasPrefix(path, "/") {
			t.Fatalf("%q is split into %q and %q", path, dir, base)
		}
	})
}

// names returns the components of a path.
func names(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

// within compares by components.
func within(path, dir string) bool {
	p, d := names(path), names(dir)
	return len(p) >= len(d) && slices.Equal(p[:len(d)], d)
}

// real returns a path that the kernel could report for hostile bytes: absolute, and without
// empty names, dots or NULs.
func real(path string) string {
	list := slices.DeleteFunc(names(path), func(n string) bool {
		return n == "." || n == ".." || strings.Contains(n, "\x00")
	})
	return "/" + strings.Join(list, "/")
}

func FuzzBelow(f *testing.F) {
	for i, path := range hostile() {
		f.Add(path, hostile()[(i*7+3)%len(hostile())])
		f.Add(path, "/proj")
		f.Add(path, "/")
	}
	f.Fuzz(func(t *testing.T, path, dir string) {
		path, dir = real(path), real(dir)
		if got := below(path, dir); got != within(path, dir) {
			t.Fatalf("%q below %q: %v", path, dir, got)
		}
	})
}

func hostileBroker(t testing.TB) *broker {
	t.Helper()
	b, err := newBroker(&Config{
		Trees: []Tree{
			{Path: "/proj", Protected: true, Source: "/home/me/project"},
			{Path: "/proj/private"},
			{Path: "/proj/private/again", Protected: true},
			{Path: "/hooks", Protected: true, Source: "/home/me/other/.git"},
			{Path: "/cache"},
		},
		Writable: []string{"/tmp", "/home/user", "/proj", "/cache"},
		Hosts:    []string{"/proj", "/home/user/mnt", "/proj/private/again", "/hooks"},
		Deny:     []string{"/proj/secret", "/cache/a\nb"},
		Protect:  []string{"build/*/lock"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func FuzzJudge(f *testing.F) {
	b := hostileBroker(f)
	set, err := protect.New([]string{"build/*/lock"}, nil)
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range hostile() {
		for _, at := range []string{"", "/proj", "/proj/private", "/proj/private/again", "/hooks", "/cache", "/tmp", "/home/user/mnt"} {
			f.Add(at + path)
		}
	}
	f.Add("/cache/a\nb/c")
	f.Add("/cache/a")
	f.Add("/hooks/hooks/pre-commit")
	f.Add("/proj/build/x/lock")
	f.Fuzz(func(t *testing.T, path string) {
		path = real(path)
		var want *tree
		for i := range b.trees {
			if tr := &b.trees[i]; within(path, tr.path) && (want == nil || within(tr.path, want.path)) {
				want = tr
			}
		}
		got := b.treeOf(path)
		if got != want {
			t.Fatalf("%q is in %v, want %v", path, got, want)
		}

		// Only what is in a private place, and in no tree of the host within it, belongs to
		// the box.
		deepest := func(list []string) int {
			n := -1
			for _, d := range list {
				if within(path, d) {
					n = max(n, len(names(d)))
				}
			}
			return n
		}
		private := deepest([]string{"/tmp", "/home/user", "/cache", "/proj/private"})
		hosts := deepest([]string{"/proj", "/proj/private/again", "/hooks", "/home/user/mnt"})
		if own := b.ours(path); own != (private > hosts) {
			t.Fatalf("%q is the box's own: %v", path, own)
		}

		if got == nil {
			return
		}
		rule, hit := b.judge(got, path, nowhere)
		if (hit == protect.Miss) != (rule == "") {
			t.Fatalf("%q: %v by %q", path, hit, rule)
		}
		for _, d := range b.deny {
			switch {
			case within(path, d) && hit != protect.Protected:
				t.Fatalf("%q is denied by %q, and yet %v", path, d, hit)
			case within(d, path) && hit == protect.Miss:
				t.Fatalf("%q is above %q, and yet free to be moved", path, d)
			}
		}
		for _, h := range b.hosts {
			if h != path && within(h, path) && hit == protect.Miss {
				t.Fatalf("%q is above the mount %q, and yet free to be moved", path, h)
			}
		}
		if got.protected == nil || path == got.path {
			return
		}
		rel := strings.TrimPrefix(path, got.path+"/")
		for _, name := range []string{rel, got.above + rel} {
			// If judge returns a beginning, it is that of a mount or a denied name.
			if _, direct := set.Match(name); direct == protect.Protected && hit == protect.Miss {
				t.Fatalf("%q is protected as %q, and yet free", path, name)
			}
		}
	})
}

func TestWhatIsProtectedByAMountsNameOnTheHost(t *testing.T) {
	b, err := newBroker(&Config{Trees: []Tree{{Path: "/w", Protected: true, Source: "/home/me/p/.git/hooks"}, {Path: "/m", Protected: true, Source: "/p/.git/modules"}, {Path: "/v", Protected: true, Source: "/p/.git"}}})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]protect.Hit{
		"/v/hooks/x": protect.Protected, "/v/config": protect.Protected, "/v/index": protect.Miss, "/v": protect.Miss,
		"/w/a (deleted)": protect.Miss, "/w/.git/hooks": protect.Protected, "/w/.git\n/hooks": protect.Miss,
		"/m/a": protect.Prefix, "/m/a/hooks/x": protect.Protected, "/m/a/index": protect.Miss,
	} {
		if rule, hit := b.judge(b.treeOf(path), path, nowhere); hit != want {
			t.Errorf("%q: %v by %q, want %v", path, hit, rule, want)
		}
	}
}

func TestTheNameOfAPlaceIsWhatTheKernelTells(t *testing.T) {
	top, err := os.MkdirTemp("", "paddock-path")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(top) })
	for name, known := range map[string]bool{
		"plain": true, "new\nline": true, "\xff\xfe": true, " ": true, "back\\134slash": true, strings.Repeat("l", 255): true,
		"gone": false, "looks gone (deleted)": false,
	} {
		if err := os.Mkdir(top+"/"+name, 0o755); err != nil {
			t.Fatal(err)
		}
		fd, err := sys.OpenDirAt(-1, top+"/"+name)
		if err != nil {
			t.Fatal(err)
		}
		if name == "gone" {
			if err := os.Remove(top + "/" + name); err != nil {
				t.Fatal(err)
			}
		}
		got, err := (&broker{}).pathIn(fd, "x")
		syscall.Close(fd)
		if known && (err != nil || got != top+"/"+name+"/x") || !known && !errors.Is(err, syscall.ENOENT) {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
}

func TestAPathThroughADescriptor(t *testing.T) {
	for path, want := range map[string]string{
		"/proc/self/fd/3/a": "a", "/proc/self/fd/3//a/../b/": "a/../b/", "/proc/self/fd/0/..": "..",
		"/proc/self/fd/3": "", "/proc/self/fd/3/": "", "/proc/self/fd/03/a": "", "/proc/self/fd/+3/a": "", "/proc/self/fd/-1/a": "", "/proc/self/fd//a": "",
		"/proc/self/fd/99999999999999999999/a": "", "/proc/1/fd/3/a": "", "proc/self/fd/3/a": "", "/proc/self/fd/x/a": "",
	} {
		if _, rest, ok := throughDescriptor(path); rest != want && ok || ok != (want != "") {
			t.Errorf("%q leaves %q, %v", path, rest, ok)
		}
	}
}

func FuzzThroughDescriptor(f *testing.F) {
	for _, path := range hostile() {
		f.Add(path)
		f.Add("/proc/self/fd/3" + path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		n, rest, ok := throughDescriptor(path)
		if !ok {
			return
		}
		above, slashes := strings.CutSuffix(path, rest)
		if n < 0 || rest == "" || rest[0] == '/' || !slashes || strings.TrimRight(above, "/") != "/proc/self/fd/"+strconv.Itoa(n) {
			t.Errorf("%q is %q in the descriptor %d", path, rest, n)
		}
	})
}
