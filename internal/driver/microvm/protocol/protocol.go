// Package protocol defines the messages between the three parties of a virtual machine: the driver on
// the host, the supervisor in the box, and the init process in the machine.
//
// The machine is hostile and may send anything, so every reader here bounds what it reads.
package protocol

import (
	"fmt"
	"io"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/framing"
)

// Names of the machine's virtio-serial ports. The supervisor connects to each port when the
// machine runs, and again after a restore. Inside, a restored machine sees the port closed
// and open again.
const (
	ControlPort = "paddock.control" // requests and answers, see Conn
	FilesPort   = "paddock.files"   // FUSE as on /dev/fuse: messages begin with their length
	AgentPort   = "paddock.agent"   // yamux, server inside; each stream is a connection to the agent (see guestinit)
)

// A Machine describes the machine that the supervisor runs. The host makes it.
type Machine struct {
	Engine    string   `json:"engine"`              // path of QEMU in the directory boxinit.Engine
	Accel     Accel    `json:"accel"`               // how the machine's processors run
	CPU       string   `json:"cpu"`                 // processor model with additional features, such as ",+avx"
	CPUs      int      `json:"cpus"`                // number of processors
	Memory    int64    `json:"memory"`              // bytes of the whole machine
	Limit     int64    `json:"limit"`               // bytes of it for commands
	Arguments string   `json:"arguments,omitempty"` // the kernel's command line
	Firmware  []string `json:"firmware,omitempty"`  // directories of QEMU's own files in boxinit.Engine

	// Stamps are the stamps of the files of which the machine is made, by name; see Stamp.
	Stamps map[string]string `json:"stamps,omitempty"`
}

// Names of the files for a machine in boxinit.GuestKernelFiles.Supplies. A box whose user owns those that have a Place
// finds them there instead.
const (
	FileLinux  = "linux" // an ELF kernel with a PVH entry
	FileInitrd = "initrd"
	FileKVM    = "kvm"             // /dev/kvm, open
	FileState  = "template state"  // devices of a template
	FileMemory = "template memory" // memory of a template, read-only, of size Machine.Memory
)

// Paths by which QEMU opens the files that it is given.
const (
	PathLinux  = "/paddock/kernel"
	PathInitrd = "/paddock/initrd"
	PathMemory = "/paddock/memory"
)

// Place returns the path of a file in boxinit.Engine if it is mounted there, or "" for a file that always comes as a
// descriptor.
func Place(name string) string {
	switch name {
	case FileLinux:
		return PathLinux
	case FileInitrd:
		return PathInitrd
	case FileMemory:
		return PathMemory
	}
	return ""
}

// An Accel is how the processors of a machine run.
type Accel string

// QEMU's names for them.
const (
	KVM Accel = "kvm"
	TCG Accel = "tcg"
)

// A Request is a request to the machine's init, which sends an Answer.
type Request struct {
	Begin   *Begin
	Hold    bool     // send no more file requests, and answer when none is in progress
	Go      bool     // undoes Hold
	Archive *Archive // chunks follow the answer, the last one empty
	Memory  int64    // new memory limit of commands in bytes
	Inspect bool
}

// Begin is the first request to a booted or restored machine. Until it is answered, nothing
// else runs in the machine.
type Begin struct {
	Again    bool   // restored from the memory of a running box; only the next four fields are used
	Entropy  []byte // for the machine's random generator, 64 bytes
	Time     int64  // ns since 1970
	Hostname string
	Machine  string // content of /etc/machine-id: 32 hexadecimal digits

	Link   bool // there is a network interface
	Binds  []boxinit.Bind
	Disk   int64 // size of the private layer in bytes
	Memory int64 // memory limit of commands in bytes
	UID    int   // the box's user
	GID    int   // the box's group
	Sudo   bool  // commands have sudo
	Layer  bool  // chunks with an archive of the private layer follow
}

// An Archive asks for the private layer.
type Archive struct {
	All     int64 // see boxinit.Room
	Content int64 // see boxinit.Room
	File    int64 // see boxinit.Room
}

// An Answer is the machine's answer.
type Answer struct {
	Error  string
	Kind   paddock.Kind
	Kills  int64 // number of OOM kills
	Memory int64 // memory used by commands in bytes
	Peak   int64
}

// Err returns the error of a failed request.
func (a *Answer) Err() error {
	if a.Error == "" {
		return nil
	}
	return fmt.Errorf("%s: %w", boxinit.Words(a.Error, 1000), a.Kind)
}

// Bounds of the parts of a message, in bytes.
const (
	MaxMessage = 1 << 20
	MaxChunk   = 256 << 10
)

// Write writes a message.
func Write(w io.Writer, m framing.Message) error { return framing.Write(w, m) }

// Read reads a message.
func Read(r io.Reader, m framing.Message) error { return framing.Read(r, m, MaxMessage) }

// WriteChunk writes bytes in a frame.
func WriteChunk(w io.Writer, data []byte) error { return framing.WriteFrame(w, data) }

// ReadChunk reads the bytes of a frame.
func ReadChunk(r io.Reader) ([]byte, error) { return framing.ReadFrame(r, MaxChunk) }
