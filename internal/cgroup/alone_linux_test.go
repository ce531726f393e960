package cgroup

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The test makes a group like a container's, with other processes in it.
func TestTheRemedyInAContainerLeavesPaddockAloneInItsGroup(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount control groups")
	}
	name := fmt.Sprintf("paddock-test-alone-%d", os.Getpid())
	dir := t.TempDir()
	outer := `set -e
mount --make-rprivate /
mount -t cgroup2 none "$1"
mkdir "$1/$2"
echo $$ > "$1/$2/cgroup.procs"
unshare --mount --pid --fork --cgroup sh "$3"
echo $$ > "$1/cgroup.procs"
rmdir "$1/$2/rest" "$1/$2"`
	inner := `set -e
mount -t proc proc /proc
umount -l /sys/fs/cgroup 2> /dev/null || true
mount -t cgroup2 none /sys/fs/cgroup
sleep 1000 & beside=$!
` + alone + `exec grep ^0:: /proc/self/cgroup'
echo beside
grep ^0:: /proc/$beside/cgroup
{ kill -9 $beside; wait $beside; } 2> /dev/null || true`
	script := filepath.Join(dir, "inner")
	mounted := filepath.Join(dir, "v2")
	if err := errors.Join(os.WriteFile(script, []byte(inner), 0o600), os.Mkdir(mounted, 0o700)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", outer, "sh", mounted, name, script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "mount: ") {
		t.Skipf("control groups of version 2 cannot be mounted: %s", out)
	}
	if want := "0::/\nbeside\n0::/rest\n"; err != nil || string(out) != want {
		t.Errorf("%q, want %q; %v", out, want, err)
	}
}
