package bootfiles

import (
	"bytes"
	"fmt"
	"io"
)

// A Module is a kernel module in a form that can be loaded.
type Module struct {
	Name string // the kernel's name, such as virtio_net
	Data []byte // an ELF object without a signature
}

// Initrd writes the initial file system of a machine: its init, and the modules in loading
// order (/modules/00-name.ko). The same input gives the same bytes.
func Initrd(w io.Writer, guest []byte, modules []Module) error {
	a := archive{w: w}
	for _, name := range []string{"dev", "modules", "proc", "proc/sys", "proc/sys/vm", "root", "run", "sys", "tmp"} {
		a.put(name, modeDir|0o755, nil, device{})
	}
	// Init writes here before it has mounted anything.
	a.put("dev/console", modeChar|0o600, nil, device{5, 1})
	a.put("dev/null", modeChar|0o666, nil, device{1, 3})
	// The agent's Go packages may read this file during initialisation, before anything is
	// mounted. The value is the kernel's default.
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

// A device is a device number.
type device struct{ major, minor int }

// An archive is a cpio archive in the kernel's format ("newc").
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

// padding returns the bytes that fill up n to a multiple of four.
func padding(n int) []byte { return make([]byte, -n&3) }
