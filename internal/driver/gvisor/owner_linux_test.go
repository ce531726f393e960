package gvisor_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// owning tries to change the owner, flags and attributes of the file in its argument, and
// prints what works.
const owning = `
import ctypes, fcntl, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
name = sys.argv[1]
def call(f, *a):
    if f(*a) != 0: raise OSError(ctypes.get_errno(), "")
def flags(cmd, fmt, value):
    with open(name) as f: fcntl.ioctl(f, cmd, struct.pack(fmt, value))
def xattr(f, key, value): call(f, name.encode(), key, value, len(value), 0)
acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *e) for e in [(1, 7, 2**32-1), (2, 7, 1234), (4, 7, 2**32-1), (16, 7, 2**32-1), (32, 7, 2**32-1)])
for what, do in {
    "chown to root": lambda: os.chown(name, 0, -1),
    "chown to nobody": lambda: os.chown(name, 65534, 65534),
    "chown to another": lambda: os.lchown(name, 1234, -1),
    "chgrp to another": lambda: os.chown(name, -1, 1234),
    "chgrp to root": lambda: os.chown(name, -1, 0),
    "chattr append": lambda: flags(0x40086602, "l", 0x20),
    "chattr immutable": lambda: flags(0x40086602, "l", 0x10),
    "chattr 32 append": lambda: flags(0x40046602, "i", 0x20),
    "xflags": lambda: flags(0x401c5820, "28s", b"\x08" + b"\0" * 27),
    "project": lambda: flags(0x401c5820, "28s", b"\0" * 12 + b"\x07" + b"\0" * 15),
    "attribute": lambda: xattr(libc.setxattr, b"user.paddock", b"x"),
    "attribute of the link": lambda: xattr(libc.lsetxattr, b"user.paddock", b"x"),
    "access list": lambda: xattr(libc.setxattr, b"system.posix_acl_access", acl),
    "capability": lambda: xattr(libc.setxattr, b"security.capability", struct.pack("<5I", 0x02000001, 1, 0, 0, 0)),
    "overlay": lambda: xattr(libc.setxattr, b"trusted.overlay.opaque", b"y"),
}.items():
    try: do()
    except OSError as e: continue
    print(what)
`

// state is what the host sees of a file, except its times.
func state(t *testing.T, name string) string {
	t.Helper()
	st, err := os.Lstat(name)
	if err != nil {
		t.Fatal(err)
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		t.Fatal("no owner")
	}
	list := make([]byte, 1024)
	n, err := syscall.Listxattr(name, list)
	if err != nil && !errors.Is(err, syscall.ENOTSUP) {
		t.Fatal(err)
	}
	return fmt.Sprintf("%v %d %d %q", st.Mode(), sys.Uid, sys.Gid, list[:max(n, 0)])
}

// A command changes content, names, modes and times of files that it may write, and nothing
// else that the host would see. Of a protected file it changes nothing, not even the times,
// which the jail permits.
func TestACommandDoesNotChangeWhoOwnsAFile(t *testing.T) {
	d, _ := driver(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"plain", ".git/config", ".git/hooks/pre-commit"}
	for _, name := range names {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte("host"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	sb := create(t, d, paddock.Spec{Ephemeral: true, Mounts: []paddock.Mount{{Source: dir, Target: "/w", Write: true}}})
	for _, name := range names {
		before := state(t, filepath.Join(dir, name))
		var out bytes.Buffer
		p, err := sb.Start(t.Context(), paddock.Cmd{Args: []string{"python3", "-c", owning, "/w/" + name}, Output: paddock.Output{Stdout: &out, Stderr: &out}})
		if err != nil {
			t.Fatal(err)
		}
		if exit, err := p.Wait(t.Context()); err != nil || exit.Code != 0 {
			t.Fatalf("%+v, %v: %s", exit, err, &out)
		}
		if after := state(t, filepath.Join(dir, name)); after != before {
			t.Errorf("%s: %s, it was %s; what worked: %s", name, after, before, strings.ReplaceAll(out.String(), "\n", ", "))
		}
		// A command must not get a false success either.
		if out.Len() > 0 {
			t.Errorf("%s: %s", name, strings.ReplaceAll(out.String(), "\n", ", "))
		}
	}
	config := filepath.Join(dir, ".git/config")
	was, err := os.Lstat(config)
	if err != nil {
		t.Fatal(err)
	}
	run(t, sb, `cd /w && chmod 600 plain && touch -d @1000 plain && ! python3 -c 'import os; os.utime(".git/config", (1, 1))' && ! touch .git/config; chmod 777 .git/config; true`)
	if st, err := os.Lstat(filepath.Join(dir, "plain")); err != nil || st.Mode() != 0o600 || !st.ModTime().Equal(time.Unix(1000, 0)) {
		t.Errorf("plain: %v, %v", st, err)
	}
	if st, err := os.Lstat(config); err != nil || st.Mode() != was.Mode() || !st.ModTime().Equal(was.ModTime()) {
		t.Errorf("%v, %v, it was %v", st, err, was)
	}
}
