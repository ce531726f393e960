package e2broot_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/image"
	"github.com/paddock-sandbox/paddock/internal/image/e2broot"
	"github.com/paddock-sandbox/paddock/internal/image/store"
)

func open(t *testing.T, dir string, files map[string]string) (*store.Store, store.Image) {
	t.Helper()
	s, err := store.Open(store.Options{Dir: dir, Converters: []store.Converter{e2broot.Converter()}})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for name, text := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o4755, Size: int64(len(text)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	list, err := s.Load(t.Context(), store.Load{Tenant: "acme", Input: &b, Tag: "own:1"})
	if err != nil {
		t.Fatal(err)
	}
	return s, list[0]
}

func TestTheFormHasAccountsAndTheImageDoesNot(t *testing.T) {
	dir := t.TempDir()
	s, img := open(t, dir, map[string]string{"bin/bash": "#!", "etc/passwd": "root:x:0:0::/root:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh"})
	ctx := s.As(t.Context(), "acme")
	tree, hold, err := s.Tree(ctx, img.Digest, e2broot.Form)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(tree.Path, "etc/passwd"))
	if err != nil || !strings.Contains(string(data), "\nuser:x:1001:1001:") {
		t.Errorf("%q, %v", data, err)
	}
	if st, err := os.Lstat(filepath.Join(tree.Path, "etc/resolv.conf")); err != nil || !st.Mode().IsRegular() {
		t.Errorf("a box could not put its own over resolv.conf: %v", err)
	}
	if st, err := os.Stat(filepath.Join(tree.Path, "bin/bash")); err != nil || st.Mode()&os.ModeSetuid != 0 || st.Mode().Perm() != 0o755 {
		t.Errorf("%v: %v", st, err)
	}
	plain, other, err := s.Tree(ctx, img.Digest, image.FormDir)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(plain.Path, "etc/passwd")); err != nil || strings.Contains(string(data), "user:") {
		t.Errorf("the image's own are %q, %v", data, err)
	}
	for path, want := range map[string]string{
		tree.Path: img.Digest, tree.Path + "/": img.Digest, plain.Path: img.Digest, filepath.Dir(tree.Path): "", filepath.Join(tree.Path, "etc"): "", "/": "",
		filepath.Join(dir, "root"): "", filepath.Join(tree.Path, "..", "..", "..", strings.Repeat("0", 64), filepath.Base(filepath.Dir(tree.Path)), "root"): "",
	} {
		if got := store.DigestOf(dir, path); got != want {
			t.Errorf("the image of %s is %q, not %q", path, got, want)
		}
	}
	if got := store.DigestOf(t.TempDir(), tree.Path); got != "" {
		t.Errorf("another store has the image %q", got)
	}
	// The form goes when no template has it, and not before, whoever asks.
	if err := errors.Join(hold.Close(), other.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Remove(t.Context(), "acme", "own:1"); !errors.Is(err, paddock.Conflict) || !strings.Contains(err.Error(), "templates") {
		t.Errorf("%v", err)
	}
	if err := s.Sweep("acme", e2broot.Owner, e2broot.Form, func(digest string) bool { return digest == img.Digest }); err != nil {
		t.Error(err)
	}
	if list, err := s.Images("acme"); err != nil || len(list) != 1 || len(list[0].Forms) != 2 {
		t.Errorf("used: %+v, %v", list, err)
	}
	if err := s.Sweep("acme", e2broot.Owner, e2broot.Form, func(string) bool { return false }); err != nil {
		t.Error(err)
	}
	if list, err := s.Images("acme"); err != nil || len(list) != 1 || len(list[0].Forms) != 1 || list[0].Forms[0].Name != image.FormDir {
		t.Errorf("unused: %+v, %v", list, err)
	}
	if _, err := s.Remove(t.Context(), "acme", "own:1"); err != nil {
		t.Error(err)
	}
}

func TestAnImageWithoutBashIsRefusedAndTheFormLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	s, img := open(t, dir, map[string]string{"bin/sh": ""})
	if _, _, err := s.Tree(s.As(t.Context(), "acme"), img.Digest, e2broot.Form); !errors.Is(err, paddock.Unsupported) || !strings.Contains(err.Error(), "/bin/bash") {
		t.Errorf("%v", err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*", "tmp", "*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if list, err := s.Images("acme"); err != nil || len(list[0].Forms) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

// What a version before this store unpacked stays as long as something runs from it.
func TestOldImagesGoWhenNothingUsesThem(t *testing.T) {
	dir := t.TempDir()
	s, img := open(t, dir, map[string]string{"bin/bash": "#!"})
	tenants, err := filepath.Glob(filepath.Join(dir, "*", "images"))
	if err != nil || len(tenants) != 1 {
		t.Fatal(tenants, err)
	}
	old := filepath.Join(filepath.Dir(tenants[0]), strings.Repeat("ab", 32))
	root := filepath.Join(old, "root")
	if err := os.MkdirAll(root, 0o755); err != nil {
		t.Fatal(err)
	}
	digest := "sha256:" + filepath.Base(old)
	if got := store.DigestOf(dir, root); got != digest {
		t.Errorf("it is %q", got)
	}
	for _, used := range []bool{true, false} {
		if err := s.Sweep("acme", e2broot.Owner, e2broot.Form, func(d string) bool { return used && d == digest }); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(root); (err == nil) != used {
			t.Errorf("used %v: %v", used, err)
		}
	}
	if list, err := s.Images("acme"); err != nil || len(list) != 1 || list[0].Digest != img.Digest {
		t.Errorf("%+v, %v", list, err)
	}
}
