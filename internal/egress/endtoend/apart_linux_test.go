package endtoend

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// apartVariable marks a process that has its own network already.
const apartVariable = "PADDOCK_TRIAL_APART"

// docs is a network for documentation, which nobody uses. Root's servers are in it. Boxes
// cannot confuse it with the machine's loopback, because they have their own.
const docs = "198.51.100."

// apart runs these tests again in a network of their own, with their own addresses, and
// returns the status. For a user who may not make a network it returns false; then there is
// only loopback.
func apart() (int, bool) {
	if os.Geteuid() != 0 || os.Getenv(apartVariable) != "" {
		return 0, false
	}
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), apartVariable+"=yes")
	runtime.LockOSThread() // the namespace ends with this thread
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS}
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return max(exit.ExitCode(), 1), true
	case err != nil:
		fmt.Fprintln(os.Stderr, "start these tests in a network of their own:", err)
		return 1, true
	}
	return 0, true
}

// settle sets up the addresses of this process's network, and lets every user open the TUN
// device, as distributions do and this machine may not.
func settle() error {
	if os.Getenv(apartVariable) == "" || os.Geteuid() != 0 {
		return nil
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for _, lo := range []struct{ name, address, mask string }{{"lo", "127.0.0.1", "255.0.0.0"}, {"lo:1", docs + "1", "255.255.255.0"}} {
		for _, set := range []struct {
			what  uint
			value string
		}{{unix.SIOCSIFADDR, lo.address}, {unix.SIOCSIFNETMASK, lo.mask}} {
			r, err := unix.NewIfreq(lo.name)
			if err != nil {
				return err
			}
			a := netip.MustParseAddr(set.value).As4()
			if err := r.SetInet4Addr(a[:]); err != nil {
				return err
			}
			if err := unix.IoctlIfreq(fd, set.what, r); err != nil {
				return fmt.Errorf("%s of %s: %w", set.value, lo.name, err)
			}
		}
	}
	up, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	up.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, up); err != nil {
		return fmt.Errorf("lo: %w", err)
	}
	dir := filepath.Dir(tunPath)
	if err := unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "mode=755"); err != nil {
		return fmt.Errorf("mount %s: %w", dir, err)
	}
	if err := unix.Mknod(tunPath, unix.S_IFCHR|0o666, int(unix.Mkdev(10, 200))); err != nil {
		return fmt.Errorf("make %s: %w", tunPath, err)
	}
	return os.Chmod(tunPath, 0o666)
}

const tunPath = "/dev/net/tun"
