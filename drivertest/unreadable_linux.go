package drivertest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// Unreadable tests a program that its user may execute, but not read. The file belongs to somebody else,
// so only root can run this test.
func Unreadable(t *testing.T, open func(state string) (paddock.Driver, error)) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make a file of somebody else")
	}
	s := newSuite(t, Harness{New: open, Base: paddock.Spec{AllowMissing: Weak(t, open)}})
	built, err := s.probe()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(built)
	if err != nil {
		t.Fatal(err)
	}
	dir := hostTree(t, map[string]string{"x": ""})
	program := filepath.Join(dir, "probe")
	if err := os.WriteFile(program, data, 0o711); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(program, nobodyInParticular, nobodyInParticular); err != nil {
		t.Fatal(err)
	}
	b := s.own(t, func(spec *paddock.Spec) { spec.Mounts = []paddock.Mount{s.desk(dir)} })
	if r := b.sh(t, "cat /mnt/desk/probe >/dev/null"); r.exit.Code == 0 {
		t.Fatal("the program can be read")
	}
	at := b.sockets(t)
	var out syncBuffer
	p := b.start(t, paddock.Cmd{Args: []string{"/mnt/desk/probe", "serve", at + "/a.sock", at + "/serving"}, Output: paddock.Output{Stdout: &out, Stderr: &out}})
	says(t, &out, "listening")
	if r := b.run(t, paddock.Cmd{Args: []string{b.helper(t), "ask", at + "/a.sock"}}); r.out != "a guest answers\n" {
		t.Errorf("%+v", r)
	}
	b.must(t, `rm "$1"`, at+"/serving")
	wait(t, p)
	for _, path := range []string{"/mnt/desk/b.sock", "/mnt/desk/.git"} {
		if r := b.run(t, paddock.Cmd{Args: []string{"/mnt/desk/probe", "serve", path, at + "/serving"}}); r.exit.Code == 0 || strings.Contains(r.out, "listening") {
			t.Errorf("%s: %+v", path, r)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("%v, %v", entries, err)
	}
}
