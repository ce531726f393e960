package boot

import (
	"bytes"
	"fmt"
	"io"
)

// A Module is one of a kernel's, as it is loaded.
type Module struct {
	Name string // as the kernel calls it: virtio_net
	Data []byte // an ELF object without a signature
}

// Initrd writes the file system that a machine starts with: its init, and the
// modules in the order in which they are to be loaded (/modules/00-name.ko).
// The same input makes the same bytes.
func Initrd(w io.Writer, guest []byte, modules []Module) error {
	a := archive{w: w}
	for _, name := range []string{"dev", "modules", "proc", "proc/sys", "proc/sys/vm", "root", "run", "sys", "tmp"} {
		a.put(name, modeDir|0o755, nil, device{})
	}
	// What init says before it has mounted anything goes there.
	a.put("dev/console", modeChar|0o600, nil, device{5, 1})
	a.put("dev/null", modeChar|0o666, nil, device{1, 3})
	// A program that is its own agent may hold packages that look here before its
	// first line is executed, which is before anything is mounted. It is the
	// kernel's own value.
	a.put("proc/sys/vm/mmap_min_addr", modeFile|0o444, []byte("65536\n"), device{})
	for i, m := range modules {
		a.put(fmt.Sprintf("modules/%02d-%s.ko", i, m.Name), modeFile|0o644, m.Data, device{})
	}
	a.put("init", modeFile|0o755, guest, device{})
	a.put("TRAILER!!!", 0, nil, device{})
	return a.err
}

const (
	modeFile = 0o100000
	modeDir  = 0o040000
	modeChar = 0o020000
)

// A device is the number of one.
type device struct{ major, minor int }

// An archive is a cpio archive of the kind that the kernel unpacks ("newc").
type archive struct {
	w    io.Writer
	made int
	err  error
}

func (a *archive) put(name string, mode int, data []byte, d device) {
	if a.err != nil {
		return
	}
	a.made++
	var head bytes.Buffer
	head.WriteString("070701")
	for _, v := range []int{a.made, mode, 0, 0, 1, 0, len(data), 0, 0, d.major, d.minor, len(name) + 1, 0} {
		fmt.Fprintf(&head, "%08X", v)
	}
	head.WriteString(name + "\x00")
	head.Write(padding(head.Len()))
	for _, part := range [][]byte{head.Bytes(), data, padding(len(data))} {
		if _, a.err = a.w.Write(part); a.err != nil {
			return
		}
	}
}

// padding fills up to a multiple of four bytes.
func padding(n int) []byte { return make([]byte, -n&3) }
