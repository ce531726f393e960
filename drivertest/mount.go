package drivertest

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func mountPromises() []group {
	return []group{{can: []paddock.Capability{paddock.CanMount}, promises: []promise{
		{"a mount is read-only unless writing was asked for", mountReadOnly},
		{"a mount appears where it is asked for, and else where it is on the host", mountTarget},
		{"a single file can be mounted", mountFile},
		{"commands run in the first mount that is a directory", mountDir},
		{"a link in a mount does not lead to the host's files", mountLink},
		{"a mount that is written to and has an overlay is invalid", mountEither},
	}}, {can: []paddock.Capability{paddock.CanMountWrite}, promises: []promise{
		{"what is written in a writable mount reaches the host, and belongs to the caller", mountWrite},
		{"a single file can be mounted to be written", mountFileWrite},
		{"a mount within a mount keeps its own rights", mountNested},
		{"a sandbox has many mounts, each of which is written where it belongs", mountMany},
		{"no set-id file can be made in a mount", mountSetID},
		{"what is made in a directory that appears at the same moment is made, or the directory was missing", mountAppearing},
		{"the directory of a mount keeps its mode, owner and access list, but for rights of others that are taken away", mountTop},
		{"a FIFO in a mount joins a writer and a reader, whichever comes first", mountFIFO},
	}}, {can: []paddock.Capability{paddock.CanMountOverlay}, promises: []promise{
		{"changes in an overlay are seen inside, and never reach the host", overlayKeeps},
		{"what was removed, renamed or replaced in an overlay stays so", overlayRemoves},
		{"an overlay over a single file is written inside only", overlayFile},
		{"a directory of an overlay can be moved and removed with all that is in it", overlayTrees},
	}}}
}

// desk returns a mount that is writable inside, by Write or by Overlay, whichever the
// driver supports.
func (s *suite) desk(dir string) paddock.Mount {
	m := paddock.Mount{Source: dir, Target: "/mnt/desk"}
	if s.info.Can(paddock.CanMountWrite) {
		m.Write = true
	} else {
		m.Overlay = true
	}
	return m
}

func mountFIFO(t *testing.T, s *suite) {
	b := s.mounted(t, paddock.Mount{Source: hostTree(t, nil), Target: "/mnt/desk", Write: true})
	b.must(t, `cd /mnt/desk; mkfifo p
(echo early > p) & sleep 0.2; test "$(cat p)" = early; wait
for i in $(seq 20); do (echo $i > p) & test "$(cat p)" = $i; wait; done
(echo never > p) & sleep 0.2; kill $!; wait $! || test $? -gt 128
(cat p > out) & echo late >> p; wait; test "$(cat out)" = late`)
}

// mountAppearing makes a file in a directory that another process makes and removes again and again, as package managers do
// in threads. In a mount that is there, no try is denied.
func mountAppearing(t *testing.T, s *suite) {
	b := s.mounted(t, paddock.Mount{Source: hostTree(t, nil), Target: "/mnt/desk", Write: true})
	denied := b.must(t, `cd /mnt/desk
{ until test -e end; do mkdir n; rm -rf n; done; } 2>/dev/null &
for i in $(seq 2000); do { echo x >n/p; } 2>>tries; done
: >end; wait; grep -v -i -E 'no such|nonexistent|not found' tries || true`)
	if denied != "" {
		t.Errorf("%d of 2000 tries were answered otherwise, such as %q", strings.Count(denied, "\n"), strings.SplitN(denied, "\n", 2)[0])
	}
}

func mountMany(t *testing.T, s *suite) {
	var mounts []paddock.Mount
	script := "set -e"
	for i := range 24 {
		target := fmt.Sprintf("/mnt/many/%d/x", i)
		mounts = append(mounts, paddock.Mount{Source: hostTree(t, nil), Target: target, Write: true})
		script += fmt.Sprintf("; echo %d > %s/f", i, target)
	}
	b := s.mounted(t, mounts...)
	b.must(t, script)
	for i, m := range mounts {
		if got, err := os.ReadFile(filepath.Join(m.Source, "f")); string(got) != fmt.Sprintf("%d\n", i) {
			t.Errorf("%s: %q, %v", m.Target, got, err)
		}
	}
}

// hostTree makes files in a new directory on the host.
func hostTree(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// tree describes everything below a directory of the host.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	found := make(map[string]string)
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		what := fi.Mode().String()
		switch {
		case fi.Mode().IsRegular():
			data, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			what += " " + string(data)
		case fi.Mode().Type() == fs.ModeSymlink:
			target, err := os.Readlink(p)
			if err != nil {
				return err
			}
			what += " " + target
		}
		name, err := filepath.Rel(dir, p)
		found[name] = what
		return err
	})
	if err != nil {
		t.Fatalf("look at %s: %v", dir, err)
	}
	return found
}

