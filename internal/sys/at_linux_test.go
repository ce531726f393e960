package sys

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestNoLinkIsFollowedAtTheName(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(dir+"/real/d", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/real/f", []byte("keep"), 0o640); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"file": "real/f", "dir": "real", "none": "real/new"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	at, err := OpenDirAt(-1, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(at)
	open := func(name string, flags int) error {
		fd, err := OpenAt(at, name, flags, 0o600)
		if err == nil {
			syscall.Close(fd)
		}
		return err
	}
	opendir := func(name string) error {
		fd, err := OpenDirAt(at, name)
		if err == nil {
			syscall.Close(fd)
		}
		return err
	}
	for what, row := range map[string]struct {
		err  error
		want []error
	}{
		"read":      {open("file", syscall.O_RDONLY), []error{syscall.ELOOP}},
		"write":     {open("file", syscall.O_WRONLY|syscall.O_TRUNC), []error{syscall.ELOOP}},
		"create":    {open("none", syscall.O_WRONLY|syscall.O_CREAT), []error{syscall.ELOOP}},
		"directory": {opendir("dir"), []error{syscall.ENOTDIR, syscall.ELOOP}},
		"mkdir":     {MkdirAt(at, "none", 0o755), []error{syscall.EEXIST}},
		"symlink":   {SymlinkAt("x", at, "none"), []error{syscall.EEXIST}},
		"chmod":     {ChmodAt(at, "file", 0o777), []error{syscall.ELOOP}},
		"rmdir":     {RmdirAt(at, "dir"), []error{syscall.ENOTDIR}},
	} {
		ok := false
		for _, want := range row.want {
			ok = ok || row.err == want
		}
		if !ok {
			t.Errorf("%s: %v, want %v", what, row.err, row.want)
		}
	}
	st, err := StatAt(at, "file")
	if err != nil || st.Mode&syscall.S_IFMT != syscall.S_IFLNK {
		t.Errorf("stat: %o, %v", st.Mode, err)
	}
	if target, err := ReadLinkAt(at, "file"); err != nil || target != "real/f" {
		t.Errorf("readlink: %q, %v", target, err)
	}
	if err := RenameAt(at, "file", at, "moved"); err != nil {
		t.Error(err)
	}
	if err := UnlinkAt(at, "moved"); err != nil {
		t.Error(err)
	}
	data, err := os.ReadFile(dir + "/real/f")
	info, _ := os.Stat(dir + "/real/f")
	if err != nil || string(data) != "keep" || info.Mode() != 0o640 {
		t.Errorf("what the link points to is %q with mode %v, %v", data, info.Mode(), err)
	}
	if path, err := PathOf(at); err != nil || !strings.HasSuffix(path, filepath.Base(dir)) {
		t.Errorf("path %q, %v", path, err)
	}
}

func TestOpeningAFIFODoesNotWait(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(dir+"/fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	at, err := OpenDirAt(-1, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(at)
	fd, err := OpenAt(at, "fifo", syscall.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	syscall.Close(fd)
}
