package bootfiles

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock"
)

// maxModule bounds a module in bytes.
const maxModule = 64 << 20

// A need is a module that machines need.
type need struct {
	name string // as in modules.builtin, with underscores
	says string // text in a kernel that has it built in; empty if another need implies it
	what string

	// may means that a machine works without the module, and lacks only its function.
	may bool
}

// balloon is the module by which a machine returns unused memory.
const balloon = "virtio_balloon"

// needs returns the modules in loading order, without their dependencies.
func needs() []need {
	return []need{
		{name: "virtio_ring", says: "", what: "the devices of machines"},
		{name: "virtio", says: "virtio", what: "the devices of machines"},
		{name: "virtio_mmio", says: "virtio-mmio", what: "how the machine finds its devices"},
		{name: "virtio_console", says: "virtio-ports", what: "how the machine is spoken to"},
		{name: "fuse", says: "fuse", what: "files of the host"},
		{name: "overlay", says: "overlay", what: "the private layer over them"},
		{name: "virtio_net", says: "virtio_net", what: "the network"},
		{name: "virtio_rng", says: "virtio_rng", what: "randomness"},
		{name: balloon, says: balloon, what: "memory that is given back", may: true},
	}
}

// Modules returns the modules that a machine needs, in loading order. It leaves out those
// built into the kernel. It refuses a kernel that lacks one.
func (k Kernel) Modules() ([]Module, error) {
	s, err := k.shelf()
	if err != nil {
		return nil, err
	}
	return s.order, nil
}

// GivesBack reports whether a machine with this kernel returns unused memory to the host.
func (k Kernel) GivesBack() (bool, error) {
	s, err := k.shelf()
	if err != nil {
		return false, err
	}
	if k.Directory == "" {
		return says(k.Path, balloon)
	}
	return s.builtin[balloon] || s.taken[balloon], nil
}

// shelf looks at the kernel's modules and takes the needed ones.
func (k Kernel) shelf() (*shelf, error) {
	s := &shelf{kernel: k, files: map[string]string{}, builtin: map[string]bool{}, taken: map[string]bool{}}
	if k.Directory == "" {
		return s, s.builtIn()
	}
	dir, err := os.OpenRoot(k.Directory)
	if err != nil {
		return nil, fmt.Errorf("modules of the kernel %s: %w", k.Release, err)
	}
	defer dir.Close()
	s.dir = dir
	if err := s.look(); err != nil {
		return nil, fmt.Errorf("modules of the kernel %s: %w", k.Release, err)
	}
	for _, n := range needs() {
		if n.may && !s.builtin[n.name] && s.files[n.name] == "" {
			continue
		}
		if err := s.add(n.name, nil); err != nil {
			return nil, about("kernel "+k.Release+": "+n.what, err)
		}
	}
	return s, nil
}

// A shelf is a directory of modules.
type shelf struct {
	kernel   Kernel
	files    map[string]string // path below the directory, by name
	builtin  map[string]bool
	dir      *os.Root
	unsigned bool // modules need no signature
	order    []Module
	taken    map[string]bool // names of the modules in order
}

// builtIn refuses a kernel without modules if a needed module is not built in.
func (s *shelf) builtIn() error {
	var lack []string
	for _, n := range needs() {
		if n.may {
			continue
		}
		if has, err := says(s.kernel.Path, n.says); err != nil {
			return err
		} else if !has {
			lack = append(lack, n.name)
		}
	}
	if len(lack) > 0 {
		return absent(fmt.Sprintf("the kernel %s has not built in what machines need (%s), and no directory with its modules was found", s.kernel.Path, strings.Join(lack, ", ")),
			"name a kernel whose modules are in /lib/modules, or use the one of `paddock vm setup`")
	}
	return nil
}

