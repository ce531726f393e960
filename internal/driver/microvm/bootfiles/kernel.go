package bootfiles

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/paddock-sandbox/paddock"
)

// Options select a kernel and the directory to keep kernels in. The zero Options use a
// kernel of this host.
type Options struct {
	// Path is a kernel: an ELF file (vmlinux) or a boot loader's image (bzImage). Empty
	// selects the one that Setup put into Data or Shared, or else one of the system's.
	Path string

	// Modules is the directory with the modules of Path. Empty selects the directory beside
	// it, or the system's directory for its release.
	Modules string

	// Data is where Setup puts kernels, and where decompressed kernels are kept. It is made
	// if it does not exist, and belongs to the caller.
	Data string

	// Package is a file with a Debian package of a kernel, for Setup. Empty downloads one
	// with the system's package client.
	Package string

	// Sum is the required SHA-256 of Package in hexadecimal. Empty accepts any.
	Sum string
}

// Shared is the superuser's Data, whose kernel all users may use.
const Shared = "/var/lib/paddock/vm"

// A Kernel is a kernel for machines.
type Kernel struct {
	Path      string // an ELF file with a PVH entry
	Release   string // as uname prints it
	Directory string // of its modules; empty if there are none
	ID        string // changes with the file
}

// Bounds of a kernel, in bytes.
const (
	maxImage  = 256 << 20 // compressed
	maxKernel = 512 << 20
)

// modulesDir is the subdirectory for a kernel's modules.
const modulesDir = "modules"

// current is a link in Data to the kernel that was set up last.
const current = "current"

// Find returns a kernel for machines: Path, the one that was set up, or one of the
// system's, in this order. A kernel that must be decompressed is kept in Data. If there is
// none, the error is [paddock.Unsupported] and has the remedy.
func Find(o Options) (Kernel, error) {
	if err := supported(); err != nil {
		return Kernel{}, err
	}
	k, err := host{shared: Shared, boot: "/boot", modules: "/lib/modules"}.find(o)
	return k, kinded(err)
}

// kinded adds a kind to an error of the operating system.
func kinded(err error) error {
	if err == nil || paddock.KindOf(err) != paddock.Internal {
		return err
	}
	for _, c := range []struct {
		is   error
		kind paddock.Kind
	}{
		{fs.ErrNotExist, paddock.NotFound}, {fs.ErrPermission, paddock.Denied}, {syscall.ENOSPC, paddock.Exhausted}, {syscall.EDQUOT, paddock.Exhausted},
		{context.Canceled, paddock.Canceled}, {context.DeadlineExceeded, paddock.Timeout},
	} {
		if errors.Is(err, c.is) {
			return fmt.Errorf("%w: %w", err, c.kind)
		}
	}
	return err
}

// supported returns an error on a host with another kind of processor.
func supported() error {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return absent("virtual machines need Linux on an x86-64 processor", "use another tier: `paddock doctor` lists them")
	}
	return nil
}

// A host has the directories where a system keeps kernels.
type host struct{ shared, boot, modules string }

const howToGetOne = "run `paddock vm setup`, which fetches one, or name one: `paddock vm setup --kernel PATH`"

func (h host) find(o Options) (Kernel, error) {
	if o.Path != "" {
		return h.named(o)
	}
	for _, dir := range slices.Compact([]string{o.Data, h.shared}) {
		if dir == "" {
			continue
		}
		k, err := kept(dir)
		if !errors.Is(err, fs.ErrNotExist) {
			return k, err
		}
	}
	// A distribution's kernel may lack what machines need, for example one for desktops. So
	// each is tried.
	var last error
	for _, path := range h.installed() {
		k, err := h.system(path, o.Data)
		if err == nil {
			return k, nil
		}
		last = about(path, err)
	}
	cause := "no kernel for machines was found"
	var missing *paddock.MissingError
	switch {
	case errors.As(last, &missing):
		cause += ", and this machine's own cannot be used: " + missing.Finding.Cause
	case last != nil:
		cause += ", and this machine's own cannot be used: " + last.Error()
	}
	return Kernel{}, absent(cause, howToGetOne)
}

// absent returns the error for a missing requirement.
func absent(cause, remedy string) error {
	return &paddock.MissingError{Finding: paddock.Finding{Control: paddock.ControlKernel, Strength: paddock.Absent, Cause: cause, Remedy: remedy}}
}

// about adds the subject to the cause of an error, because a displayed finding shows no
// wrapping text.
func about(subject string, err error) error {
	var missing *paddock.MissingError
	if errors.As(err, &missing) {
		return absent(subject+": "+missing.Finding.Cause, missing.Finding.Remedy)
	}
	return fmt.Errorf("%s: %w", subject, err)
}

