package drivertest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// topChange tries to change the directories in its arguments in ways that are not chmod(1)'s: through descriptors, by the
// newest call with an empty name, by access lists, by owners.
const topChange = `
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *e) for e in [(1, 0, 2**32-1), (4, 7, 2**32-1), (32, 7, 2**32-1)])
for top in sys.argv[1:]:
    fd, path = os.open(top, os.O_RDONLY | os.O_DIRECTORY), os.open(top, os.O_PATH)
    for attempt in [
        lambda: os.fchmod(fd, 0),
        lambda: os.chmod("/proc/self/fd/%d" % fd, 0),
        lambda: os.chmod("/proc/self/fd/%d" % path, 0),
        lambda: os.chmod("/proc/self/fd/%d/." % path, 0),
        lambda: libc.syscall(452, path, b"", 0, 0x1000),
        lambda: libc.syscall(452, fd, b".", 0, 0x100),
        lambda: os.chmod(".", 0o777, dir_fd=fd),
        lambda: libc.setxattr(top.encode(), b"system.posix_acl_access", acl, len(acl), 0),
        lambda: libc.fsetxattr(fd, b"system.posix_acl_default", acl, len(acl), 0),
        lambda: libc.removexattr(top.encode(), b"system.posix_acl_access"),
        lambda: os.chown(top, -1, os.getgid()),
        lambda: os.chown(top, 65534, 65534),
        lambda: os.fchown(fd, os.getuid(), os.getgid()),
        lambda: os.chown("/proc/self/fd/%d" % path, -1, os.getgid()),
        lambda: os.chown(".", -1, os.getgid(), dir_fd=fd, follow_symlinks=False),
    ]:
        try: attempt()
        except OSError: pass
`

// mountTop tries every way to the directory of a mount: by its path, from inside, through a descriptor, and where another
// mount shows the same directory.
func mountTop(t *testing.T, s *suite) {
	up := hostTree(t, map[string]string{"between/desk/sub/file": "deep"})
	desk := filepath.Join(up, "between/desk")
	hosts := []string{up, filepath.Join(up, "between"), desk}
	b := s.mounted(t, paddock.Mount{Source: desk, Target: "/mnt/desk", Write: true}, paddock.Mount{Source: up, Target: "/mnt/up", Write: true})
	python := b.sh(t, "command -v python3").exit.Code == 0
	for _, mode := range []fs.FileMode{0o755, 0o700, 0o770} {
		for _, dir := range hosts {
			if mode == 0o770 {
				foreignGroup(t, dir)
			}
			if err := os.Chmod(dir, mode); err != nil {
				t.Fatal(err)
			}
		}
		state := func() (all string) {
			for _, dir := range hosts {
				all += holderOf(t, dir)
			}
			return all
		}
		before := state()
		kept := func(what string) {
			t.Helper()
			if now := state(); now != before {
				t.Fatalf("after %s the directories of the host are %s, and were %s", what, now, before)
			}
		}
		for _, bits := range []string{"0", "a-x", "u-w", "u-r", "500", "777", "o+w", "1755", "2755", "4755"} {
			b.sh(t, `for top in /mnt/desk /mnt/desk/ . ./. sub/.. /mnt/up/between/desk /mnt/up/between /mnt/up /mnt/up/between/desk/../..; do chmod "$1" "$top"; done
cd sub && chmod "$1" ..`, bits)
			kept("chmod " + bits)
		}
		if python {
			b.must(t, `python3 -c "$1" /mnt/desk /mnt/up/between/desk /mnt/up/between /mnt/up`, topChange)
			kept("calls of a program")
		}
		for _, bits := range []fs.FileMode{0, 0o500, 0o777} {
			wantKind(t, "the caller's own change", b.FS().Chmod(bounded(t), "/mnt/desk", bits), paddock.Denied)
			kept("a change by the file interface")
		}
	}
	// A program that keeps secrets in its directory takes the rights of others away; and what is below is as ever.
	if err := errors.Join(os.Chmod(desk, 0o755), os.Chown(desk, -1, os.Getgid())); err != nil {
		t.Fatal(err)
	}
	b.must(t, "chmod 755 . && chmod 750 . && chmod go= . && chmod 500 sub && chmod 777 sub && chmod 600 sub/file")
	for name, want := range map[string]fs.FileMode{"": 0o700, "sub": 0o777, "sub/file": 0o600} {
		if fi, err := os.Stat(filepath.Join(desk, name)); err != nil || fi.Mode().Perm() != want {
			t.Errorf("desk/%s is %v, %v; want %v", name, fi, err, want)
		}
	}
	if r := b.sh(t, `chmod 0 /mnt/desk && [ "$(stat -c %a /mnt/desk)" = 0 ]`); r.exit.Code == 0 {
		t.Error(fmt.Sprint("a command sees a mode that the directory has not: ", r.out))
	}
}
