package drivertest

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

func socketPromises() []group {
	programs := []paddock.Capability{paddock.CanPrograms}
	mounts := []paddock.Capability{paddock.CanPrograms, paddock.CanMountWrite}
	return []group{{can: programs, promises: []promise{
		{"a Unix socket has the address that its program gave it", socketAddress},
	}}, {can: mounts, promises: []promise{
		{"a Unix socket can be made in a mount, and only the sandbox reaches it", socketMount},
		{"Unix sockets can be bound in a mount while another thread listens on them", socketHasty},
		{"no Unix socket can be made at a protected name, or in a mount that is read-only", socketProtected},
		{"a Unix socket that is bound through moving directories stays in the sandbox's own", socketRace},
		{"datagrams of a socket pair reach the other end, and no socket of the host by name", socketPair},
		{"a process that others may not look into works with files and sockets as any other", socketUndumpable},
	}}}
}

// sockets is a short directory of the sandbox's own, because paths of sockets are short.
func (b box) sockets(t testing.TB) string {
	t.Helper()
	return strings.TrimSpace(b.must(t, "mktemp -d /tmp/dtXXXXXX"))
}

// wantAddresses checks what both sides of a connection see.
func (b box) wantAddresses(t testing.TB, dir, server, client string) {
	t.Helper()
	r := b.run(t, paddock.Cmd{Args: []string{b.helper(t), "addresses", server, client}, Dir: dir})
	want := fmt.Sprintf("listens at %s\nis at %s\nconnected to %[1]s\naccepted %[2]s\n", server, client)
	if r.exit.Code != 0 || r.out != want {
		t.Errorf("addresses %s %s in %s: %+v, and not %q", server, client, dir, r, want)
	}
}

func socketAddress(t *testing.T, s *suite) {
	b := s.own(t)
	dir := b.sockets(t)
	b.wantAddresses(t, dir, dir+"/a.sock", dir+"/b.sock")
	b.wantAddresses(t, dir, "c.sock", "./d.sock")
	b.must(t, `mkdir "$1/x" && ln -s x "$1/y"`, dir)
	b.wantAddresses(t, dir, "y/../e.sock", dir+"/y/f.sock")
	// Paths that lead nowhere, and that are taken.
	for _, path := range []string{dir + "/a.sock", dir + "/none/a.sock", dir + "/x"} {
		if r := b.run(t, paddock.Cmd{Args: []string{b.helper(t), "addresses", path, dir + "/g.sock"}}); r.exit.Code == 0 {
			t.Errorf("a socket at %s: %+v", path, r)
		}
	}
	if mode := b.must(t, `umask 027; "$1" addresses "$2/h.sock" "$2/i.sock" >/dev/null; stat -c %a "$2/h.sock"`, b.helper(t), dir); mode != "750\n" {
		t.Errorf("a socket has the mode %q", mode)
	}
}

