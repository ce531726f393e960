package build_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/image/build"
	"github.com/paddock-sandbox/paddock/internal/image/dockerfile"
	"github.com/paddock-sandbox/paddock/internal/image/store"
)

// A bench builds images without commands, which need no sandbox.
type bench struct {
	t       *testing.T
	store   *store.Store
	context string
	ignore  []string
	steps   []string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	s, err := store.Open(store.Options{Dir: filepath.Join(t.TempDir(), "images")})
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t: t, store: s, context: t.TempDir()}
}

func (b *bench) Step(s build.Step, cached bool) {
	b.steps = append(b.steps, fmt.Sprintf("%d %s %t", s.Line, s.Stage, cached))
}

func (b *bench) Write(p []byte) (int, error) { return len(p), nil }

// file writes a file of the context. A name that ends with a slash is a directory.
func (b *bench) file(name, text string) {
	b.t.Helper()
	at := filepath.Join(b.context, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) link(name, to string) {
	b.t.Helper()
	if err := os.Symlink(to, filepath.Join(b.context, name)); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) build(text, name string) (build.Result, error) {
	b.t.Helper()
	f, err := dockerfile.Parse([]byte(text), dockerfile.Options{})
	if err != nil {
		b.t.Fatal(err)
	}
	root, err := os.OpenRoot(b.context)
	if err != nil {
		b.t.Fatal(err)
	}
	defer root.Close()
	b.steps = nil
	return build.Run(b.t.Context(), build.Options{
		Store: b.store, Name: name, File: f, Context: root, Ignore: b.ignore, Report: b,
		Base: func(ctx context.Context, reference string) (string, error) {
			img, err := b.store.Resolve(ctx, "", reference)
			return img.Digest, err
		},
	})
}

// must builds, and returns the files of the image as another program reads them: "KIND MODE UID:GID CONTENT" by name.
func (b *bench) must(text, name string) map[string]string {
	b.t.Helper()
	if _, err := b.build(text, name); err != nil {
		b.t.Fatal(err)
	}
	return b.files(name)
}

func (b *bench) files(name string) map[string]string {
	b.t.Helper()
	var saved bytes.Buffer
	if err := b.store.Save(b.t.Context(), "", []string{name}, &saved); err != nil {
		b.t.Fatal(err)
	}
	img, err := tarball.Image(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(saved.Bytes())), nil }, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	whole := mutate.Extract(img)
	defer whole.Close()
	files := map[string]string{}
	for r := tar.NewReader(whole); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			b.t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			b.t.Fatal(err)
		}
		files[strings.TrimSuffix(h.Name, "/")] = fmt.Sprintf("%c %o %d:%d %s%s", h.Typeflag, h.Mode, h.Uid, h.Gid, h.Linkname, data)
	}
}

func (b *bench) has(files map[string]string, want map[string]string) {
	b.t.Helper()
	for name, line := range want {
		if got, ok := files[name]; !ok && line != "" || got != line {
			b.t.Errorf("%s is %q, want %q", name, got, line)
		}
	}
}

func TestFilesAreCopied(t *testing.T) {
	b := newBench(t)
	b.file("a", "one")
	b.file("dir/b", "two")
	b.file("dir/sub/c", "three")
	b.link("dir/l", "b")
	b.link("inside", "dir/sub")
	b.file("dir/x.log", "")
	b.file("kept/x.log", "")
	b.ignore = []string{"**/*.log", "!kept/x.log"}
	b.must("FROM scratch\nCOPY <<E /etc/passwd\nroot:x:0:0::/:/bin/sh\napp:x:7:8::/:/bin/sh\nE\nCOPY <<E /etc/group\nwheel:x:9:\nE\n", "base:1")
	files := b.must(`FROM base:1
WORKDIR /srv/app
COPY a .
COPY a other
COPY --chmod=750 --chown=app:wheel dir /opt
COPY inside /in
COPY dir/* a /all/
COPY kept kept
USER app
WORKDIR own
`, "copied:1")
	b.has(files, map[string]string{
		"srv": "5 755 0:0 ", "srv/app/a": "0 644 0:0 one", "srv/app/other": "0 644 0:0 one",
		"opt/b": "0 750 7:9 two", "opt/sub": "5 750 7:9 ", "opt/sub/c": "0 750 7:9 three", "opt/l": "2 777 7:9 b", "opt/x.log": "",
		"in/c": "0 644 0:0 three", "all/b": "0 644 0:0 two", "all/c": "0 644 0:0 three", "all/a": "0 644 0:0 one", "all/x.log": "",
		"srv/app/kept/x.log": "0 644 0:0 ", "srv/app/own": "5 755 7:8 ", "etc/passwd": files["etc/passwd"],
	})
	if files["etc/passwd"] == "" {
		t.Error("what the image began with is gone")
	}
}

