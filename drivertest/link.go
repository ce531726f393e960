package drivertest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func linkPromises() []group {
	return []group{{promises: []promise{
		{"a link means what it means inside", linksInside},
		{"a link that leads nowhere, or round, is told and does not hang", linksNowhere},
	}}, {walls: []paddock.Control{paddock.ControlMountNS}, promises: []promise{
		{"a link that points out of the sandbox never reaches the host's files", linksOutside},
	}}}
}

func linksInside(t *testing.T, s *suite) {
	b := s.box(t)
	b.must(t, "mkdir dir; echo content > dir/file")
	for name, target := range map[string]string{
		"relative": "dir/file",
		"absolute": b.in("dir/file"),
		"upward":   "dir/../dir/file",
	} {
		if err := b.FS().Symlink(bounded(t), target, b.in(name)); err != nil {
			t.Fatalf("symlink: %v", err)
		}
		if got := b.must(t, `readlink "$1"; cat "$1"`, name); got != target+"\ncontent\n" {
			t.Errorf("inside, %s is %q", name, got)
		}
		if got := string(b.get(t, b.in(name))); got != "content\n" {
			t.Errorf("%s is %q", name, got)
		}
		b.put(t, b.in(name), []byte("content\n"), 0)
		if fi := b.stat(t, b.in(name)); fi.Link != target {
			t.Errorf("writing through %s made it %+v", name, fi)
		}
	}
	wantKind(t, "a link over what is there", b.FS().Symlink(bounded(t), "x", b.in("dir")), paddock.Exists)
	// The root directory has no parent, so a link to /etc leads to the sandbox's own.
	b.must(t, "ln -s /etc/passwd root; ln -s ../../../../../../../../../../etc/passwd up")
	want := b.must(t, "cat /etc/passwd")
	for _, name := range []string{"root", "up"} {
		if got := string(b.get(t, b.in(name))); got != want {
			t.Errorf("through %s: %q, commands see %q", name, clip(got), clip(want))
		}
	}
}

func linksNowhere(t *testing.T, s *suite) {
	b := s.box(t)
	b.must(t, "ln -s missing nowhere; ln -s b a; ln -s a b; ln -s . here")
	_, err := b.read(bounded(t), b.in("nowhere"), paddock.OpenOptions{})
	wantKind(t, "nowhere", err, paddock.NotFound)
	for _, name := range []string{"a", "a/x"} {
		_, err = b.read(bounded(t), b.in(name), paddock.OpenOptions{})
		wantKind(t, name, err, paddock.Invalid, paddock.NotFound)
	}
	_, err = b.read(bounded(t), b.dir+strings.Repeat("/here", 60)+"/x", paddock.OpenOptions{})
	wantKind(t, "a chain of sixty links", err, paddock.Invalid, paddock.NotFound)
}

// hostSecret makes a file on the host that no sandbox may see.
func (s *suite) hostSecret(t testing.TB) (name, text string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "dtsecret")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	name, text = filepath.Join(dir, "secret"), s.name+"-host-secret"
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return name, text
}

func linksOutside(t *testing.T, s *suite) {
	b := s.box(t)
	secret, text := s.hostSecret(t)
	for _, target := range []string{
		secret,
		"../../../../../../../../../../.." + secret,
		"/proc/self/root" + secret,
		"/proc/1/root" + secret,
		"/proc/self/cwd/../../../../../../../.." + secret,
		"/proc/thread-self/root/../.." + secret,
	} {
		link := b.in("link")
		if err := b.FS().Remove(bounded(t), link, true); err != nil {
			t.Fatal(err)
		}
		if err := b.FS().Symlink(bounded(t), target, link); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{link, target} {
			if !strings.HasPrefix(name, "/") {
				continue
			}
			got, err := b.read(bounded(t), name, paddock.OpenOptions{})
			if err == nil || strings.Contains(string(got), text) {
				t.Errorf("%s is readable: %q", name, got)
			}
			// Writing may fail or make a file inside. It must never reach the host.
			_ = b.write(bounded(t), name, strings.NewReader("planted"), paddock.CreateOptions{})
			_ = b.FS().Chmod(bounded(t), name, 0o600)
			if name != link {
				_ = b.FS().Remove(bounded(t), name, false)
			}
		}
		if r := b.sh(t, `cat "$1"`, link); strings.Contains(r.out, text) {
			t.Errorf("commands read %s", target)
		}
		if now, err := os.ReadFile(secret); err != nil || string(now) != text {
			t.Fatalf("%s changed the host's file: %q, %v", target, now, err)
		}
		if fi, err := os.Stat(secret); err != nil || fi.Mode().Perm() == 0o600 {
			t.Fatalf("%s changed the host's file: %v, %v", target, fi, err)
		}
	}
	_, err := b.FS().Stat(bounded(t), secret)
	if !errors.Is(err, paddock.NotFound) && !errors.Is(err, paddock.Denied) {
		t.Errorf("stat of the host's file: %v", err)
	}
}
