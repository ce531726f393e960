package drivertest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// An ImageConfig is what the configuration of an image says.
type ImageConfig struct {
	Env  []string // NAME=value
	Dir  string
	User string
}

func imagePromises() []group {
	return []group{{can: []paddock.Capability{paddock.CanRootImage}, promises: []promise{
		{"an image as root is seen whole and never written", rootImage},
		{"what the configuration of an image says applies where the spec says nothing", imageConfig},
		{"an image that is not there, or that a reference names, is refused in words", noImage},
		{"a configuration that is wrong is refused in words", badImageConfig},
		{"no link of an image makes a file in a mount", imageLinks},
	}}}
}

// imageTree makes a file tree with the probe and the files that define a user. It needs no file of the host.
func imageTree(t *testing.T, s *suite) string {
	t.Helper()
	built, err := s.probe()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(built)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, d := range []string{"bin", "etc", "opt/work"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"bin/probe":       string(data),
		"etc/passwd":      "root:x:0:0:root:/root:/bin/sh\nfarmer:x:1234:1234::/home/farmer:/bin/sh\nmiller:x:1235:1235::/home/miller:/bin/sh\n",
		"etc/group":       "root:x:0:\nfarmer:x:1234:\nmiller:x:1235:\n",
		"etc/marker":      "marker",
		"opt/work/marker": "work",
		"var/lib/marker":  "var",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/run", filepath.Join(dir, "var/run")); err != nil { // as distributions have it
		t.Fatal(err)
	}
	return dir
}

func (s *suite) image(t *testing.T, tree string, c ImageConfig) string {
	t.Helper()
	if s.h.Image == nil {
		t.Fatal("the driver can begin with images, and Harness.Image is not set")
	}
	return s.h.Image(t, tree, c)
}

func (s *suite) ofImage(t *testing.T, digest string, change func(*paddock.Spec)) box {
	t.Helper()
	sb, err := s.driver.Create(bounded(t), s.spec(func(spec *paddock.Spec) {
		spec.Root = paddock.Root{Kind: paddock.RootImage, Image: digest}
		spec.User = ""
		if change != nil {
			change(spec)
		}
	}))
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	s.removeAfter(t, sb)
	return box{Sandbox: sb, s: s}
}

func rootImage(t *testing.T, s *suite) {
	dir := imageTree(t, s)
	before := tree(t, dir)
	b := s.ofImage(t, s.image(t, dir, ImageConfig{}), func(spec *paddock.Spec) { spec.User = "farmer" })
	if got := string(b.get(t, "/etc/marker")); got != "marker" {
		t.Errorf("%q", got)
	}
	for _, program := range []string{"/bin/probe", "probe"} { // by the tier's own PATH too
		if r := b.run(t, paddock.Cmd{Args: []string{program, "hello"}}); r.out != "hello\n" {
			t.Errorf("%s: %+v", program, r)
		}
	}
	if st, err := b.Status(bounded(t)); err != nil || st.User != "farmer" {
		t.Errorf("%+v, %v", st, err)
	}
	b.put(t, "/home/farmer/new", []byte("x"), 0)
	b.put(t, "/tmp/new", []byte("x"), 0)
	_ = b.write(bounded(t), "/etc/marker", strings.NewReader("changed"), paddock.CreateOptions{})
	wantTree(t, dir, before)
}

func imageConfig(t *testing.T, s *suite) {
	digest := s.image(t, imageTree(t, s), ImageConfig{Env: []string{"ONE=image", "TWO=image", "PATH=/bin"}, Dir: "/opt/work", User: "farmer:farmer"})
	b := s.ofImage(t, digest, func(spec *paddock.Spec) { spec.Env = map[string]string{"TWO": "spec"} })
	if st, err := b.Status(bounded(t)); err != nil || st.User != "farmer" || st.Dir != "/opt/work" {
		t.Errorf("%+v, %v", st, err)
	}
	if r := b.run(t, paddock.Cmd{Args: []string{"probe", "env", "ONE", "TWO"}}); r.out != "image\nspec\n" {
		t.Errorf("the variables are %+v", r)
	}
	other := s.ofImage(t, digest, func(spec *paddock.Spec) { spec.User, spec.Dir = "miller", "/etc" })
	if st, err := other.Status(bounded(t)); err != nil || st.User != "miller" || st.Dir != "/etc" {
		t.Errorf("%+v, %v", st, err)
	}
}

