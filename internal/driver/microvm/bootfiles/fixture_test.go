package bootfiles

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

const testRelease = "6.1.0-9-test"

// An object is an ELF file with one note and one section.
type object struct {
	note    uint32 // type; 0 if there is none
	section string
	content string
	rest    string // appended
}

func (o object) bytes() []byte {
	le := binary.LittleEndian
	note := append(le.AppendUint32(le.AppendUint32(le.AppendUint32(nil, 4), 8), o.note), "Xen\x00\x01\x00\x00\x00\x00\x00\x00\x00"...)
	names := "\x00.names\x00" + o.section + "\x00"
	noteAt := elfHeader + elfProgram
	namesAt := noteAt + len(note)
	contentAt := namesAt + len(names)
	headersAt := contentAt + len(o.content) + len(o.rest)

	head := make([]byte, elfHeader)
	copy(head, "\x7fELF\x02\x01\x01")
	le.PutUint16(head[18:], x86)
	le.PutUint64(head[32:], elfHeader)
	le.PutUint64(head[40:], uint64(headersAt))
	le.PutUint16(head[54:], elfProgram)
	le.PutUint16(head[56:], 1)
	le.PutUint16(head[58:], elfSection)
	le.PutUint16(head[60:], 3)
	le.PutUint16(head[62:], 1)
	program := make([]byte, elfProgram)
	if o.note != 0 {
		le.PutUint32(program, noteType)
	}
	le.PutUint64(program[8:], uint64(noteAt))
	le.PutUint64(program[32:], uint64(len(note)))
	sections := make([]byte, 3*elfSection)
	for i, s := range [][3]int{{}, {1, namesAt, len(names)}, {8, contentAt, len(o.content)}} {
		le.PutUint32(sections[i*elfSection:], uint32(s[0]))
		le.PutUint64(sections[i*elfSection+24:], uint64(s[1]))
		le.PutUint64(sections[i*elfSection+32:], uint64(s[2]))
	}
	return bytes.Join([][]byte{head, program, note, []byte(names), []byte(o.content), []byte(o.rest), sections}, nil)
}

// testKernel returns a kernel that lists its built-in modules.
func testKernel(note uint32, builtin string) []byte {
	return object{note: note, section: ".rodata", content: "%s version %s\x00Linux version " + testRelease + " (somebody) #1\x00" + builtin}.bytes()
}

// testModule returns a module with dependencies.
func testModule(release, depends string) []byte {
	return object{section: ".modinfo", content: "license=GPL\x00depends=" + depends + "\x00vermagic=" + release + " SMP mod_unload \x00"}.bytes()
}

// signed appends a fake signature.
func signed(module []byte) []byte {
	head := binary.BigEndian.AppendUint32(make([]byte, 8), 5)
	return bytes.Join([][]byte{module, []byte("hello"), head, []byte(signatureEnd)}, nil)
}

// testImage returns a bzImage with compressed content.
func testImage(release string, packed []byte) []byte {
	const sectors = 3
	data := make([]byte, (sectors+1)*512)
	data[headSectors] = sectors
	copy(data[headMagic:], "HdrS")
	le := binary.LittleEndian
	le.PutUint16(data[headProtocol:], 0x20f)
	le.PutUint16(data[headVersion:], 0x300-0x200)
	copy(data[0x300:], release+" (somebody) #1")
	le.PutUint32(data[headPayload:], 64)
	le.PutUint32(data[headLength:], uint32(len(packed)))
	return bytes.Join([][]byte{data, make([]byte, 64), packed, []byte("what follows")}, nil)
}

// packers returns the compressors of kernels, modules and packages.
func packers() map[string]func(io.Writer) (io.WriteCloser, error) {
	return map[string]func(io.Writer) (io.WriteCloser, error){
		".gz":  func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil },
		".zst": func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) },
		".xz":  func(w io.Writer) (io.WriteCloser, error) { return xz.NewWriter(w) },
	}
}

