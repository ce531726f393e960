package microvm

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/bootfiles"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/protocol"
	"github.com/paddock-sandbox/paddock/internal/hostroot"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// Memory that a machine needs beyond that of its commands.
const (
	kernelOwn  = 136 << 20 // kernel and init; the kernel's page table needs another part
	kernelPart = 10
	agentSize  = 12 << 20  // of an agent alone; kernelOwn has room for two, compressed and not
	engineOwn  = 320 << 20 // QEMU, mostly for emulation
)

// emulatedCPU is the emulated processor model: x86-64-v2 with AES. With QEMU's largest
// model a start takes half as long again: the kernel does more at each system call and
// walks longer tables, and libraries choose wide vectors, which are the slowest to emulate.
//
// AVX is for Go programs, above all the agent. They copy memory with AVX, and without it by
// a repeating instruction, five times as slowly. C libraries require AVX2 for wide vectors,
// which this model lacks. XSAVEOPT is needed because QEMU accepts the kernel's use of XSAVE
// (in CR4) only with the part of CPUID that includes XSAVEOPT.
const emulatedCPU = "Westmere,+xsave,+xsaveopt,+avx"

// A supplier finds the parts of machines on this host.
type supplier struct {
	o Options

	mu    sync.Mutex
	found *host // guarded by mu; nil until everything was found
}

// A host has what a supplier found. An upgrade may replace the kernel's file, and then
// saved templates no longer apply.
type host struct {
	engine   bootfiles.Engine
	firmware []string
	linux    bootfiles.Kernel
	kernels  string // directory of the kernels that were set up
	accel    protocol.Accel
	why      string // why there is no KVM
	khz      int
}

func newSupplier(o Options) *supplier { return &supplier{o: o} }

// look finds the parts.
func (s *supplier) look() (*host, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.found != nil {
		return s.found, nil
	}
	var h host
	var err error
	common := box.DefaultData(s.o.Environ)
	kernels := cmp.Or(s.o.Kernels, filepath.Join(common, "vm"))
	if h.engine, h.firmware, err = bootfiles.KnownEngine(s.o.Engine, filepath.Join(cmp.Or(s.o.Data, common), "vm", "engine.json")); err != nil {
		return nil, err
	}
	h.kernels = kernels
	if h.linux, err = bootfiles.Find(bootfiles.Options{Path: s.o.Kernel, Modules: s.o.Modules, Data: kernels}); err != nil {
		return nil, err
	}
	if h.accel, h.why = bootfiles.Probe(); h.accel == protocol.TCG {
		if h.khz, err = bootfiles.KHz(); err != nil {
			return nil, err
		}
	}
	s.found = &h
	return &h, nil
}

// this identifies the present engine, and the processor if machines use it. The version is
// not enough, because a distribution builds one version more than once.
func this(engine string, accel protocol.Accel) (string, error) {
	st, err := os.Stat(engine)
	if err != nil {
		return "", err
	}
	name := fmt.Sprint(st.Size(), "|", st.ModTime().UnixNano())
	if accel == protocol.KVM {
		p, err := bootfiles.Processor()
		if err != nil {
			return "", err
		}
		name += "|" + p
	}
	return name, nil
}

// Emulated returns why machines are emulated here, or "" if they are not.
func Emulated() string {
	accel, why := bootfiles.Probe()
	if accel == protocol.KVM {
		return ""
	}
	return why
}

// Lack returns what this host lacks for any machine, or nil.
func (s *supplier) Lack() *paddock.Finding {
	_, err := s.look()
	if err == nil {
		return nil
	}
	var missing *paddock.MissingError
	if errors.As(err, &missing) {
		return &missing.Finding
	}
	return &paddock.Finding{Control: paddock.ControlKernel, Strength: paddock.Absent, Cause: err.Error(), Remedy: "run `paddock vm status`"}
}

// about describes what runs machines here, or returns "" if nothing can.
func (s *supplier) about() string {
	h, err := s.look()
	if err != nil {
		return ""
	}
	how := "with KVM, which was never tested in this version"
	if h.accel == protocol.TCG {
		how = "in emulation (" + h.why + ")"
	}
	return fmt.Sprintf("Linux %s in a machine of QEMU %s %s", h.linux.Release, h.engine.Version, how)
}

