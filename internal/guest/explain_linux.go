package guest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"runtime"
	"strings"
	"syscall"

	"github.com/paddock-sandbox/paddock"
)

// explain says why a program could not be executed. The kernel has one number
// for several causes, so it looks which it was; nothing is decided by that.
func explain(c command, program string, err error) error {
	switch {
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.ENOMEM),
		errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return lacking(fmt.Errorf("start %s: %w", c.args[0], err))
	case errors.Is(err, syscall.E2BIG),
		errors.Is(err, syscall.ENAMETOOLONG) && len(program) < 4096: // gVisor's word for a single long one
		return startError(c, 126, paddock.Invalid, "arguments and environment are too long")
	}
	if words, kind := badDir(c.dir); words != "" {
		return startError(c, 126, kind, words)
	}
	file := program
	if file[0] != '/' {
		file = path.Join("/", c.dir, file)
	}
	info, statErr := os.Stat(file)
	switch {
	case errors.Is(statErr, os.ErrNotExist), errors.Is(statErr, syscall.ENOTDIR):
		return startError(c, 127, paddock.NotFound, "there is no such program")
	case errors.Is(statErr, os.ErrPermission):
		return startError(c, 126, paddock.Denied, "the program cannot be reached: permission denied")
	case statErr == nil && info.IsDir():
		return startError(c, 126, paddock.Invalid, "it is a directory")
	case statErr == nil && info.Mode().IsRegular() && access(file) != nil:
		return startError(c, 126, paddock.Denied, "it is not executable")
	}
	head := readHead(file)
	switch {
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.EACCES), errors.Is(err, syscall.ENOTDIR):
		if words := badInterpreter(head); words != "" {
			return startError(c, 126, paddock.NotFound, words)
		}
	case errors.Is(err, syscall.ENOEXEC):
		if machine := head.machine(); machine != "" {
			return startError(c, 126, paddock.Unsupported, fmt.Sprintf(
				"exec format error: the file is for %s, this machine is %s", machine, thisMachine()))
		}
		return startError(c, 126, paddock.Invalid, "exec format error: it is neither a program nor begins with #!")
	case errors.Is(err, syscall.ETXTBSY):
		return startError(c, 126, paddock.Conflict, "the file is open for writing")
	}
	kind := paddock.Internal
	if errors.Is(err, os.ErrPermission) {
		kind = paddock.Denied
	}
	if known := paddock.KindOf(err); known != paddock.Internal {
		kind = known
	}
	return startError(c, 126, kind, err.Error())
}

// badDir says what is wrong with a working directory.
func badDir(dir string) (string, paddock.Kind) {
	if dir == "" {
		return "", 0
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Sprintf("working directory %q does not exist", dir), paddock.NotFound
	case errors.Is(err, os.ErrPermission):
		return fmt.Sprintf("working directory %q cannot be reached: permission denied", dir), paddock.Denied
	case err != nil:
		return fmt.Sprintf("working directory %q: %v", dir, err), paddock.Invalid
	case !info.IsDir():
		return fmt.Sprintf("working directory %q is not a directory", dir), paddock.Invalid
	case access(dir) != nil:
		return fmt.Sprintf("working directory %q cannot be entered: permission denied", dir), paddock.Denied
	}
	return "", 0
}

// badInterpreter says whether what a program needs to run is missing.
func badInterpreter(h head) string {
	what, name := "the interpreter of the script", h.script()
	if name == "" {
		what, name = "the loader of the program", h.loader()
	}
	if name == "" {
		return ""
	}
	if _, err := os.Stat(name); err != nil {
		return fmt.Sprintf("%s, %q, does not exist", what, name)
	}
	if err := access(name); err != nil {
		return fmt.Sprintf("%s, %q, is not executable", what, name)
	}
	return ""
}

// A head is the beginning of a file that cannot be executed. Its content is
// whatever someone wrote there.
type head []byte

const maxHead = 4096

func readHead(name string) head {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	b := make([]byte, maxHead)
	n, _ := io.ReadFull(f, b)
	return b[:n]
}

// script gives the interpreter that a script's first line names.
func (h head) script() string {
	line, found := bytes.CutPrefix(h, []byte("#!"))
	if !found {
		return ""
	}
	line, _, _ = bytes.Cut(line, []byte("\n"))
	name, _, _ := strings.Cut(strings.TrimLeft(string(line), " \t"), " ")
	name, _, _ = strings.Cut(name, "\t")
	// A carriage return is part of the name for the kernel: the usual cause
	// of an interpreter that seems to be there.
	return name
}

// order gives the byte order and whether the file is of 64 bits; nil where it
// is no ELF file.
func (h head) order() (binary.ByteOrder, bool) {
	if len(h) < 20 || !bytes.HasPrefix(h, []byte("\x7fELF")) {
		return nil, false
	}
	if h[5] == 2 {
		return binary.BigEndian, h[4] == 2
	}
	return binary.LittleEndian, h[4] == 2
}

// machine names what an ELF file was built for.
func (h head) machine() string {
	order, _ := h.order()
	if order == nil {
		return ""
	}
	m := order.Uint16(h[18:])
	names := map[uint16]string{
		3: "Intel 80386", 8: "MIPS", 20: "PowerPC", 21: "64-bit PowerPC", 22: "IBM S/390",
		40: "ARM", 62: "x86-64", 183: "ARM aarch64", 243: "RISC-V", 258: "LoongArch",
	}
	if name, ok := names[m]; ok {
		return name
	}
	return fmt.Sprintf("machine number %d", m)
}

func thisMachine() string {
	switch runtime.GOARCH {
	case "amd64":
		return "x86-64"
	case "arm64":
		return "ARM aarch64"
	}
	return runtime.GOARCH
}

// loader gives the dynamic loader that an ELF file asks for, where its name
// lies in the head.
func (h head) loader() string {
	order, wide := h.order()
	if order == nil || len(h) < 64 {
		return ""
	}
	// Where the table of segments is, how long an entry, how many.
	at, size, count := uint64(order.Uint32(h[28:])), order.Uint16(h[42:]), order.Uint16(h[44:])
	if wide {
		at, size, count = order.Uint64(h[32:]), order.Uint16(h[54:]), order.Uint16(h[56:])
	}
	for i := range uint64(min(count, 64)) {
		entry, ok := h.slice(at+i*uint64(size), 56)
		if !ok {
			return ""
		}
		const interp = 3
		if order.Uint32(entry) != interp {
			continue
		}
		from, length := uint64(order.Uint32(entry[4:])), uint64(order.Uint32(entry[16:]))
		if wide {
			from, length = order.Uint64(entry[8:]), order.Uint64(entry[32:])
		}
		name, ok := h.slice(from, length)
		if !ok {
			return ""
		}
		name, _, _ = bytes.Cut(name, []byte{0})
		return string(name)
	}
	return ""
}

// slice gives n bytes from an offset, if the head has them.
func (h head) slice(at, n uint64) (head, bool) {
	if at > uint64(len(h)) || n > uint64(len(h))-at {
		return nil, false
	}
	return h[at : at+n], true
}