func packed(t testing.TB, kind string, data []byte) []byte {
	t.Helper()
	if kind == "" {
		return data
	}
	var b bytes.Buffer
	w, err := packers()[kind](&b)
	if err == nil {
		_, err = w.Write(data)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// packedLZ4 encodes data in the legacy format without compressing it.
func packedLZ4(data []byte) []byte {
	block := []byte{0xf0}
	for n := len(data) - 15; ; n -= 255 {
		block = append(block, byte(min(n, 255)))
		if n < 255 {
			break
		}
	}
	block = append(block, data...)
	return append(binary.LittleEndian.AppendUint32([]byte("\x02\x21\x4c\x18"), uint32(len(block))), block...)
}

// A file is a file of a package.
type file struct {
	name string
	data []byte
}

// testPackage returns a Debian package.
func testPackage(t testing.TB, kind string, files []file) []byte {
	t.Helper()
	var content bytes.Buffer
	w := tar.NewWriter(&content)
	for _, f := range files {
		if err := w.WriteHeader(&tar.Header{Name: "." + f.name, Mode: 0o644, Size: int64(len(f.data)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(f.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	b := bytes.NewBufferString("!<arch>\n")
	for _, f := range []file{{"debian-binary", []byte("2.0\n")}, {"control.tar.xz", []byte("odd")}, {"data.tar" + kind, packed(t, kind, content.Bytes())}} {
		fmt.Fprintf(b, "%-16s%-12d%-6d%-6d%-8o%-10d`\n%s", f.name, 0, 0, 0, 0o100644, len(f.data), f.data)
		if len(f.data)%2 == 1 {
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
}

// modulesOf are what a kernel has of modules: file by path.
func modulesOf(release string) map[string][]byte {
	return map[string][]byte{
		"kernel/drivers/virtio/virtio.ko":                  signed(testModule(release, "virtio_ring")),
		"kernel/drivers/virtio/virtio_ring.ko":             signed(testModule(release, "")),
		"kernel/drivers/virtio/virtio_mmio.ko":             testModule(release, "virtio,virtio_ring"),
		"kernel/drivers/char/virtio_console.ko":            testModule(release, "virtio,virtio_ring"),
		"kernel/drivers/char/hw_random/virtio-rng.ko":      testModule(release, "virtio,rng-core,virtio_ring"),
		"kernel/drivers/net/net_failover.ko":               testModule(release, "failover"),
		"kernel/net/core/failover.ko":                      testModule(release, ""),
		"kernel/drivers/net/virtio_net.ko":                 testModule(release, "net_failover,virtio,virtio_ring"),
		"kernel/drivers/virtio/virtio_balloon.ko":          testModule(release, "virtio,virtio_ring"),
		"kernel/fs/overlayfs/overlay.ko":                   testModule(release, ""),
		"kernel/drivers/gpu/drm/unwanted.ko":               testModule(release, ""),
		"modules.builtin":                                  []byte("kernel/drivers/char/hw_random/rng-core.ko\nkernel/fs/fuse/fuse.ko\n"),
		"modules.order":                                    []byte("kernel/fs/fuse/fuse.ko\n"),
		"kernel/drivers/virtio/virtio_pci_modern_dev.ko.d": nil,
	}
}

// inOrder are the modules of modulesOf that are loaded.
func inOrder() []string {
	return []string{"virtio_ring", "virtio", "virtio_mmio", "virtio_console", "overlay", "failover", "net_failover", "virtio_net", "virtio_rng", "virtio_balloon"}
}

func writeFiles(t testing.TB, dir string, files map[string][]byte) {
	t.Helper()
	for name, data := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// named gives what a package of the kernel has.
func packageFiles(release string) []file {
	list := []file{
		{"/boot/vmlinuz-" + release, testImage(release, packedLZ4(testKernel(pvhEntry, "")))},
		{"/boot/config-" + release, []byte("CONFIG_PVH=y\n")},
		{"/usr/share/doc/copyright", []byte("GPL")},
	}
	list[0].data = testImage(release, append(packedLZ4(testKernel(pvhEntry, "")), 0, 0, 0, 0))
	for name, data := range modulesOf(release) {
		list = append(list, file{"/lib/modules/" + release + "/" + name, data})
	}
	return list
}
