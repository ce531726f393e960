package guestkernel

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/guestinit"
	"github.com/paddock-sandbox/paddock/internal/hostroot"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// Nest turns a layout for commands on the host's kernel into one for commands on a guest kernel.
//
// The commands' tree is below boxinit.Root, where the kernel looks for it. It is read-only,
// because the kernel has a private layer over it. The directories that the kernel provides
// itself (/proc, /dev, /sys) are left out. Directories of the host that the spec mounts
// bypass the layer: changes reach the host or are refused, and the broker decides about
// them as about any others.
func Nest(l *box.Layout, spec *paddock.Spec, limits paddock.Limits) error {
	c := &l.Config
	c.PIDs = limits.PIDs // only of commands: see Limiter.HostLimits
	c.GuestKernel = &boxinit.GuestKernelConfig{Disk: limits.Disk, Sizes: boxinit.SizesOf(limits), Sudo: spec.Sudo, Audit: audited(spec), Token: make([]byte, guestinit.TokenSize), Number: make([]byte, 16)}
	_, _ = rand.Read(c.GuestKernel.Token) // never fails
	_, _ = rand.Read(c.GuestKernel.Number)
	below := func(path string) string { return strings.TrimSuffix(boxinit.Root+path, "/") }
	past := func(path string) bool { // it is in a mount of the spec
		return slices.ContainsFunc(l.Mounts, func(m boxinit.Mount) bool { return hostroot.Within(path, m.Target) })
	}
	mounts := []boxinit.Mount{
		{Kind: boxinit.MountTmpfs, Target: "/", Size: supervisorSize, Mode: 0o755, Write: true},
		{Kind: boxinit.MountDir, Target: boxinit.Root, Mode: 0o555},
		{Kind: boxinit.MountPrivate, Target: boxinit.State, Mode: 0o700, Write: true},
		{Kind: boxinit.MountPrivate, Target: "/tmp", Mode: 0o700, Write: true},
		{Kind: boxinit.MountProc, Target: "/proc", Write: true, NoExec: true},
	}
	for _, name := range []string{"null", "urandom"} {
		mounts = append(mounts, boxinit.Mount{Kind: boxinit.MountBind, Target: "/dev/" + name, Source: "/dev/" + name, Write: true, Device: true, NoExec: true, IsFile: true})
	}
	// gVisor would cover an empty /tmp with a file system of its own. The disk limit does
	// not apply to that, and snapshots of files do not contain it.
	c.Mounts = append(c.Mounts, boxinit.Mount{Kind: boxinit.MountDir, Target: "/tmp/.X11-unix", Mode: 0o1777})
	own := &furniture{user: c.User}
	for _, m := range c.Mounts[1:] {
		if hostroot.Within(m.Target, "/dev") || hostroot.Within(m.Target, "/proc") || hostroot.Within(m.Target, "/sys") {
			continue
		}
		user := past(m.Target)
		switch m.Kind {
		case boxinit.MountPrivate, boxinit.MountPin:
			if !user {
				m.Kind = boxinit.MountDir
			}
		case boxinit.MountBind:
			if user && slices.ContainsFunc(l.Mounts, func(u boxinit.Mount) bool { return u.Target == m.Target }) {
				c.GuestKernel.Binds = append(c.GuestKernel.Binds, boxinit.Bind{Target: m.Target, Write: m.Writable(), IsFile: m.IsFile})
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
		if l.InFile() && !user && own.take(m) {
			continue
		}
		m.Target = below(m.Target)
		if m.Kind == boxinit.MountKeys {
			m.Source = below(m.Source)
		}
		mounts = append(mounts, m)
	}
	if l.InFile() {
		text, err := own.text()
		if err != nil {
			return err
		}
		c.GuestKernel.ImageFile, c.GuestKernel.Layered = true, true
		mounts = append(mounts, boxinit.Mount{Kind: boxinit.MountFile, Target: below(guestinit.Furniture), Source: text, Mode: 0o444, IsFile: true})
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

// supervisorSize bounds the files of the kernel's supervisor, in bytes: the directories of the
// tree, and a few small files.
const supervisorSize = 16 << 20

// audited lists the kinds of events that the guest kernel must report.
func audited(spec *paddock.Spec) []paddock.AuditKind {
	var list []paddock.AuditKind
	for _, kind := range spec.Policy.Audit {
		if kind.OfProcess() {
			list = append(list, kind)
		}
	}
	if len(list) == 0 {
		return []paddock.AuditKind{paddock.AuditExec}
	}
	return list
}

// FileAgent is the name of the agent's program in box.Plan.Programs.
const FileAgent = boxinit.FileAgent

// ShowAgent puts the agent's program into the tree, from which the guest kernel mounts it.
// It uses the file itself, or a copy if the program is only in memory.
func ShowAgent(b *box.Box, c *box.Configuration) error {
	program := b.Plan().Programs.One(FileAgent)
	if name, ok := nameOf(program); ok {
		return b.Impossible(show(c, name, boxinit.Root+guestinit.Argv0))
	}
	st, err := program.Stat()
	if err != nil {
		return err
	}
	c.Files.Add(FileAgent, program)
	c.Layout.Config.Mounts[0].Size += st.Size()
	c.Layout.Add(boxinit.Mount{Kind: boxinit.MountCopy, Target: boxinit.Root + guestinit.Argv0, File: FileAgent, IsFile: true})
	return nil
}

// showProgram puts the program of the box's init where it looks for itself by name. A
// program that is only in memory is too large to be copied; the init works without it.
func showProgram(c *box.Configuration, program *os.File) error {
	if name, ok := nameOf(program); ok {
		return show(c, name, boxinit.Program)
	}
	return nil
}

// ShowFile mounts an open file read-only at target in the box, so that nobody there needs its descriptor, which could be
// opened again for writing. It returns false if the file has no name, or another file has got the name.
func ShowFile(c *box.Configuration, f *os.File, target string) (bool, error) {
	fd, err := sys.Descriptor(f)
	if err != nil {
		return false, err
	}
	path, err := sys.PathOf(fd)
	if err != nil {
		return false, err
	}
	name, ok := named(path, f)
	if !ok {
		return false, nil
	}
	return true, show(c, name, target)
}

// nameOf returns the name, without links, of a program that is still that file. Another
// version of Paddock may have replaced it.
func nameOf(program *os.File) (string, bool) { return named(program.Name(), program) }

// named returns path without links if it is the name of an open file.
func named(path string, f *os.File) (string, bool) {
	if !filepath.IsAbs(path) {
		return "", false
	}
	name, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", false
	}
	is, err := f.Stat()
	if err != nil {
		return "", false
	}
	there, err := os.Lstat(name)
	return name, err == nil && os.SameFile(is, there)
}

// show mounts a file of this name.
func show(c *box.Configuration, name, target string) error {
	m := boxinit.Mount{Kind: boxinit.MountBind, Target: target, Source: name, IsFile: true}
	if c.Layout.ID.Root { // whose box's user may not reach it
		f, err := sys.CloneReal(m.Source)
		if err != nil {
			return err
		}
		c.Own(f)
		m.File = "file " + target
		c.Files.Add(m.File, f)
	}
	c.Layout.Add(m)
	return nil
}