// look reads the directory.
func (s *shelf) look() error {
	text, err := readIn(s.dir, "modules.builtin", maxConfig)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for line := range strings.Lines(string(text)) {
		s.builtin[moduleName(strings.TrimSpace(line))] = true
	}
	config, err := readIn(s.dir, "config", maxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		config, err = readBounded("/boot/config-"+s.kernel.Release, maxConfig)
	}
	s.unsigned = err != nil || !bytes.Contains(config, []byte("\nCONFIG_MODULE_SIG_FORCE=y\n"))
	return fs.WalkDir(s.dir.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := moduleName(path); name != "" && d.Type().IsRegular() {
			s.files[name] = path
		}
		return nil
	})
}

// moduleName returns the name of the module in a file, or "" if it is not one.
func moduleName(path string) string {
	base := filepath.Base(path)
	for _, suffix := range []string{".ko", ".ko.xz", ".ko.zst", ".ko.gz"} {
		if name, ok := strings.CutSuffix(base, suffix); ok {
			return strings.ReplaceAll(name, "-", "_")
		}
	}
	return ""
}

// add adds a module after its dependencies. above lists the modules that depend on it.
func (s *shelf) add(name string, above []string) error {
	name = strings.ReplaceAll(name, "-", "_")
	if s.builtin[name] || s.taken[name] {
		return nil
	}
	if slices.Contains(above, name) || len(above) > 32 {
		return fmt.Errorf("modules depend on each other in a circle: %s: %w", strings.Join(append(above, name), ", "), paddock.Invalid)
	}
	path, ok := s.files[name]
	if !ok {
		return absent(fmt.Sprintf("the module %s is neither built in nor in %s", name, s.kernel.Directory), "use the kernel of `paddock vm setup`")
	}
	f, err := s.dir.Open(path)
	if err != nil {
		return err
	}
	data, err := unpackedModule(path, f)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("module %s: %w", name, err)
	}
	info, err := moduleInfo(data)
	if err != nil {
		return fmt.Errorf("module %s: %w", name, err)
	}
	if release, _, _ := strings.Cut(info["vermagic"], " "); release != s.kernel.Release {
		return fmt.Errorf("module %s in %s is of the kernel %q, not %q: %w", name, s.kernel.Directory, release, s.kernel.Release, paddock.Invalid)
	}
	for needed := range strings.SplitSeq(info["depends"], ",") {
		if needed == "" {
			continue
		}
		if err := s.add(needed, append(slices.Clone(above), name)); err != nil {
			return err
		}
	}
	if s.unsigned {
		data = withoutSignature(data)
	}
	s.taken[name] = true
	s.order = append(s.order, Module{Name: name, Data: data})
	return nil
}

// unpackedModule reads a module file in any compression.
func unpackedModule(path string, r io.Reader) ([]byte, error) {
	unpack, ok := map[string]format{".ko": plain, ".xz": unxz, ".zst": unzstd, ".gz": ungzip}[filepath.Ext(path)]
	if !ok {
		return nil, fmt.Errorf("%s: %w", path, paddock.Unsupported)
	}
	return unpack.read(r, maxModule)
}

// moduleInfo parses the metadata of a module.
func moduleInfo(data []byte) (map[string]string, error) {
	text, err := section(data, ".modinfo")
	if err != nil {
		return nil, err
	}
	info := map[string]string{}
	for part := range bytes.SplitSeq(text, []byte{0}) {
		key, value, ok := strings.Cut(string(part), "=")
		if ok && len(key) < 64 && len(info) < 4096 {
			info[key] = value
		}
	}
	return info, nil
}

const (
	signatureEnd  = "~Module signature appended~\n"
	signatureHead = 12 // bytes before it: kind and length of the signature
)

// withoutSignature removes a signature. Only the guest's kernel would check it, and does
// not require it. The modules come from the same source as the kernel.
func withoutSignature(data []byte) []byte {
	rest, ok := bytes.CutSuffix(data, []byte(signatureEnd))
	if !ok || len(rest) < signatureHead {
		return data
	}
	head := rest[len(rest)-signatureHead:]
	rest = rest[:len(rest)-signatureHead]
	n := uint64(binary.BigEndian.Uint32(head[8:])) + uint64(head[3]) + uint64(head[4])
	if n > uint64(len(rest)) {
		return data
	}
	return rest[:uint64(len(rest))-n]
}