func noImage(t *testing.T, s *suite) {
	for _, c := range []struct {
		what, image string
		kinds       []error
	}{
		{"an image that is not there", "sha256:" + strings.Repeat("0123456789abcdef", 4), []error{paddock.NotFound}},
		{"a reference", "python:3.13", []error{paddock.Invalid}},
		{"nothing", "", []error{paddock.Invalid}},
		{"a path", "sha256:../../../../../../etc", []error{paddock.Invalid}},
		{"another algorithm", "md5:" + strings.Repeat("0", 32), []error{paddock.Invalid}},
	} {
		sb, err := s.driver.Create(bounded(t), s.spec(func(spec *paddock.Spec) {
			spec.Root = paddock.Root{Kind: paddock.RootImage, Image: c.image}
		}))
		if err == nil {
			s.removeAfter(t, sb)
		}
		if !isOneOf(err, c.kinds) || err != nil && c.image != "" && !strings.Contains(err.Error(), c.image) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}

func isOneOf(err error, kinds []error) bool {
	for _, k := range kinds {
		if errors.Is(err, k) {
			return true
		}
	}
	return false
}

func badImageConfig(t *testing.T, s *suite) {
	dir := imageTree(t, s)
	many := make([]string, 5000)
	for i := range many {
		many[i] = "V" + strings.Repeat("x", i%50) + "=1"
	}
	for what, c := range map[string]ImageConfig{
		"no variable":              {Env: []string{"=x"}},
		"no value":                 {Env: []string{"NAME"}},
		"NUL in a variable":        {Env: []string{"NAME=a\x00b"}},
		"too many variables":       {Env: many},
		"too large":                {Env: []string{"NAME=" + strings.Repeat("x", 1<<20)}},
		"a relative directory":     {Dir: "../../etc"},
		"NUL in the directory":     {Dir: "/etc\x00"},
		"a user that is not there": {User: "nobody-of-this-name"},
		"a user that is a path":    {User: "../root"},
	} {
		digest := s.image(t, dir, c)
		sb, err := s.driver.Create(bounded(t), s.spec(func(spec *paddock.Spec) {
			spec.Root, spec.User = paddock.Root{Kind: paddock.RootImage, Image: digest}, ""
		}))
		if err == nil {
			s.removeAfter(t, sb)
		}
		if !errors.Is(err, paddock.Invalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// imageLinks begins with images whose files, which a sandbox replaces by its own, are links into the workspace.
func imageLinks(t *testing.T, s *suite) {
	work := t.TempDir()
	if err := os.WriteFile(filepath.Join(work, "kept"), []byte("kept"), 0o644); err != nil {
		t.Fatal(err)
	}
	before := tree(t, work)
	for _, name := range []string{"etc/resolv.conf", "etc/hosts", "etc/nsswitch.conf"} {
		dir := imageTree(t, s)
		inside := filepath.Join(dir, "work", ".git/hooks/pre-commit")
		if err := os.MkdirAll(filepath.Dir(inside), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.WriteFile(inside, []byte("hosts: files\n"), 0o755), os.Symlink("/work/.git/hooks/pre-commit", filepath.Join(dir, name))); err != nil {
			t.Fatal(err)
		}
		sb, err := s.driver.Create(bounded(t), s.spec(func(spec *paddock.Spec) {
			spec.Root, spec.User = paddock.Root{Kind: paddock.RootImage, Image: s.image(t, dir, ImageConfig{})}, ""
			spec.Mounts = []paddock.Mount{{Source: work, Target: "/work", Write: true}}
		}))
		if err == nil {
			s.removeAfter(t, sb)
		} else if !errors.Is(err, paddock.Invalid) || !strings.Contains(err.Error(), "/work") {
			t.Errorf("%s: %v", name, err)
		}
		wantTree(t, work, before)
	}
}
