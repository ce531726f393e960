package box

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/hostroot"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// openForeign opens files that the box's user cannot reach. For a root caller those are the
// spec's mounts. Their owners are mapped, so that files of the host's owner belong to the
// box's user.
func openForeign(c *Configuration) error {
	l, own := c.Layout, c.own
	if !l.ID.Root {
		return nil
	}
	maps := map[[2]int]*os.File{}
	sent := 0
	for i := range l.Config.Mounts {
		m := &l.Config.Mounts[i]
		if m.Layer || m.Kind != boxinit.MountBind && m.Kind != boxinit.MountOverlay || m.Source == "" || strings.HasPrefix(m.Source, "/dev/") {
			continue
		}
		system := false
		for _, dir := range hostroot.SystemDirs() {
			system = system || m.Source == dir
		}
		if system || m.Source == "/sys/devices/system/cpu" {
			continue
		}
		f, err := sys.CloneReal(m.Source)
		if err != nil {
			if m.Maybe {
				continue
			}
			if errors.Is(err, syscall.EPERM) { // not caused by the file: nothing can be shared
				return fmt.Errorf("mount %s: %w", m.Source, err)
			}
			return fmt.Errorf("mount %s: %w", m.Source, notThere(err))
		}
		own.add(f)
		if m.Owned {
			if err := l.mapOwners(m, f, maps, own); err != nil {
				return err
			}
		}
		m.File = fmt.Sprintf("mount %d", i)
		c.Files.Add(m.File, f)
		if err := openLayer(c, m, maps); err != nil {
			return err
		}
		if sent++; sent > 200 {
			return fmt.Errorf("more than 200 mounts: %w", paddock.Invalid)
		}
	}
	return nil
}

// openLayer opens the directory that takes the changes of a mount. What the box makes there belongs to the directory's
// owner on disk.
func openLayer(c *Configuration, m *boxinit.Mount, maps map[[2]int]*os.File) error {
	if m.Upper == "" {
		return nil
	}
	f, err := sys.CloneReal(m.Upper)
	if err != nil {
		return fmt.Errorf("mount %s: %w", m.Upper, notThere(err))
	}
	c.own.add(f)
	if err := c.Layout.mapOwners(&boxinit.Mount{Kind: m.Kind, Source: m.Upper, Write: true}, f, maps, c.own); err != nil {
		return err
	}
	m.UpperFile = m.File + " layer"
	c.Files.Add(m.UpperFile, f)
	return nil
}

// mapOwners makes files of the mount's owner appear as the box's user's. Files that the box
// makes belong to that owner on disk.
func (l *Layout) mapOwners(m *boxinit.Mount, f *os.File, maps map[[2]int]*os.File, own *closers) error {
	st, err := sys.StatAt(int(f.Fd()), "")
	if err != nil {
		return fmt.Errorf("mount %s: %w", m.Source, notThere(err))
	}
	owner := [2]int{int(st.UID), int(st.GID)}
	if m.Kind == boxinit.MountOverlay || m.InRoot {
		owner = [2]int{l.ID.User.UID, l.ID.User.GID}
	}
	ns := maps[owner]
	if ns == nil {
		if ns, err = userNamespace(owner[0], owner[1], l.ID.KUID, l.ID.KGID); err != nil {
			return err
		}
		own.add(ns)
		maps[owner] = ns
	}
	if err := sys.IDMap(f, ns, true); err != nil {
		if !m.Writable() && m.Kind == boxinit.MountBind {
			return nil // to be read as any user may
		}
		return fmt.Errorf("mount %s: its file system cannot map owners (id-mapped mounts), so a root caller cannot share it for writing; "+
			"run paddock as the directory's owner instead: %w: %w", m.Source, err, paddock.Unsupported)
	}
	return nil
}

// userNamespace makes a user namespace in which the owner uid is the host's kuid, for
// mapping a mount. Only the file keeps it alive.
func userNamespace(uid, gid, kuid, kgid int) (*os.File, error) {
	exe, err := sys.SealedFile("map", sys.Pause())
	if err != nil {
		return nil, err
	}
	defer exe.Close()
	pid, err := syscall.ForkExec(fmt.Sprintf("/proc/self/fd/%d", exe.Fd()), []string{"map"}, &syscall.ProcAttr{
		Dir: "/",
		Sys: &syscall.SysProcAttr{
			Cloneflags:  sys.CloneUser,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: kuid, Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: gid, HostID: kgid, Size: 1}},
			Setsid:      true,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("make a user namespace: %w", err)
	}
	f, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", pid))
	_ = syscall.Kill(pid, syscall.SIGKILL)
	for {
		if _, e := syscall.Wait4(pid, nil, 0, nil); !errors.Is(e, syscall.EINTR) {
			break
		}
	}
	return f, err
}
