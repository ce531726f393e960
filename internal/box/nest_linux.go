package box

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/guestinit"
	"github.com/paddock-sandbox/paddock/internal/kernel"
)

// nest turns a layout for commands on the host's kernel into one for commands
// on a kernel of the box's own.
//
// The commands' tree stands below boxinit.Root, where the kernel finds it, and is
// read-only: the kernel keeps a private layer over it. What the kernel brings
// itself (/proc, /dev, /sys) is left out. What of the host's is mounted there
// by name is mounted past the layer: changes reach the host, or are refused,
// and the broker decides about them as about any other's.
func (l *layout) nest(spec *paddock.Spec, limits paddock.Limits) error {
	c := &l.config
	c.PIDs = limits.PIDs // of commands alone: see hostPIDs
	c.Kernel = &boxinit.KernelConfig{Disk: limits.Disk, Sudo: spec.Sudo, Audit: l.audit, Token: make([]byte, guestinit.TokenSize), Number: make([]byte, 16)}
	_, _ = rand.Read(c.Kernel.Token) // never fails
	_, _ = rand.Read(c.Kernel.Number)
	below := func(path string) string { return strings.TrimSuffix(boxinit.Root+path, "/") }
	past := func(path string) bool { // it is in a mount of the spec's
		return slices.ContainsFunc(l.user, func(m boxinit.Mount) bool { return within(path, m.Target) })
	}
	mounts := []boxinit.Mount{
		{Kind: boxinit.MountTmpfs, Target: "/", Size: starterSize, Mode: 0o755, Write: true},
		{Kind: boxinit.MountDir, Target: boxinit.Root, Mode: 0o555},
		{Kind: boxinit.MountPrivate, Target: boxinit.State, Mode: 0o700, Write: true},
		{Kind: boxinit.MountPrivate, Target: "/tmp", Mode: 0o700, Write: true},
		{Kind: boxinit.MountProc, Target: "/proc", Write: true, NoExec: true},
	}
	for _, name := range []string{"null", "urandom"} {
		mounts = append(mounts, boxinit.Mount{Kind: boxinit.MountBind, Target: "/dev/" + name, Source: "/dev/" + name, Write: true, Device: true, NoExec: true, IsFile: true})
	}
	// An empty /tmp gVisor would cover by a file system of its own, which the
	// disk limit is not for and which no snapshot of files holds.
	c.Mounts = append(c.Mounts, boxinit.Mount{Kind: boxinit.MountDir, Target: "/tmp/.X11-unix", Mode: 0o1777})
	for _, m := range c.Mounts[1:] {
		if within(m.Target, "/dev") || within(m.Target, "/proc") || within(m.Target, "/sys") {
			continue
		}
		user := past(m.Target)
		switch m.Kind {
		case boxinit.MountPrivate, boxinit.MountPin:
			if !user {
				m.Kind = boxinit.MountDir
			}
		case boxinit.MountBind:
			if user && slices.ContainsFunc(l.user, func(u boxinit.Mount) bool { return u.Target == m.Target }) {
				c.Kernel.Binds = append(c.Kernel.Binds, boxinit.Bind{Target: m.Target, Write: m.Write, IsFile: m.IsFile})
			}
		case boxinit.MountMask:
			if !user && m.Maybe && slices.ContainsFunc(spec.Policy.Files.DenyRead, func(p string) bool { return filepath.Clean(p) == m.Target }) {
				return fmt.Errorf("deny reading %s: it is not there, and below no mount, where this tier cannot deny by name that it is made: %w", m.Target, paddock.Unsupported)
			}
		case boxinit.MountLock:
			if !user && !m.Maybe {
				return fmt.Errorf("deny writing %s: below no mount, where this tier cannot deny it by name: %w", m.Target, paddock.Unsupported)
			}
		}
		m.Target = below(m.Target)
		if m.Kind == boxinit.MountKeys {
			m.Source = below(m.Source)
		}
		mounts = append(mounts, m)
	}
	c.Mounts = mounts
	c.Writable = []string{boxinit.State}
	trees := c.Trees[:0]
	for _, t := range c.Trees {
		if past(t.Path) {
			t.Path = below(t.Path)
			trees = append(trees, t)
		}
	}
	c.Trees = trees
	for _, list := range [][]string{c.Hosts, c.Deny} {
		for i := range list {
			list[i] = below(list[i])
		}
	}
	return nil
}

// starterSize bounds what the kernel's starter keeps in files, in bytes: the
// directories of the tree, and a few small ones of its own.
const starterSize = 16 << 20

// showAgent puts the agent's program into the tree, where the kernel mounts it from: the
// file itself, or where it is in memory only, a copy.
func (l *layout) showAgent(program *os.File, fds *[]*os.File, own *closers) error {
	if name, ok := nameOf(program); ok {
		return l.show(name, boxinit.Root+guestinit.Argv0, fds, own)
	}
	st, err := program.Stat()
	if err != nil {
		return err
	}
	*fds = append(*fds, program)
	l.config.Mounts[0].Size += st.Size()
	l.config.Mounts = append(l.config.Mounts, boxinit.Mount{Kind: boxinit.MountCopy, Target: boxinit.Root + guestinit.Argv0, FD: len(*fds), IsFile: true})
	return nil
}

// showKernel puts the kernel's program where its starter finds it by name. One
// that is in memory only is too large to be copied: its starter does without.
func (l *layout) showKernel(program *os.File, fds *[]*os.File, own *closers) error {
	if name, ok := nameOf(program); ok {
		return l.show(name, boxinit.Program, fds, own)
	}
	return nil
}

// nameOf gives the name, without links, of a program that is a file still. The
// Paddock of another version may have put its own in the place.
func nameOf(program *os.File) (string, bool) {
	if !filepath.IsAbs(program.Name()) {
		return "", false
	}
	name, err := filepath.EvalSymlinks(program.Name())
	if err != nil {
		return "", false
	}
	is, err := program.Stat()
	if err != nil {
		return "", false
	}
	there, err := os.Lstat(name)
	return name, err == nil && os.SameFile(is, there)
}

// show mounts a program's file.
func (l *layout) show(name, target string, fds *[]*os.File, own *closers) error {
	m := boxinit.Mount{Kind: boxinit.MountBind, Target: target, Source: name, IsFile: true}
	if l.id.root { // whose box's user may not reach it
		f, err := kernel.CloneReal(m.Source)
		if err != nil {
			return err
		}
		own.add(f)
		*fds = append(*fds, f)
		m.FD = len(*fds)
	}
	l.config.Mounts = append(l.config.Mounts, m)
	return nil
}
