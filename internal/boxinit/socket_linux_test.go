package boxinit

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sys"
)

// A guest may use up the broker's descriptors. The socket that it has bound must not stay where the host
// could connect to it.
func TestASocketThatCannotBeHiddenIsGone(t *testing.T) {
	path := t.TempDir()
	dir, err := sys.OpenDirAt(sys.AtCWD, path)
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close(dir)
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	if err := sys.BindUnix(fd, dir, "s"); err != nil {
		t.Fatal(err)
	}
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 0, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	err = new(broker).hide(fd, dir, "s", &place{dir: dir, base: "s"}, 0)
	if again := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was); again != nil {
		t.Fatal(again)
	}
	if !errors.Is(err, syscall.EMFILE) {
		t.Errorf("without descriptors: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(path, "s")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket's file: %v", err)
	}
}