// wantTree fails if a directory of the host has changed, except for the allowed names.
func wantTree(t testing.TB, dir string, before map[string]string, allowed ...string) {
	t.Helper()
	after := tree(t, dir)
	names := maps.Clone(before)
	maps.Copy(names, after)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if slices.Contains(allowed, name) || before[name] == after[name] {
			continue
		}
		t.Errorf("on the host %s was %q and is %q", name, clip(before[name]), clip(after[name]))
	}
}

// mounted makes a sandbox with mounts. Its commands run in the first mount.
func (s *suite) mounted(t testing.TB, mounts ...paddock.Mount) box {
	t.Helper()
	return s.policed(t, paddock.FilePolicy{}, mounts...)
}

func (s *suite) policed(t testing.TB, p paddock.FilePolicy, mounts ...paddock.Mount) box {
	t.Helper()
	b := s.own(t, func(spec *paddock.Spec) {
		spec.Mounts = append(spec.Mounts, mounts...)
		spec.Policy.Files = p
	})
	b.dir = mounts[0].Target
	if b.dir == "" {
		b.dir = mounts[0].Source
	}
	return b
}

func mountReadOnly(t *testing.T, s *suite) {
	dir := hostTree(t, map[string]string{"file": "content", "dir/file": "deep"})
	before := tree(t, dir)
	b := s.mounted(t, paddock.Mount{Source: dir, Target: "/mnt/desk"})
	if got := b.must(t, "cat file dir/file"); got != "contentdeep" {
		t.Errorf("%q", got)
	}
	for _, script := range []string{"echo x > file", "echo x >> file", "echo x > new", "rm file", "mv file moved", "mkdir new", "chmod 777 file", "ln file hard", "ln -s x soft", "touch file"} {
		if r := b.sh(t, script); r.exit.Code == 0 {
			t.Errorf("%s: %+v", script, r)
		}
	}
	wantKind(t, "write", b.write(bounded(t), b.in("file"), strings.NewReader("x"), paddock.CreateOptions{}), paddock.Denied)
	wantKind(t, "remove", b.FS().Remove(bounded(t), b.in("file"), false), paddock.Denied)
	wantKind(t, "mkdir", b.FS().Mkdir(bounded(t), b.in("new"), paddock.MkdirOptions{}), paddock.Denied)
	wantTree(t, dir, before)
}

func mountWrite(t *testing.T, s *suite) {
	dir := hostTree(t, map[string]string{"file": "content"})
	b := s.mounted(t, paddock.Mount{Source: dir, Target: "/mnt/desk", Write: true})
	b.must(t, "echo more >> file; echo new > inside; mkdir dir; echo deep > dir/file; chmod 755 inside")
	b.put(t, b.in("outside"), []byte("by the caller"), 0o600)
	for name, want := range map[string]string{"file": "contentmore\n", "inside": "new\n", "dir/file": "deep\n", "outside": "by the caller"} {
		full := filepath.Join(dir, name)
		got, err := os.ReadFile(full)
		if err != nil || string(got) != want {
			t.Errorf("on the host %s is %q, %v", name, got, err)
			continue
		}
		b.must(t, `cat "$1" >/dev/null`, name) // so that the sandbox has the old content cached
		if err := os.WriteFile(full, []byte("by the host"), 0o644); err != nil {
			t.Errorf("the caller cannot write %s: %v", name, err)
		}
		if owner, ok := ownerOf(t, full); ok && owner != os.Getuid() {
			t.Errorf("on the host %s belongs to %d, the caller is %d", name, owner, os.Getuid())
		}
		if got := b.must(t, `cat "$1"; [ -O "$1" ] && echo " and mine"`, name); got != "by the host and mine\n" {
			t.Errorf("inside %s is %q", name, got)
		}
	}
	b.must(t, "rm -r dir inside outside; mv file moved")
	if got := tree(t, dir); len(got) != 2 || !strings.HasSuffix(got["moved"], " by the host") {
		t.Errorf("%v", got)
	}
}

