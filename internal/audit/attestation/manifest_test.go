package attestation

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

func openRoot(t testing.TB, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

func write(t testing.TB, name, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, mode); err != nil { // whatever the umask is
		t.Fatal(err)
	}
}

// workspace makes one with every kind of file that anybody can make, and names that need care.
func workspace(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a/b"), "b", 0o644)
	write(t, filepath.Join(dir, "a-b"), "", 0o755)
	write(t, filepath.Join(dir, "a/z/deep"), strings.Repeat("deep", 1<<16), 0o400)
	write(t, filepath.Join(dir, "-n new\nline \\ \"quoted\" ä\xff*"), "odd", 0o600)
	write(t, filepath.Join(dir, "suid"), "s", os.ModeSetuid|0o755)
	write(t, filepath.Join(dir, ".git/HEAD"), "ref: refs/heads/main\n", 0o644)
	write(t, filepath.Join(dir, "sub/.git/HEAD"), "of a submodule", 0o644)
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "empty"), os.ModeSticky|0o777); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"link": "a/b", "away": "/etc/passwd", "loop": "loop", "lines": "x\n\n"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o620); err != nil {
		t.Fatal(err)
	}
	return dir
}

// The recipe is that of the manual, so that anybody can compute the digest.
func TestStandardToolsComputeTheSameManifest(t *testing.T) {
	page, err := os.ReadFile("../../../docs/security/attestation.md")
	if err != nil {
		t.Fatal(err)
	}
	_, recipe, _ := strings.Cut(string(page), "\n```bash\n")
	recipe, _, found := strings.Cut(recipe, "```")
	if !found {
		t.Fatal("the manual has no recipe")
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash here")
	}
	if err := exec.Command("find", ".", "-maxdepth", "0", "-printf", "").Run(); err != nil {
		t.Skip("find is not GNU's here: ", err)
	}
	dir := workspace(t)
	if l, err := net.Listen("unix", filepath.Join(dir, "socket")); err == nil { // a temporary directory's name may be too long
		defer l.Close()
	}
	c := exec.Command(bash, "-euo", "pipefail", "-c", recipe)
	c.Dir = dir
	want, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := WriteManifest(t.Context(), &got, openRoot(t, dir)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) || got.Len() == 0 {
		t.Errorf("got  %q\nwant %q", got.Bytes(), want)
	}
	digest, err := DigestWorkspace(t.Context(), openRoot(t, dir))
	if sum := fmt.Sprintf("%x", sha256.Sum256(want)); err != nil || digest != sum {
		t.Errorf("%s, %v, want %s", digest, err, sum)
	}
}

func TestAManifestIsSortedByTheBytesOfPaths(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a/b"), "b", 0o644)
	write(t, filepath.Join(dir, "a-b"), "", 0o755)
	if err := os.Chmod(filepath.Join(dir, "a"), 0o750); err != nil {
		t.Fatal(err)
	}
	const none, b = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d"
	var got bytes.Buffer
	if err := WriteManifest(t.Context(), &got, openRoot(t, dir)); err != nil || got.String() != "d 750 - a\x00f 755 "+none+" a-b\x00f 644 "+b+" a/b\x00" {
		t.Errorf("%q, %v", got.String(), err)
	}
}

func TestEveryChangeOfAWorkspaceChangesItsDigest(t *testing.T) {
	for name, change := range map[string]func(dir string) error{
		"a byte of a file":   func(dir string) error { return os.WriteFile(filepath.Join(dir, "a/b"), []byte("c"), 0) },
		"a file more":        func(dir string) error { return os.WriteFile(filepath.Join(dir, "a/c"), nil, 0o600) },
		"a file less":        func(dir string) error { return os.Remove(filepath.Join(dir, "a-b")) },
		"a mode":             func(dir string) error { return os.Chmod(filepath.Join(dir, "a/b"), 0o645) },
		"a directory's":      func(dir string) error { return os.Chmod(filepath.Join(dir, "empty"), 0o777) },
		"another name":       func(dir string) error { return os.Rename(filepath.Join(dir, "a/b"), filepath.Join(dir, "a/B")) },
		"an empty directory": func(dir string) error { return os.Remove(filepath.Join(dir, "empty")) },
		"where a link leads": func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "link")), os.Symlink("a/c", filepath.Join(dir, "link")))
		},
		"a file in place of a link": func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "link")), os.WriteFile(filepath.Join(dir, "link"), []byte("a/b"), 0o777))
		},
		"a submodule's": func(dir string) error { return os.WriteFile(filepath.Join(dir, "sub/.git/HEAD"), nil, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := workspace(t)
			before, err := DigestWorkspace(t.Context(), openRoot(t, dir))
			if err != nil {
				t.Fatal(err)
			}
			if err := change(dir); err != nil {
				t.Fatal(err)
			}
			if after, err := DigestWorkspace(t.Context(), openRoot(t, dir)); err != nil || after == before {
				t.Errorf("%s, %v", after, err)
			}
		})
	}
	dir := workspace(t)
	before, err := DigestWorkspace(t.Context(), openRoot(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, ".git/index"), "what git writes at every look", 0o644)
	if after, err := DigestWorkspace(t.Context(), openRoot(t, dir)); err != nil || after != before {
		t.Errorf("the repository at the top is part of it: %v", err)
	}
}