func socketMount(t *testing.T, s *suite) {
	dir, err := os.MkdirTemp("/var/tmp", "dt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	const inside = "/mnt/desk"
	host, err := net.Listen("unix", filepath.Join(dir, "host.sock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = host.Close() })
	heard := make(chan struct{}, 10)
	go func() {
		for {
			c, err := host.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "the host answers\n")
			_ = c.Close()
			heard <- struct{}{}
		}
	}()
	b := s.own(t, func(spec *paddock.Spec) { spec.Mounts = []paddock.Mount{s.desk(dir)} })
	b.wantAddresses(t, inside, inside+"/a.sock", "b.sock")
	var out syncBuffer
	p := b.start(t, paddock.Cmd{Args: []string{b.helper(t), "serve", inside + "/dev.sock", b.in("serving")}, Output: paddock.Output{Stdout: &out, Stderr: &out}})
	says(t, &out, "listening")
	// As programs wait for a server.
	b.must(t, `cd "$1" && test -S dev.sock && ls | grep -q '^dev.sock$' && chmod 600 dev.sock`, inside)
	for _, step := range []string{"true", "mv dev.sock moved.sock", "mv moved.sock dev.sock"} {
		name := "dev.sock"
		if strings.HasSuffix(step, " moved.sock") {
			name = "moved.sock"
		}
		r := b.run(t, paddock.Cmd{Args: []string{b.s.h.Shell, "-c", step + ` && exec "$0" ask ` + name, b.helper(t)}, Dir: inside})
		if r.out != "a guest answers\n" {
			t.Errorf("%s: %+v", step, r)
		}
		if c, err := net.DialTimeout("unix", filepath.Join(dir, name), time.Second); err == nil {
			_ = c.Close()
			t.Errorf("%s: a program of the host has connected to the sandbox", step)
		}
	}
	if r := b.run(t, paddock.Cmd{Args: []string{b.helper(t), "ask", inside + "/host.sock"}}); r.exit.Code == 0 || r.out != "" {
		t.Errorf("a socket of the host: %+v", r)
	}
	b.must(t, `rm "$1/dev.sock"`, inside)
	if r := b.run(t, paddock.Cmd{Args: []string{b.helper(t), "ask", inside + "/dev.sock"}}); r.exit.Code == 0 {
		t.Errorf("a socket that was removed: %+v", r)
	}
	b.must(t, `rm "$1"`, b.in("serving"))
	wait(t, p)
	select {
	case <-heard:
		t.Error("the socket of a host program was reached")
	default:
	}
}

// socketHasty has a command listen on Unix sockets from another thread while it binds them in a mount. The driver must
// not take such a socket for one of the host, where somebody listens already.
func socketHasty(t *testing.T, s *suite) {
	dir := hostTree(t, map[string]string{"x": ""})
	b := s.own(t, func(spec *paddock.Spec) { spec.Mounts = []paddock.Mount{s.desk(dir)} })
	after := b.in("after")
	b.run(t, paddock.Cmd{Args: []string{b.helper(t), "hasty", "/mnt/desk/h.sock", after}})
	if !b.exists(t, after) {
		t.Error("the command did not make its sockets")
	}
}

func socketProtected(t *testing.T, s *suite) {
	dir, shown := repository(t), hostTree(t, map[string]string{"x": ""})
	before, also := tree(t, dir), tree(t, shown)
	b := s.own(t, func(spec *paddock.Spec) {
		spec.Mounts = []paddock.Mount{{Source: dir, Target: "/mnt/p", Write: true}, {Source: shown, Target: "/mnt/r"}}
	})
	for _, path := range []string{"/mnt/p/.git/hooks/pre-push", "/mnt/p/.git/hooks/a/b", "/mnt/p/.mcp.json", "/mnt/p/.git/config", "/mnt/r/a.sock", "/mnt/p/new/.git"} {
		if r := b.run(t, paddock.Cmd{Args: []string{b.helper(t), "addresses", path, "/tmp/dt.sock"}}); strings.Contains(r.out, "listens") && s.strictSockets() {
			t.Errorf("a socket at %s: %+v", path, r)
		}
	}
	wantTree(t, dir, before)
	wantTree(t, shown, also)
}

// strictSockets reports whether a socket that a program makes in a mount has a file on the host. Then it
// cannot be made at a protected name. A kernel of the sandbox's own may keep the name to itself.
func (s *suite) strictSockets() bool { return s.info.Tier == paddock.Jail }

func socketRace(t *testing.T, s *suite) {
	dir := repository(t)
	before := tree(t, dir)
	b := s.own(t, func(spec *paddock.Spec) { spec.Mounts = []paddock.Mount{{Source: dir, Target: "/mnt/w", Write: true}} })
	own := b.sockets(t)
	for _, at := range []string{own, "/mnt/w"} {
		b.must(t, `mkdir "$1/here" && ln -s /mnt/w/.git/hooks "$1/there"`, at)
		r := b.run(t, paddock.Cmd{Args: []string{b.helper(t), "race", at}})
		if r.exit.Code != 0 || !strings.HasPrefix(r.out, "bound ") || at == own && r.out == "bound 0\n" {
			t.Errorf("race in %s: %+v", at, r)
		}
		b.must(t, `rm -rf "$1/here" "$1/there"`, at)
	}
	wantTree(t, dir, before)
}

func socketPair(t *testing.T, s *suite) {
	dir, err := os.MkdirTemp("/var/tmp", "dt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	host, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "host.sock"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = host.Close() })
	b := s.own(t, func(spec *paddock.Spec) { spec.Mounts = []paddock.Mount{s.desk(dir)} })
	r := b.run(t, paddock.Cmd{Args: []string{b.helper(t), "pair", "/mnt/desk/host.sock"}})
	if want := "got \"one\"\ngot \"two and more\"\ngot \"three\"\ngot \"back\"\n"; r.exit.Code != 0 || r.out != want {
		t.Errorf("%+v, and not %q", r, want)
	}
	_ = host.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if n, err := host.Read(make([]byte, 64)); err == nil {
		t.Errorf("a datagram of %d bytes has reached a socket of the host", n)
	}
}

func socketUndumpable(t *testing.T, s *suite) {
	dir := hostTree(t, map[string]string{"x": ""})
	b := s.own(t, func(spec *paddock.Spec) { spec.Mounts = []paddock.Mount{s.desk(dir)} })
	for _, at := range []string{"/mnt/desk", b.sockets(t)} {
		r := b.run(t, paddock.Cmd{Args: []string{b.helper(t), "undumpable", at, b.sockets(t)}})
		if r.exit.Code != 0 {
			t.Errorf("in %s: %s", at, r.err)
		}
	}
}