func TestLinksOfTheImageLeadInsideOfIt(t *testing.T) {
	b := newBench(t)
	b.file("a", "one")
	b.file("tree/usr/lib/b", "two")
	b.link("tree/lib", "usr/lib")
	b.link("tree/out", "../../../../../../../../tmp")
	b.link("tree/up", "/")
	b.must("FROM scratch\nCOPY tree /\n", "base:1")
	files := b.must("FROM base:1\nCOPY a /lib/\nCOPY a /out/deep/a\nCOPY a /up/up/top\n", "linked:1")
	b.has(files, map[string]string{
		"usr/lib/a": "0 644 0:0 one", "usr/lib/b": "0 644 0:0 two", "lib": "2 777 0:0 usr/lib",
		"tmp/deep/a": "0 644 0:0 one", "top": "0 644 0:0 one",
	})
}

func TestStagesAndTheirOwners(t *testing.T) {
	b := newBench(t)
	b.file("a", "one")
	files := b.must(`FROM scratch AS first
COPY --chown=3:4 a /x/a
FROM first AS second
COPY a /b
FROM scratch
COPY --from=second / /
COPY --from=first --chown=5 /x/a /y
`, "staged:1")
	b.has(files, map[string]string{"x/a": "0 644 3:4 one", "b": "0 644 0:0 one", "y": "0 644 5:5 one"})
}

