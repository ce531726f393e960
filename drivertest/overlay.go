package drivertest

import (
	"path/filepath"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func (s *suite) overlaid(t testing.TB, dir string) box {
	t.Helper()
	return s.mounted(t, paddock.Mount{Source: dir, Target: "/mnt/desk", Overlay: true})
}

func overlayKeeps(t *testing.T, s *suite) {
	dir := hostTree(t, map[string]string{"file": "content", "sub/deep": "deep", "mode": "x"})
	before := tree(t, dir)
	b := s.overlaid(t, dir)
	b.must(t, `echo more >> file; echo new > made; mkdir d; echo in > d/f; chmod 600 mode; ln -s file link; echo changed > sub/deep; touch -d @0 mode`)
	b.put(t, b.in("outside"), []byte("by the caller"), 0o600)
	if got := b.must(t, "cat file made d/f link sub/deep outside; stat -c %a mode; ls"); got !=
		"contentmore\nnew\nin\ncontentmore\nchanged\nby the caller600\nd\nfile\nlink\nmade\nmode\noutside\nsub\n" {
		t.Errorf("%q", got)
	}
	wantTree(t, dir, before)
	if got := s.overlaid(t, dir).must(t, "cat file sub/deep; ls"); got != "contentdeepfile\nmode\nsub\n" {
		t.Errorf("another sandbox sees %q", got)
	}
}

func overlayRemoves(t *testing.T, s *suite) {
	dir := hostTree(t, map[string]string{"gone": "1", "moved": "2", "replaced": "3", "dir/a": "4"})
	before := tree(t, dir)
	b := s.overlaid(t, dir)
	b.must(t, "rm gone; mv moved there; rm replaced; mkdir replaced; rm -r dir; mkdir dir; echo b > dir/b")
	if got := b.must(t, "ls; ls dir replaced; cat there; [ -e gone ] || echo no"); got != "dir\nreplaced\nthere\ndir:\nb\n\nreplaced:\n2no\n" {
		t.Errorf("%q", got)
	}
	wantTree(t, dir, before)
}

func overlayFile(t *testing.T, s *suite) {
	dir := hostTree(t, map[string]string{"file": "old", "hidden": "x"})
	before := tree(t, dir)
	b := s.own(t, func(spec *paddock.Spec) {
		spec.Mounts = append(spec.Mounts, paddock.Mount{Source: filepath.Join(dir, "file"), Target: "/mnt/f", Overlay: true})
	})
	if got := b.must(t, "ls /mnt; cat /mnt/f; echo new > /mnt/f; cat /mnt/f"); got != "f\noldnew\n" {
		t.Errorf("%q", got)
	}
	wantTree(t, dir, before)
}

func overlayTrees(t *testing.T, s *suite) {
	dir := hostTree(t, map[string]string{"a/b/c": "1", "a/b/d/e": "2", "z/y": "3"})
	before := tree(t, dir)
	b := s.overlaid(t, dir)
	b.must(t, "mv a moved; rm -rf z; cp -r moved copy; echo x >> moved/b/c")
	if got := b.must(t, "find . -type f | sort; cat moved/b/c moved/b/d/e copy/b/c"); got !=
		"./copy/b/c\n./copy/b/d/e\n./moved/b/c\n./moved/b/d/e\n1x\n21" {
		t.Errorf("%q", got)
	}
	wantTree(t, dir, before)
}