// installed lists the system's kernels, the best first.
func (h host) installed() []string {
	all, err := filepath.Glob(filepath.Join(h.boot, "vmlinuz-*"))
	if err != nil {
		return nil
	}
	slices.SortFunc(all, func(a, b string) int { return compareVersions(b, a) })
	cloud := func(path string) bool { return strings.HasSuffix(path, "-cloud-amd64") }
	return slices.Concat(slices.DeleteFunc(slices.Clone(all), func(p string) bool { return !cloud(p) }), slices.DeleteFunc(all, cloud))
}

// system returns one of the system's kernels. It decompresses the kernel only if it has
// what machines need.
func (h host) system(path, data string) (Kernel, error) {
	packed, err := readBounded(path, maxImage)
	if err != nil {
		return Kernel{}, err
	}
	i, err := readImage(packed)
	if err != nil {
		return Kernel{}, err
	}
	dir := h.directory(path, i.release)
	if dir == "" {
		return Kernel{}, fmt.Errorf("its modules are not here: %w", paddock.NotFound)
	}
	if _, err := (Kernel{Release: i.release, Directory: dir}).Modules(); err != nil {
		return Kernel{}, err
	}
	k, err := keep(packed, data)
	if err != nil {
		return Kernel{}, err
	}
	k.Directory = dir
	return k, k.identify()
}

// compareVersions compares texts with numbers in them, number by number.
func compareVersions(a, b string) int {
	digits := func(s string) string { return s[:len(s)-len(strings.TrimLeft(s, "0123456789"))] }
	for a != "" && b != "" {
		x, y := digits(a), digits(b)
		if x == "" || y == "" {
			if a[0] != b[0] {
				return int(a[0]) - int(b[0])
			}
			a, b = a[1:], b[1:]
			continue
		}
		a, b = a[len(x):], b[len(y):]
		x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
		if len(x) != len(y) {
			return len(x) - len(y)
		}
		if c := strings.Compare(x, y); c != 0 {
			return c
		}
	}
	return len(a) - len(b)
}