func mountTarget(t *testing.T, s *suite) {
	one, two, three := hostTree(t, map[string]string{"f": "1"}), hostTree(t, map[string]string{"f": "2"}), hostTree(t, map[string]string{"f": "3"})
	b := s.mounted(t, paddock.Mount{Source: one}, paddock.Mount{Source: two, Target: "/mnt/a/b c"},
		paddock.Mount{Source: three, Target: "/mnt/deep/not/there"})
	for name, want := range map[string]string{one + "/f": "1", "/mnt/a/b c/f": "2", "/mnt/deep/not/there/f": "3"} {
		if got := b.must(t, `cat "$1"`, name); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
	if b.exists(t, two) {
		t.Errorf("%s is there too", two)
	}
}

func mountFile(t *testing.T, s *suite) {
	dir := hostTree(t, map[string]string{"shown": "content", "hidden": "secret"})
	b := s.own(t, func(spec *paddock.Spec) {
		spec.Mounts = append(spec.Mounts, paddock.Mount{Source: filepath.Join(dir, "shown"), Target: "/mnt/shown"})
	})
	if got := b.must(t, "cat /mnt/shown; ls /mnt"); got != "contentshown\n" {
		t.Errorf("%q", got)
	}
	if r := b.sh(t, "echo x > /mnt/shown"); r.exit.Code == 0 {
		t.Error("the read-only file was written")
	}
	if got := tree(t, dir); !strings.HasSuffix(got["shown"], " content") {
		t.Errorf("%v", got)
	}
}

func mountFileWrite(t *testing.T, s *suite) {
	dir := hostTree(t, map[string]string{"written": "old", "hidden": "secret"})
	b := s.own(t, func(spec *paddock.Spec) {
		spec.Mounts = append(spec.Mounts, paddock.Mount{Source: filepath.Join(dir, "written"), Target: "/mnt/written", Write: true})
	})
	if got := b.must(t, "ls /mnt; echo new > /mnt/written"); got != "written\n" {
		t.Errorf("%q", got)
	}
	if got := tree(t, dir); !strings.HasSuffix(got["written"], " new\n") {
		t.Errorf("%v", got)
	}
}

func mountEither(t *testing.T, s *suite) {
	sb, err := s.driver.Create(bounded(t), s.spec(func(spec *paddock.Spec) {
		spec.Mounts = append(spec.Mounts, paddock.Mount{Source: t.TempDir(), Target: "/mnt/desk", Write: true, Overlay: true})
	}))
	if err == nil {
		s.removeAfter(t, sb)
	}
	wantKind(t, "both", err, paddock.Invalid)
}

func mountNested(t *testing.T, s *suite) {
	outer := hostTree(t, map[string]string{"f": "outer", "in/f": "covered", "rw/f": "covered"})
	ro, rw := hostTree(t, map[string]string{"f": "ro"}), hostTree(t, map[string]string{"f": "rw"})
	before, beforeRO := tree(t, outer), tree(t, ro)
	b := s.mounted(t, paddock.Mount{Source: outer, Target: "/mnt/w", Write: true},
		paddock.Mount{Source: ro, Target: "/mnt/w/in"}, paddock.Mount{Source: rw, Target: "/mnt/w/rw", Write: true})
	if got := b.must(t, "cat f in/f rw/f; echo new > rw/f"); got != "outerrorw" {
		t.Errorf("%q", got)
	}
	for _, script := range []string{"echo x > in/f", "rm in/f", "mv in out", "rm -r in"} {
		if r := b.sh(t, script); r.exit.Code == 0 {
			t.Errorf("%s worked", script)
		}
	}
	wantTree(t, outer, before)
	wantTree(t, ro, beforeRO)
	if got := tree(t, rw)["f"]; !strings.HasSuffix(got, " new\n") {
		t.Errorf("%q", got)
	}
}

func mountDir(t *testing.T, s *suite) {
	dir := hostTree(t, map[string]string{"file": "x"})
	b := s.own(t, func(spec *paddock.Spec) {
		spec.Mounts = append(spec.Mounts,
			paddock.Mount{Source: filepath.Join(dir, "file"), Target: "/mnt/file"}, paddock.Mount{Source: dir, Target: "/mnt/dir"})
	})
	if r := b.run(t, paddock.Cmd{Args: []string{"pwd"}}); r.out != "/mnt/dir\n" {
		t.Errorf("%+v", r)
	}
}

func mountLink(t *testing.T, s *suite) {
	secret, text := s.hostSecret(t)
	dir := hostTree(t, map[string]string{"file": "x"})
	for name, target := range map[string]string{"absolute": secret, "upward": "../../../../../../../.." + secret, "dir": filepath.Dir(secret)} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	b := s.mounted(t, s.desk(dir))
	for _, name := range []string{"absolute", "upward", "dir/secret"} {
		if got, err := b.read(bounded(t), b.in(name), paddock.OpenOptions{}); err == nil {
			t.Errorf("%s is readable: %q", name, got)
		}
		if r := b.sh(t, `cat "$1"`, name); r.exit.Code == 0 {
			t.Errorf("commands read %s: %q", name, r.out)
		}
		_ = b.write(bounded(t), b.in(name), strings.NewReader("planted"), paddock.CreateOptions{})
		b.sh(t, `echo planted > "$1"`, name)
	}
	if got, err := os.ReadFile(secret); err != nil || string(got) != text {
		t.Errorf("the host's file is %q, %v", got, err)
	}
}

func mountSetID(t *testing.T, s *suite) {
	dir := hostTree(t, nil)
	b := s.mounted(t, paddock.Mount{Source: dir, Target: "/mnt/desk", Write: true})
	b.must(t, `cp /bin/sh a 2>/dev/null || cp "$(command -v sh)" a`)
	for _, bits := range []string{"4755", "2755", "6755", "u+s", "g+s"} {
		b.sh(t, fmt.Sprintf("chmod %s a", bits))
	}
	b.sh(t, "umask 0; install -m 4755 a b; cp -p a c; mkdir -m 2777 d")
	for name, what := range tree(t, dir) {
		if mode, _, _ := strings.Cut(what, " "); strings.ContainsAny(mode, "ug") && !strings.HasPrefix(mode, "d") {
			t.Errorf("on the host %s is %s", name, mode)
		}
	}
}
