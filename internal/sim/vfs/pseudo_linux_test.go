package vfs_test

import (
	"os"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// A directory that is mounted may hold file systems whose files are the
// kernel's words about the process that reads them: its memory, its
// environment, its descriptors.
func TestFilesOfTheHostsKernelAreNotShown(t *testing.T) {
	v := over(t, "/", vfs.MountOptions{ReadOnly: true})
	expect(t, "a file of the host", second(v.Stat("/w/etc/passwd")), error(nil))
	for _, name := range []string{"/proc/self/environ", "/proc/self/maps", "/proc/version", "/proc/self/root/etc/passwd", "/proc/kmsg", "/sys/kernel/notes"} {
		if _, err := os.Lstat(name); err != nil {
			continue
		}
		if _, err := v.Open("/w"+name, linux.O_RDONLY, 0); err == nil {
			t.Errorf("%s was opened", name)
		}
	}
	for _, name := range []string{"/proc", "/sys"} {
		if _, err := v.ReadDir("/w" + name); err != linux.EACCES {
			t.Errorf("%s is listed: %v", name, err)
		}
		r, err := os.OpenRoot(name)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if _, err := vfs.HostDir(r); err != linux.EACCES {
			t.Errorf("%s is mounted: %v", name, err)
		}
	}
	r, err := os.OpenRoot("/proc")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := vfs.HostFile(r, "version"); err != linux.EACCES {
		t.Errorf("a file of /proc is mounted: %v", err)
	}
}
