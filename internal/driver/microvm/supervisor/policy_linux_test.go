package supervisor

import (
	"os"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sys"
)

func TestQEMUGetsFilesByNameAndChangesNone(t *testing.T) {
	f := os.NewFile(^uintptr(0), "a file")
	p := &policy{files: map[string]*os.File{memoryPath: f, kvmPath: f}}
	for _, c := range []struct {
		path  string
		flags int
		want  verdict
	}{
		{memoryPath, syscall.O_RDWR | syscall.O_CLOEXEC, verdict{file: f}},
		{kvmPath, syscall.O_RDWR, verdict{file: f}},
		{memoryPath + "/", syscall.O_RDWR, verdict{}},
		{"/dev//kvm", syscall.O_RDWR, verdict{}},
		{"/dev/fuse", syscall.O_RDWR, verdict{}},
		{"", syscall.O_RDWR, verdict{}},
		{"/usr/share/qemu/qboot.rom", syscall.O_RDONLY | syscall.O_CLOEXEC, verdict{pass: true}},
		{"/usr/share/qemu/qboot.rom", syscall.O_RDONLY | syscall.O_TRUNC, verdict{}},
		{"/usr/share/qemu/new", syscall.O_RDONLY | syscall.O_CREAT, verdict{}},
		{"/usr", sys.OpenTmpfile | syscall.O_RDWR, verdict{}},
		{"/usr", syscall.O_WRONLY, verdict{}},
	} {
		if got := p.open(c.path, c.flags); got != c.want {
			t.Errorf("%s with %#x: %+v", c.path, c.flags, got)
		}
	}
}