// A command left more than anybody wants to read, or a path that no program can open.
func TestAWorkspaceHasBounds(t *testing.T) {
	dir := t.TempDir()
	huge, err := os.Create(filepath.Join(dir, "huge"))
	if err != nil {
		t.Fatal(err)
	}
	defer huge.Close()
	if err := huge.Truncate(maxBytes + 1); err != nil {
		t.Skip("no file can be so large here: ", err)
	}
	if _, err := DigestWorkspace(t.Context(), openRoot(t, dir)); !errors.Is(err, paddock.Exhausted) {
		t.Errorf("of a huge file: %v", err)
	}
	dir = t.TempDir()
	root := openRoot(t, dir)
	name := strings.Repeat("d", 255)
	at := root
	for range maxPath/len(name) + 1 {
		if err := at.Mkdir(name, 0o700); err != nil {
			t.Fatal(err)
		}
		if at, err = at.OpenRoot(name); err != nil {
			t.Fatal(err)
		}
		defer at.Close()
	}
	if _, err := DigestWorkspace(t.Context(), root); !errors.Is(err, paddock.Exhausted) {
		t.Errorf("of a long path: %v", err)
	}
}

// deep makes directories in each other, and returns the last one.
func deep(t *testing.T, dir string, depth int) *os.Root {
	t.Helper()
	at := openRoot(t, dir)
	for range depth {
		if err := at.Mkdir("a", 0o700); err != nil {
			t.Fatal(err)
		}
		next, err := at.OpenRoot("a")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { next.Close() })
		at = next
	}
	return at
}

// The time of an entry must not grow with its depth: by whole paths, each of these would open 500 directories.
func TestADeepWorkspaceTakesNoLongerThanAFlatOne(t *testing.T) {
	dir := t.TempDir()
	at := deep(t, dir, 500)
	for i := range 20000 {
		if err := at.Symlink("x", strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if _, err := DigestWorkspace(ctx, openRoot(t, dir)); err != nil {
		t.Error(err)
	}
}

func TestAWorkspaceHasBoundsOfDepthOfPathsAndOfHoles(t *testing.T) {
	read := func(dir string, amend func(*survey)) error {
		s := newSurvey(t.Context())
		amend(s)
		return s.write(io.Discard, openRoot(t, dir))
	}
	dir := t.TempDir()
	deep(t, dir, maxDepth+1)
	if _, err := DigestWorkspace(t.Context(), openRoot(t, dir)); !errors.Is(err, paddock.Exhausted) {
		t.Errorf("of depth: %v", err)
	}
	dir = t.TempDir()
	at := deep(t, dir, 10)
	for i := range 8 {
		if err := at.Symlink("x", strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := read(dir, func(s *survey) { s.paths = 400 }); err != nil {
		t.Error(err)
	}
	if err := read(dir, func(s *survey) { s.paths = 200 }); !errors.Is(err, paddock.Exhausted) {
		t.Errorf("of paths: %v", err)
	}
	if err := read(dir, func(s *survey) { s.entries = 17 }); !errors.Is(err, paddock.Exhausted) {
		t.Errorf("of entries: %v", err)
	}
	if err := read(dir, func(s *survey) { s.entries = 18 }); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := DigestWorkspace(ctx, openRoot(t, dir)); !errors.Is(err, context.Canceled) || !errors.Is(err, paddock.Canceled) {
		t.Errorf("of a context that has ended: %v", err)
	}
}

func TestHolesAreNotRead(t *testing.T) {
	dir := t.TempDir()
	f, err := os.OpenFile(filepath.Join(dir, "file"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const size = 3 << 20
	want := make([]byte, size)
	for _, at := range []int64{1 << 20, 2<<20 - 5} {
		copy(want[at:], "some bytes")
		if _, err := f.WriteAt([]byte("some bytes"), at); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := WriteManifest(t.Context(), &got, openRoot(t, dir)); err != nil || got.String() != fmt.Sprintf("f 644 %x file\x00", sha256.Sum256(want)) {
		t.Errorf("%q, %v", got.String(), err)
	}
	if st, ok := mustStat(t, f).Sys().(*syscall.Stat_t); !ok || st.Blocks*512 >= size {
		t.Skip("no file has holes here")
	}
	s := newSurvey(t.Context())
	s.holes = size / 2
	if err := s.write(io.Discard, openRoot(t, dir)); !errors.Is(err, paddock.Exhausted) {
		t.Errorf("of holes: %v", err)
	}
}

func mustStat(t *testing.T, f *os.File) os.FileInfo {
	t.Helper()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return info
}