// supply returns what a box is made with.
func (s *supplier) supply(n need) (*supply, error) {
	h, err := s.look()
	if err != nil {
		return nil, err
	}
	agentInfo, err := n.agent.Stat()
	if err != nil {
		return nil, fmt.Errorf("the guest program: %w", err)
	}
	m := protocol.Machine{
		Engine: h.engine.Path, Accel: h.accel, CPU: emulatedCPU, CPUs: 1, Firmware: h.firmware,
		Memory: machineMemory(n.limits.Memory, agentInfo.Size()), Limit: n.limits.Memory, Arguments: bootfiles.Arguments(h.accel, h.khz),
	}
	if h.accel == protocol.KVM {
		m.CPU, m.CPUs = "host", int(math.Ceil(n.limits.CPUs))
	}
	// With the agent alone, the overhead is what overhead tells ahead.
	u := &supply{made: n.limits.Memory, overhead: m.Memory - n.limits.Memory + engineOwn, trees: trees(h)}
	fail := func(err error) (*supply, error) {
		u.close()
		return nil, err
	}
	agent, err := sumOf(n.agent)
	if err != nil {
		return nil, err
	}
	u.shape = shape(h, &m, agent)
	now, err := this(h.engine.Path, h.accel) // it may be replaced while this program runs
	if err != nil {
		return nil, err
	}
	defaults := box.Defaults()
	usual := 1
	if h.accel == protocol.KVM {
		usual = int(math.Ceil(defaults.CPUs))
	}
	u.template = classFor(n.limits, defaults, m.CPUs, usual).name(template(u.shape, now))
	u.about = fmt.Sprintf("QEMU %s with %s, Linux %s, %d MiB, %d processors", h.engine.Version, h.accel, h.linux.Release, m.Memory>>20, m.CPUs)
	if h.accel == protocol.KVM {
		f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
		if err != nil {
			return fail(fmt.Errorf("KVM: %w: %w", err, paddock.Unavailable))
		}
		u.files.Add(protocol.FileKVM, f)
	}
	switch {
	case n.again:
	case n.state != nil:
		u.files.Add(protocol.FileMemory, n.memory)
		state, err := sealedCopy(n.state)
		if err != nil {
			return fail(fmt.Errorf("the template of the machine: %w", err))
		}
		u.files.Add(protocol.FileState, state)
	default:
		linux, err := os.Open(h.linux.Path)
		if err != nil {
			return fail(fmt.Errorf("the machine's kernel: %w: %w", err, paddock.Unavailable))
		}
		u.files.Add(protocol.FileLinux, linux)
		if err := checkKernel(linux, h.kernels); err != nil {
			return fail(err)
		}
		initrd, err := s.initrd(h, n, agent)
		if err != nil {
			return fail(fmt.Errorf("the machine's first file system: %w", err))
		}
		u.files.Add(protocol.FileInitrd, initrd)
	}
	if m.Stamps, err = stampsOf(&u.files); err != nil {
		return fail(err)
	}
	if u.config, err = json.Marshal(m); err != nil {
		return fail(err)
	}
	return u, nil
}

// machineMemory returns the memory of a machine whose commands may use limit. A guest
// program that includes more than the agent needs more.
func machineMemory(limit, agent int64) int64 {
	const page = 2 << 20
	n := limit + limit/kernelPart + kernelOwn + 2*max(agent-agentSize, 0)
	return (n + page - 1) / page * page
}

// overhead returns how much memory a machine with the agent alone takes beyond a limit, with its engine.
func overhead(limit int64) int64 {
	if limit > maxLimit {
		return limit // no host has it
	}
	return machineMemory(limit, agentSize) - limit + engineOwn
}

// maxLimit is more memory than any host has.
const maxLimit = 1 << 50

// shape identifies everything that a machine's memory depends on.
func shape(h *host, m *protocol.Machine, agent string) string {
	sum := sha256.Sum256(fmt.Append(nil, "3|", h.engine.Version, "|", h.engine.Path, "|", h.linux.ID, "|", agent, "|", m.Accel, "|", m.CPU, "|", m.CPUs, "|", m.Memory, "|", m.Arguments))
	return hex.EncodeToString(sum[:12])
}

// template identifies the template of a machine: its shape on this host. A paused machine
// needs only the same shape, so that an update of the engine does not lose it.
func template(shape, this string) string {
	sum := sha256.Sum256([]byte(shape + "|" + this))
	return hex.EncodeToString(sum[:12])
}

// sumOf identifies a program.
func sumOf(f *os.File) (string, error) {
	h := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	n, err := io.Copy(h, io.NewSectionReader(f, 0, 1<<40))
	if err != nil {
		return "", fmt.Errorf("read the guest program: %w", err)
	}
	return fmt.Sprintf("%08x-%d", h.Sum32(), n), nil
}

// sealedCopy returns a copy in memory of a small file, which it closes. Nobody can change the copy.
func sealedCopy(f *os.File) (*os.File, error) {
	defer f.Close()
	data, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<40))
	if err != nil {
		return nil, err
	}
	return sys.SealedData(filepath.Base(f.Name()), data)
}

// stampsOf returns the stamps of the files that may be mounted in a box.
func stampsOf(files *boxinit.Files) (map[string]string, error) {
	all := map[string]string{}
	for i, name := range files.Names() {
		if protocol.Place(name) == "" {
			continue
		}
		stamp, err := protocol.Stamp(files.All()[i])
		if err != nil {
			return nil, err
		}
		all[name] = stamp
	}
	return all, nil
}