// kept returns the kernel that was set up in a directory.
func kept(data string) (Kernel, error) {
	name, err := os.Readlink(filepath.Join(data, current))
	if err != nil {
		return Kernel{}, err
	}
	release, _, ok := cutLast(name, "-")
	if !ok || !validRelease(release) || !filepath.IsLocal(name) || filepath.Base(name) != name {
		return Kernel{}, fmt.Errorf("%s in %s leads to %q: %w", current, data, name, paddock.Invalid)
	}
	if err := trusted(data); err != nil {
		return Kernel{}, err
	}
	dir := filepath.Join(data, name)
	k := Kernel{Path: filepath.Join(dir, "vmlinux"), Release: release}
	if modules := filepath.Join(dir, modulesDir); isDir(modules) {
		k.Directory = modules
	}
	return k, k.identify()
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// trusted refuses a directory in which users other than the caller and the superuser can
// create files.
func trusted(dir string) error {
	st, err := os.Stat(dir)
	if err != nil {
		return err
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok || int64(sys.Uid) != int64(os.Geteuid()) && sys.Uid != 0 || st.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("other users may change %s, so it is not used: %w", dir, paddock.Denied)
	}
	return nil
}

// identify sets ID.
func (k *Kernel) identify() error {
	st, err := os.Stat(k.Path)
	if err != nil {
		return fmt.Errorf("kernel: %w", err)
	}
	if !st.Mode().IsRegular() {
		return fmt.Errorf("kernel %s: not a file: %w", k.Path, paddock.Invalid)
	}
	k.ID = fmt.Sprintf("%s-%d-%d", k.Release, st.Size(), st.ModTime().UnixNano())
	return nil
}

// named returns the kernel at Path.
func (h host) named(o Options) (Kernel, error) {
	path, err := filepath.Abs(o.Path)
	if err != nil {
		return Kernel{}, err
	}
	k, err := h.unpacked(path, o.Data)
	if err != nil {
		return Kernel{}, about("kernel "+path, err)
	}
	switch {
	case o.Modules != "":
		if k.Directory, err = filepath.Abs(o.Modules); err != nil {
			return Kernel{}, err
		}
	default:
		k.Directory = h.directory(path, k.Release)
	}
	return k, k.identify()
}

// directory finds the modules of a kernel: where Setup puts them, beside a kernel whose
// package was unpacked, or in the system.
func (h host) directory(path, release string) string {
	dir := filepath.Dir(path)
	for _, try := range []string{
		filepath.Join(dir, modulesDir),
		filepath.Join(filepath.Dir(dir), "lib", "modules", release),
		filepath.Join(filepath.Dir(dir), "usr", "lib", "modules", release),
		filepath.Join(h.modules, release),
	} {
		if isDir(try) {
			return try
		}
	}
	return ""
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// unpacked returns a kernel as an ELF file. A decompressed kernel is kept in data.
func (h host) unpacked(path, data string) (Kernel, error) {
	f, err := os.Open(path)
	if err != nil {
		if errors.Is(err, fs.ErrPermission) {
			return Kernel{}, absent("it may not be read", "let every user read it (sudo chmod +r), or use another one: `paddock vm setup`")
		}
		return Kernel{}, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return Kernel{}, err
	}
	if !st.Mode().IsRegular() {
		return Kernel{}, fmt.Errorf("not a file: %w", paddock.Invalid)
	}
	if _, err := elfHead(f); err == nil {
		k := Kernel{Path: path}
		if err := checkEntry(f); err != nil {
			return Kernel{}, err
		}
		k.Release, err = release(io.NewSectionReader(f, 0, maxKernel))
		return k, err
	}
	packed, err := readAll(f, maxImage)
	if err != nil {
		return Kernel{}, err
	}
	return keep(packed, data)
}

// checkEntry refuses a kernel that QEMU cannot start directly.
func checkEntry(r io.ReaderAt) error {
	has, err := pvh(r)
	if err == nil && !has {
		err = absent("it has no PVH entry (CONFIG_PVH), which machines are started by", howToGetOne)
	}
	return err
}

// keep decompresses a kernel into a directory in data, if it does not exist yet.
func keep(packed []byte, data string) (Kernel, error) {
	image, err := readImage(packed)
	if err != nil {
		return Kernel{}, err
	}
	if data == "" {
		return Kernel{}, fmt.Errorf("it must be decompressed, and there is no directory to keep the result: %w", paddock.Invalid)
	}
	name := nameOf(image.release, sha256.Sum256(packed))
	k := Kernel{Path: filepath.Join(data, name, "vmlinux"), Release: image.release}
	if _, err := os.Stat(k.Path); err == nil {
		return k, trusted(data)
	}
	d, err := newDraft(data)
	if err != nil {
		return Kernel{}, err
	}
	defer d.drop()
	if err := d.kernel(image); err != nil {
		return Kernel{}, err
	}
	return k, d.publish(name)
}

// made returns the hash for the result of this version of the package, because a later
// version may need other modules.
func made(sum [sha256.Size]byte) [sha256.Size]byte {
	h := sha256.New()
	h.Write(sum[:])
	for _, n := range needs() {
		fmt.Fprintf(h, "|%s", n.name)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// nameOf returns the directory name for a kernel from a file with this hash.
func nameOf(release string, sum [sha256.Size]byte) string {
	return fmt.Sprintf("%s-%x", release, sum[:4])
}

// An image is a boot loader's image (bzImage).
type image struct {
	release string
	packed  []byte // the compressed kernel
}

// Fields of the header of an image; see Linux's Documentation/arch/x86/boot.rst.
const (
	headSectors  = 0x1f1
	headMagic    = 0x202
	headProtocol = 0x206
	headVersion  = 0x20e
	headPayload  = 0x248
	headLength   = 0x24c
	headEnd      = 0x250
)

func readImage(data []byte) (image, error) {
	if len(data) < headEnd || string(data[headMagic:headMagic+4]) != "HdrS" || binary.LittleEndian.Uint16(data[headProtocol:]) < 0x208 {
		return image{}, fmt.Errorf("neither an ELF file nor a bzImage: %w", paddock.Invalid)
	}
	var i image
	if at := int(binary.LittleEndian.Uint16(data[headVersion:])) + 0x200; at < len(data) {
		text, _, _ := bytes.Cut(data[at:min(at+128, len(data))], []byte{0})
		word, _, _ := bytes.Cut(text, []byte(" "))
		i.release = string(word)
	}
	if !validRelease(i.release) {
		return image{}, fmt.Errorf("it does not say which Linux it is: %w", paddock.Invalid)
	}
	sectors := int64(data[headSectors])
	if sectors == 0 {
		sectors = 4
	}
	from := (sectors+1)*512 + int64(binary.LittleEndian.Uint32(data[headPayload:]))
	to := from + int64(binary.LittleEndian.Uint32(data[headLength:]))
	if to > int64(len(data)) || to-from < 16 {
		return image{}, fmt.Errorf("the kernel in it is cut off: %w", paddock.Invalid)
	}
	i.packed = data[from:to]
	return i, nil
}

// unpack returns the ELF file in an image.
func (i image) unpack() ([]byte, error) {
	for _, m := range magics() {
		if !bytes.HasPrefix(i.packed, []byte(m.magic)) {
			continue
		}
		packed := i.packed
		if m.magic[0] != 0x1f && m.magic[0] != 0x7f {
			packed = packed[:len(packed)-4] // the length, which gzip has itself
		}
		data, err := m.unpack.read(bytes.NewReader(packed), maxKernel)
		if err != nil {
			return nil, fmt.Errorf("unpack it: %w", err)
		}
		return data, nil
	}
	return nil, fmt.Errorf("unknown compression (% x): %w", i.packed[:6], paddock.Unsupported)
}
