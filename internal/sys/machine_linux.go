package sys

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The functions of this file are for the first process of a machine, which has
// all of its kernel.

// MountAt mounts a file system, with attributes as for [NewMount] and options as for mount(2).
func MountAt(fstype, path string, attrs int, options string) error {
	// MOUNT_ATTR_RDONLY, _NOSUID, _NODEV and _NOEXEC are MS_ of the same names.
	if err := unix.Mount("none", path, fstype, uintptr(attrs), options); err != nil {
		return &os.PathError{Op: "mount " + fstype, Path: path, Err: err}
	}
	return nil
}

// RemountAt changes the options of the file system that is mounted at path. The attrs must be the
// present attributes of that mount.
func RemountAt(path string, attrs int, options string) error {
	if err := unix.Mount("none", path, "", unix.MS_REMOUNT|uintptr(attrs), options); err != nil {
		return &os.PathError{Op: "remount", Path: path, Err: err}
	}
	return nil
}

// LoadModule loads a kernel module. It is no error if the module is already loaded, or if there is
// no hardware for it.
func LoadModule(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	err = unix.FinitModule(int(f.Fd()), "", 0)
	if err != nil && err != unix.EEXIST && err != unix.ENODEV {
		return &os.PathError{Op: "load module", Path: path, Err: err}
	}
	return nil
}

// What random(4) is asked for.
const (
	addEntropy = 0x40085203 // RNDADDENTROPY
	reseed     = 0x5207     // RNDRESEEDCRNG
)

// AddEntropy adds random bytes to the kernel's generator, counts all their bits as entropy, and
// makes the generator use them at once.
func AddEntropy(data []byte) error {
	if len(data) == 0 || len(data) > 4096 {
		return unix.EINVAL
	}
	f, err := os.OpenFile("/dev/urandom", os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info := binary.NativeEndian.AppendUint32(nil, uint32(8*len(data)))
	info = binary.NativeEndian.AppendUint32(info, uint32(len(data)))
	info = append(info, data...)
	for len(info)%4 != 0 {
		info = append(info, 0)
	}
	fd := int(f.Fd())
	if err := ioctl(fd, addEntropy, unsafe.Pointer(&info[0])); err != nil {
		return fmt.Errorf("add entropy: %w", err)
	}
	if err := ioctl(fd, reseed, nil); err != nil {
		return fmt.Errorf("reseed: %w", err)
	}
	return nil
}

// SetClock sets the kernel's wall clock.
func SetClock(now time.Time) error {
	ts := unix.NsecToTimespec(now.UnixNano())
	if err := unix.ClockSettime(unix.CLOCK_REALTIME, &ts); err != nil {
		return fmt.Errorf("set the clock: %w", err)
	}
	return nil
}

// PowerOff turns the machine off. It returns only if that fails.
func PowerOff() error {
	return errors.Join(
		unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF),
		unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART),
	)
}

// Use configures an existing interface as l says, as Make does for a new one. The interface does
// not resolve addresses at its other end (no ARP).
func (l Link) Use() error {
	r, err := newRouter(l.Name)
	if err != nil {
		return err
	}
	defer unix.Close(r.socket)
	if err := r.ask(unix.RTM_NEWLINK, 0, r.info(unix.IFF_NOARP), nil); err != nil {
		return fmt.Errorf("link without addresses: %w", err)
	}
	return l.set(r)
}

// Down takes the interface down, which also removes its routes.
func (l Link) Down() error {
	r, err := newRouter(l.Name)
	if err != nil {
		return err
	}
	defer unix.Close(r.socket)
	m := r.info(unix.IFF_UP)
	clear(m[8:12]) // of what is to be changed, nothing is to be set
	if err := r.ask(unix.RTM_NEWLINK, 0, m, nil); err != nil {
		return fmt.Errorf("link down: %w", err)
	}
	return nil
}

// set brings an interface up, with its addresses and routes.
func (l Link) set(r *router) error {
	if err := r.up(l.MTU); err != nil {
		return err
	}
	for _, a := range l.Addresses {
		err := r.address(a)
		if err == nil || errors.Is(err, unix.EEXIST) { // as on a link that was down meanwhile
			err = r.route(a)
		}
		if a.Is6() && lacksIPv6(err) {
			continue
		}
		if err != nil {
			return err
		}
	}
	if err := r.unroute(); err != nil && !errors.Is(err, unix.ESRCH) && !lacksIPv6(err) {
		return err
	}
	return nil
}

// AgentCaps returns the capabilities that the agent needs in a machine: to make a control group, to
// answer name queries, to enter the box's tree as its user, to be out of the commands' reach, to start commands, and to
// give up the rest.
func AgentCaps() []uintptr {
	return []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SYS_CHROOT, unix.CAP_SETPCAP, unix.CAP_DAC_OVERRIDE, unix.CAP_CHOWN, unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_NET_BIND_SERVICE}
}

// KeepBounding removes all capabilities but these from the bounding set of the calling thread, and
// so of what it starts.
func KeepBounding(caps []uintptr) error {
	keep := uint64(0)
	for _, c := range caps {
		keep |= 1 << c
	}
	for c := uintptr(0); c < 64; c++ {
		if keep&(1<<c) != 0 {
			continue
		}
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if err == unix.EINVAL {
			return nil // this kernel knows no more
		}
		if err != nil {
			return fmt.Errorf("drop capability %d from the bounding set: %w", c, err)
		}
	}
	return nil
}

// OpenFUSE opens the device by which a FUSE server talks to the kernel. Reads and writes of it
// block a thread.
func OpenFUSE() (*os.File, error) {
	const path = "/dev/fuse"
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// Polled closes f, and returns a file in place of it for which the runtime's poller waits. So in a
// process with few threads, a goroutine that waits for the file does not block others.
func Polled(f *os.File) (*os.File, error) {
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("poll %s: %w", f.Name(), err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("poll %s: %w", f.Name(), err)
	}
	polled := os.NewFile(uintptr(fd), f.Name())
	if err := polled.SetDeadline(time.Time{}); err != nil { // which only what can be waited for has
		return nil, errors.Join(fmt.Errorf("poll %s: %w", f.Name(), err), polled.Close())
	}
	return polled, nil
}

// SyncFS writes the file system of path to its storage.
func SyncFS(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	if err := again(func() error { return unix.Syncfs(fd) }); err != nil {
		return &os.PathError{Op: "syncfs", Path: path, Err: err}
	}
	return nil
}

// MakeDevice makes a character device with exactly this mode, whatever the umask is.
func MakeDevice(path string, mode, major, minor uint32) error {
	if err := unix.Mknod(path, unix.S_IFCHR|mode, int(unix.Mkdev(major, minor))); err != nil {
		return &os.PathError{Op: "mknod", Path: path, Err: err}
	}
	return unix.Chmod(path, mode)
}