// initrd returns the initial file system of a machine with this kernel. It is cached if
// possible.
func (s *supplier) initrd(h *host, n need, agent string) (*os.File, error) {
	dir := filepath.Join(n.data, "vm", "initrd")
	name := h.linux.ID + "-" + agent
	if f, err := openMarked(dir, name); err == nil {
		return f, nil
	}
	modules, err := h.linux.Modules()
	if err != nil {
		return nil, err
	}
	guest, err := io.ReadAll(io.NewSectionReader(n.agent, 0, 1<<40))
	if err != nil {
		return nil, err
	}
	var data bytes.Buffer
	if err := bootfiles.Initrd(&data, guest, modules); err != nil {
		return nil, err
	}
	if err := keep(dir, name, data.Bytes()); err == nil {
		if f, err := openMarked(dir, name); err == nil {
			return f, nil
		}
	}
	return sys.SealedData("initrd", data.Bytes())
}

// markPrefix begins the name of an attribute of a directory, which has the stamp of the file of that name. The file is
// used only with the mark: no sandbox can set attributes of the host's files, no archive knows an inode, and nobody can
// choose when a file was changed. See the cache of package program.
const markPrefix = "user.paddock."

// checkKernel refuses a kernel that was changed since its first use. It checks only kernels that were set up, which
// nobody changes, and only those of an ordinary caller, because other users' files are out of reach of a box.
func checkKernel(f *os.File, kernels string) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	path := filepath.Dir(f.Name())
	if os.Geteuid() == 0 || !sys.Owned(st, 0) || filepath.Dir(path) != filepath.Clean(kernels) {
		return nil
	}
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return checkMark(dir, f)
}

// checkMark compares a file with its mark, and sets one if there is none.
func checkMark(dir, f *os.File) error {
	stamp, err := protocol.Stamp(f)
	if err != nil {
		return err
	}
	name := markPrefix + filepath.Base(f.Name())
	switch mark, err := sys.Attribute(dir, name); {
	case errors.Is(err, syscall.ENODATA):
		_ = sys.SetAttribute(dir, name, stamp) // without a mark, the read-only mount is the only wall
	case err == nil && mark != stamp:
		return fmt.Errorf("the machine's kernel %s was changed since its first use; remove %s and run `paddock vm setup`: %w", f.Name(), dir.Name(), paddock.Denied)
	}
	return nil
}

// openMarked opens a file that was written by keep and not changed since.
func openMarked(dir, name string) (*os.File, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	mark, err := sys.Attribute(d, markPrefix+name)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && (!st.Mode().IsRegular() || !sys.Owned(st, 0o022)) {
		err = fs.ErrPermission
	}
	if err == nil {
		var stamp string
		if stamp, err = protocol.Stamp(f); err == nil && stamp != mark {
			err = fs.ErrPermission
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// keep writes a file atomically, marks it, and removes the others, which belong to other versions of
// the program or kernel.
func keep(dir, name string, data []byte) error {
	if err := bootfiles.Keep(filepath.Join(dir, name), data); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := mark(d, filepath.Join(dir, name), data); err != nil {
		return err
	}
	const most = 8
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) <= most {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") && e.Name() != name {
			_ = os.Remove(filepath.Join(dir, e.Name())) // a process that uses it has it open
			_ = sys.RemoveAttribute(d, markPrefix+e.Name())
		}
	}
	return nil
}

// mark marks a file in dir with this content. Another process may have the file open, so the kernel is asked that
// nobody has it open for writing, and the content is read again.
func mark(dir *os.File, path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	alone, err := sys.Unwritten(f)
	if err != nil {
		return err
	}
	written, err := io.ReadAll(io.LimitReader(f, int64(len(data))+1))
	if err != nil || !bytes.Equal(written, data) {
		return errors.Join(err, fs.ErrPermission)
	}
	stamp, err := protocol.Stamp(f)
	if err != nil {
		return err
	}
	if err := sys.SetAttribute(dir, markPrefix+filepath.Base(path), stamp); err != nil {
		return err
	}
	return alone()
}

// trees returns the read-only parts of the host's tree that QEMU needs. For a QEMU outside
// the system's directories that is only its program, because its neighbours may be
// anything.
func trees(h *host) []boxinit.Mount {
	var list []boxinit.Mount
	there := func(path string) bool {
		return slices.ContainsFunc(list, func(m boxinit.Mount) bool {
			return m.Kind == boxinit.MountBind && strings.HasPrefix(path+"/", m.Target+"/")
		})
	}
	for _, dir := range slices.Concat(hostroot.SystemDirs(), h.firmware) {
		if there(dir) {
			continue
		}
		st, err := os.Lstat(dir)
		switch {
		case err != nil:
		case st.Mode()&os.ModeSymlink != 0:
			if to, err := os.Readlink(dir); err == nil {
				list = append(list, boxinit.Mount{Kind: boxinit.MountLink, Target: dir, Source: to})
			}
		case dir != "/etc": // QEMU needs nothing there except for the following
			list = append(list, boxinit.Mount{Kind: boxinit.MountBind, Target: dir, Source: dir})
		}
	}
	if path := h.engine.Path; !there(path) {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			list = append(list, boxinit.Mount{Kind: boxinit.MountBind, Target: path, Source: real, IsFile: true})
		}
	}
	return append(list, boxinit.Mount{Kind: boxinit.MountBind, Target: "/etc/ld.so.cache", Source: "/etc/ld.so.cache", IsFile: true, Maybe: true})
}
