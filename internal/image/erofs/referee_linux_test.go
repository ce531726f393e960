package erofs_test

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"testing"

	"gvisor.dev/gvisor/pkg/erofs"
)

// listing tells each file of a tree in a line.
type listing map[string]string

// kinds are those of a mode, as a listing has them.
func kind(mode uint32) string {
	return map[uint32]string{syscall.S_IFREG: "file", syscall.S_IFDIR: "dir", syscall.S_IFLNK: "link", syscall.S_IFCHR: "char", syscall.S_IFBLK: "block", syscall.S_IFIFO: "pipe"}[mode&syscall.S_IFMT]
}

func line(mode, uid, gid, links uint32, what string) string {
	perm := mode & 0o7777
	if mode&syscall.S_IFMT == syscall.S_IFLNK {
		perm = 0
	}
	if mode&syscall.S_IFMT == syscall.S_IFDIR {
		links = 0
	}
	return fmt.Sprintf("%s %o %d:%d %d %s", kind(mode), perm, uid, gid, links, what)
}

// opening opens an image as gVisor does.
func opening(t testing.TB, name string) *erofs.Image {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	img, err := erofs.OpenImage(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(img.Close)
	return img
}

// read reads an image as gVisor does.
func read(t testing.TB, name string) listing {
	t.Helper()
	img := opening(t, name)
	list := listing{}
	var walk func(at string, nid uint64)
	walk = func(at string, nid uint64) {
		i, err := img.Inode(nid)
		if err != nil {
			t.Fatalf("%s: %v", at, err)
		}
		what := ""
		switch {
		case i.IsRegular():
			if _, err := i.DataOffset(); err != nil { // gVisor maps it
				t.Fatalf("%s: %v", at, err)
			}
			ranges, err := i.DataRanges()
			if err != nil {
				t.Fatalf("%s: %v", at, err)
			}
			what = fmt.Sprintf("%x", sha256.Sum256(ranges[0].Bytes))
		case i.IsSymlink():
			if what, err = i.Readlink(); err != nil {
				t.Fatalf("%s: %v", at, err)
			}
		case i.IsDir():
			var names []string
			err := i.IterDirents(func(name string, typ uint8, child uint64) error {
				names = append(names, name)
				if found, err := i.Lookup(name); err != nil || found != child {
					t.Errorf("%s: %q is found at %d (%v), want %d", at, name, found, err, child)
				}
				if name != "." && name != ".." {
					walk(filepath.Join(at, name), child)
				}
				return nil
			})
			if err != nil || !sort.StringsAreSorted(names) {
				t.Fatalf("%s: %v, %q", at, err, names)
			}
		}
		list[at] = line(uint32(i.Mode()), i.UID(), i.GID(), i.Nlink(), what)
	}
	walk("/", img.RootNid())
	delete(list, "/")
	return list
}

// root tells the root of an image.
func root(t testing.TB, name string) string {
	t.Helper()
	img := opening(t, name)
	i, err := img.Inode(img.RootNid())
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s %o %d:%d", kind(uint32(i.Mode())), i.Mode()&0o7777, i.UID(), i.GID())
}

func TestTheRootHasTheAttributesOfTheImage(t *testing.T) {
	name, err := convert(t, usual, archive(t, []entry{{name: "./", kind: tar.TypeDir, mode: 0o700, uid: 7}, file("a", "")}))
	if err != nil {
		t.Fatal(err)
	}
	if got := root(t, name); got != "dir 755 7:7" {
		t.Errorf("the root is %s", got)
	}
}

// look reads a directory.
func look(t testing.TB, dir string) listing {
	t.Helper()
	list := listing{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return fmt.Errorf("%s: no numbers", name)
		}
		what := ""
		switch st.Mode & syscall.S_IFMT {
		case syscall.S_IFREG:
			data, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			what = fmt.Sprintf("%x", sha256.Sum256(data))
		case syscall.S_IFLNK:
			if what, err = os.Readlink(name); err != nil {
				return err
			}
		}
		list[strings.TrimPrefix(name, dir)] = line(st.Mode, st.Uid, st.Gid, uint32(st.Nlink), what)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func (l listing) String() string {
	var lines []string
	for name, what := range l {
		lines = append(lines, name+" "+what)
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

// unpack has umoci unpack layers, and reports whether it did.
func unpack(t testing.TB, layers [][]byte) (listing, error) {
	t.Helper()
	layout, root := t.TempDir(), filepath.Join(t.TempDir(), "root")
	blob := func(data []byte, kind string) map[string]any {
		sum := fmt.Sprintf("%x", sha256.Sum256(data))
		dir := filepath.Join(layout, "blobs", "sha256")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, sum), data, 0o644); err != nil {
			t.Fatal(err)
		}
		return map[string]any{"mediaType": kind, "digest": "sha256:" + sum, "size": len(data)}
	}
	document := func(v any) []byte {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	var list []any
	ids := []string{}
	for _, l := range layers {
		d := blob(l, "application/vnd.oci.image.layer.v1.tar")
		list, ids = append(list, d), append(ids, fmt.Sprint(d["digest"]))
	}
	config := blob(document(map[string]any{"os": "linux", "architecture": "amd64", "config": map[string]any{}, "rootfs": map[string]any{"type": "layers", "diff_ids": ids}}), "application/vnd.oci.image.config.v1+json")
	manifest := blob(document(map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config, "layers": list}), "application/vnd.oci.image.manifest.v1+json")
	manifest["annotations"] = map[string]string{"org.opencontainers.image.ref.name": "it"}
	for name, data := range map[string][]byte{"oci-layout": []byte(`{"imageLayoutVersion":"1.0.0"}`), "index.json": document(map[string]any{"schemaVersion": 2, "manifests": []any{manifest}})} {
		if err := os.WriteFile(filepath.Join(layout, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.CommandContext(context.Background(), "umoci", "raw", "unpack", "--image", layout+":it", root).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	return look(t, root), nil
}

// whiteouts are stacks of layers in which files are removed in every order.
func whiteouts() map[string][][]entry {
	white := func(name string) entry { return file(name, "") }
	base := []entry{dir("a"), file("a/x", "1"), file("a/y", "2"), dir("a/b"), file("a/b/z", "3"), file("c", "4"), symlink("l", "a")}
	return map[string][][]entry{
		"a file":                        {base, {white("a/.wh.x")}},
		"a directory":                   {base, {white(".wh.a")}},
		"a file that is made after it":  {base, {white(".wh.c"), file("c", "new")}},
		"a file that is made before it": {base, {file("c", "new"), white(".wh.c")}},
		"a directory made after it":     {base, {white(".wh.a"), dir("a"), file("a/n", "n")}},
		"a directory made before it":    {base, {dir("a"), file("a/n", "n"), white(".wh.a")}},
		"opaque first":                  {base, {dir("a"), white("a/.wh..wh..opq"), file("a/n", "n")}},
		"opaque last":                   {base, {dir("a"), file("a/n", "n"), white("a/.wh..wh..opq")}},
		"opaque without its directory":  {base, {white("a/.wh..wh..opq"), file("a/n", "n")}},
		"opaque below":                  {base, {dir("a"), dir("a/b"), white("a/b/.wh..wh..opq"), file("a/b/n", "n")}},
		"nothing":                       {base, {white(".wh.nothing"), white("a/.wh.nothing")}},
		"twice":                         {base, {white(".wh.c")}, {white(".wh.c")}},
		"and made again":                {base, {white(".wh.c")}, {file("c", "again")}},
		"a directory by a file":         {base, {file("a", "file")}},
		"a file by a directory":         {base, {dir("c"), file("c/d", "d")}},
		"a link by a directory":         {base, {dir("l"), file("l/d", "d")}},
		"a directory by a link":         {base, {symlink("a", "c")}},
		"one of two names":              {{file("x", "1"), hard("y", "x")}, {white(".wh.x")}},
		"a name of a file below":        {{file("x", "1")}, {hard("y", "x")}},
		"a name of a link":              {{symlink("x", "c"), hard("y", "x")}},
		"the same twice in a layer":     {{file("x", "1"), file("x", "2"), dir("d"), file("d/e", "e"), file("d", "now a file")}},
		"no directory before its file":  {{file("p/q/r", "1")}},
		"attributes of a directory":     {base, {{name: "a", kind: tar.TypeDir, mode: 0o700, uid: 7}}},
		"set-id":                        {{{name: "s", kind: tar.TypeReg, mode: 0o4755, uid: 3}, {name: "t", kind: tar.TypeDir, mode: 0o1777}}},
		"a large directory":             {many(3000)},
		"blocks":                        {{file("e", ""), file("f", strings.Repeat("x", 4096)), file("g", strings.Repeat("x", 4097)), file("z", strings.Repeat("\x00", 100_000)), symlink("long", strings.Repeat("n/", 2047))}},
		"names in any bytes":            {{file("a\xff\x01b", "1"), file("!x", "2"), file("-", "3"), dir(" "), file(" / ", "4")}},
	}
}

func many(n int) []entry {
	list := make([]entry, n)
	for i := range list {
		list[i] = file(fmt.Sprintf("dir/a-name-of-some-length-%d", i*7919%n), fmt.Sprint(i%3))
	}
	return list
}

func TestWhiteoutsAreThoseOfUmoci(t *testing.T) {
	if _, err := exec.LookPath("umoci"); err != nil || os.Geteuid() != 0 {
		t.Skip("umoci is not installed, or this is not root, as whom it keeps owners")
	}
	for what, stack := range whiteouts() {
		t.Run(what, func(t *testing.T) { compare(t, stack) })
	}
}

// compare converts a stack, reads it as gVisor does, and compares that with what umoci makes of it.
func compare(t *testing.T, stack [][]entry) {
	t.Helper()
	var layers [][]byte
	for _, l := range stack {
		layers = append(layers, archive(t, l))
	}
	want, err := unpack(t, layers)
	if err != nil {
		t.Fatal(err)
	}
	name, err := convert(t, usual, layers...)
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, name); got.String() != want.String() {
		t.Errorf("the image is\n%s\n\nand umoci makes\n%s", got, want)
	}
}

// TestStacksByChance compares stacks of layers that chance makes. Links of directories are left out: umoci's order of
// them is its own.
func TestStacksByChance(t *testing.T) {
	if _, err := exec.LookPath("umoci"); err != nil || os.Geteuid() != 0 {
		t.Skip("umoci is not installed, or this is not root, as whom it keeps owners")
	}
	const stacks = 60
	compared := 0
	for seed := range uint64(stacks) {
		r := rand.New(rand.NewPCG(seed, 1))
		name := func() string {
			parts := make([]string, 1+r.IntN(3))
			for i := range parts {
				parts[i] = string(rune('a' + r.IntN(3)))
			}
			return strings.Join(parts, "/")
		}
		var layers [][]byte
		var lists [][]entry
		for range 1 + r.IntN(4) {
			var list []entry
			for range 1 + r.IntN(8) {
				n := name()
				switch r.IntN(6) {
				case 0, 1:
					list = append(list, file(n, fmt.Sprint(r.IntN(9))))
				case 2, 3:
					list = append(list, dir(n))
				case 4:
					list = append(list, file(filepath.Join(filepath.Dir(n), ".wh."+filepath.Base(n)), ""))
				case 5:
					list = append(list, file(n+"/.wh..wh..opq", ""))
				}
			}
			layers, lists = append(layers, archive(t, list)), append(lists, list)
		}
		want, refused := unpack(t, layers)
		image, err := convert(t, usual, layers...)
		if refused != nil || err != nil {
			continue // a file where a directory is needed: one of them may take it
		}
		compared++
		if got := read(t, image); got.String() != want.String() {
			var said strings.Builder
			for k, l := range lists {
				fmt.Fprintf(&said, "layer %d:", k)
				for _, e := range l {
					fmt.Fprintf(&said, " %c:%s", e.kind, e.name)
				}
				said.WriteString("\n")
			}
			t.Errorf("seed %d:\n%s the image is\n%s\n\nand umoci makes\n%s", seed, said.String(), got, want)
		}
	}
	if compared < stacks/2 {
		t.Errorf("of %d stacks only %d were compared", stacks, compared)
	}
}

func FuzzALayer(f *testing.F) {
	for _, stack := range whiteouts() {
		if len(stack) == 2 && len(stack[1]) < 10 {
			f.Add(archive(f, stack[1]))
		}
	}
	base := archive(f, []entry{dir("a"), file("a/x", "1"), dir("a/b"), symlink("l", "a"), symlink("up", "../../..")})
	f.Fuzz(func(t *testing.T, layer []byte) {
		name, err := convert(t, usual, base, layer)
		if err == nil {
			for at := range read(t, name) {
				if strings.Contains(at, "/../") || !strings.HasPrefix(at, "/") || strings.Contains(at, "\x00") {
					t.Errorf("a file is at %q", at)
				}
			}
		}
	})
}