func archive(t *testing.T, headers ...tar.Header) string {
	t.Helper()
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	w := tar.NewWriter(z)
	for _, h := range headers {
		content := ""
		if h.Typeflag == tar.TypeReg {
			content, h.Size = "content", 7
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return buf.String()
}

func TestArchivesAreUnpacked(t *testing.T) {
	b := newBench(t)
	b.file("a.tar.gz", archive(t,
		tar.Header{Typeflag: tar.TypeDir, Name: "usr/", Mode: 0o755},
		tar.Header{Typeflag: tar.TypeSymlink, Name: "bin", Linkname: "usr"},
		tar.Header{Typeflag: tar.TypeReg, Name: "bin/one", Mode: 0o4755, Uid: 3, Gid: 4},
		tar.Header{Typeflag: tar.TypeLink, Name: "two", Linkname: "bin/one", Mode: 0o4755, Uid: 3, Gid: 4},
		tar.Header{Typeflag: tar.TypeReg, Name: "../../../up", Mode: 0o644},
		tar.Header{Typeflag: tar.TypeSymlink, Name: "away", Linkname: "/../../../../.."},
		tar.Header{Typeflag: tar.TypeReg, Name: "away/top", Mode: 0o600},
		tar.Header{Typeflag: tar.TypeChar, Name: "null", Devmajor: 1, Devminor: 3, Mode: 0o666},
	))
	b.file("plain.gz", "\x1f\x8b that is none")
	files := b.must("FROM scratch\nADD a.tar.gz plain.gz /r/\nCOPY a.tar.gz /kept\n", "added:1")
	b.has(files, map[string]string{
		"r/usr/one": "0 4755 3:4 content", "r/bin": "2 777 0:0 usr", "r/up": "0 644 0:0 content", "top": "0 600 0:0 content",
		"r/null": "3 666 0:0 ", "r/plain.gz": "0 644 0:0 \x1f\x8b that is none", "up": "",
	})
	if !strings.HasPrefix(files["kept"], "0 644 0:0 \x1f\x8b") {
		t.Error("COPY unpacked an archive")
	}
	if two := files["r/two"]; two != "1 4755 3:4 r/usr/one" {
		t.Errorf("another name is %q", two)
	}
}

func TestWhatWasCopiedBeforeIsNotCopiedAgain(t *testing.T) {
	b := newBench(t)
	b.file("a", "one")
	const text = "FROM scratch AS s\nCOPY a /\nCOPY a /b\nCMD [\"x\"]\n"
	first, err := b.build(text, "same:1")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(b.steps, ", "); got != "2 s false, 3 s false, 4 s false" {
		t.Errorf("the steps are %s", got)
	}
	b.file("a", "one") // with another time
	again, err := b.build(text, "same:2")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(b.steps, ", "); again.Image.Digest != first.Image.Digest || got != "2 s true, 3 s true, 4 s false" || again.Saved != 2 {
		t.Errorf("the steps are %s, the images %s and %s", got, first.Image.Digest, again.Image.Digest)
	}
	b.file("a", "two")
	other, err := b.build(text, "same:2")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(b.steps, ", "); other.Image.Digest == first.Image.Digest || got != "2 s false, 3 s false, 4 s false" {
		t.Errorf("the steps are %s", got)
	}
	// What is kept for builds goes with prune, and images stay whole.
	if _, err := b.store.Prune(t.Context(), store.Prune{Builds: true}); err != nil {
		t.Fatal(err)
	}
	b.has(b.files("same:1"), map[string]string{"a": "0 644 0:0 one", "b": "0 644 0:0 one"})
	if _, err := b.build(text, "same:2"); err != nil || strings.Contains(strings.Join(b.steps, ""), "true") {
		t.Errorf("the steps are %s: %v", b.steps, err)
	}
	if list, err := b.store.Images(""); err != nil || len(list) != 2 {
		t.Errorf("%d images are left: %v", len(list), err)
	}
}

func TestWhatIsCopiedIsRefusedInWords(t *testing.T) {
	b := newBench(t)
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.file("a", "one")
	b.file("a2", "")
	b.file("dir/b", "two")
	b.file(".wh.a", "")
	b.file("x.log", "")
	b.link("out", outside)
	b.link("up", "../secret")
	b.link("circle", "circle")
	b.ignore = []string{"*.log"}
	for name, c := range map[string]struct {
		text, says string
		kind       error
	}{
		"a link out":              {"COPY out /x", "line 2: COPY out /x: out: it is a link that leads to nothing", paddock.NotFound},
		"a link up":               {"COPY up /x", "up: it is a link", paddock.NotFound},
		"a circle":                {"COPY circle /x", "circle", paddock.Invalid},
		"nothing":                 {"COPY nothing /x", "nothing: it is not in the context", paddock.NotFound},
		"no match":                {"COPY n*g /x", "nothing of such a name", paddock.NotFound},
		"what is left out":        {"COPY x.log /x", ".dockerignore", paddock.NotFound},
		"several to a file":       {"COPY a* /x", "slash", paddock.Invalid},
		"a directory over a file": {"COPY a /x\nCOPY dir /x", "no directory", paddock.Conflict},
		"a file over a directory": {"COPY dir /x/a\nCOPY a /x/", "is a directory", paddock.Conflict},
		"a name of a whiteout":    {"COPY .wh.a /", "removed files", paddock.Unsupported},
		"below a file":            {"COPY a /x\nCOPY a /x/y/z", "no directory", paddock.Invalid},
		"an unknown user":         {"COPY --chown=who a /x", "who", paddock.NotFound},
		"a mode in words":         {"COPY --chmod=u+x a /x", "octal", paddock.Unsupported},
		"a command in nothing":    {"RUN true", "no program", paddock.Invalid},
		"an image that is none":   {"COPY --from=none:1 a /x", "--from=none:1", paddock.NotFound},
		"a bind":                  {"COPY a /x\nRUN --mount=type=bind,target=/y true", "COPY them", paddock.Unsupported},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := b.build("FROM scratch\n"+c.text+"\n", "refused:1"); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("it says %v", err)
			}
		})
	}
	if list, err := b.store.Images(""); err != nil || len(list) != 0 {
		t.Errorf("%d images are left: %v", len(list), err)
	}
}
