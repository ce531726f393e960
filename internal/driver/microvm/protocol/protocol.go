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

// Names of the machine's ports (virtio-serial). The monitor's end of each is a
// connection that is made when the machine runs, and made anew when it goes on
// from memory: inside, the port then was closed and is open again.
const (
	ControlPort = "paddock.control" // requests and answers, see Conn
	FilesPort   = "paddock.files"   // FUSE, as /dev/fuse speaks it: messages begin with their length
	AgentPort   = "paddock.agent"   // yamux, whose server is inside; each stream is a connection to the agent (package guestinit)
)

// A Machine says what the monitor is to run. The host makes it.
type Machine struct {
	Engine    string   `json:"engine"`              // path of QEMU, in the directory boxinit.Engine
	Accel     Accel    `json:"accel"`               // what runs the machine's processors
	CPU       string   `json:"cpu"`                 // their model, and what they have besides: ",+avx"
	CPUs      int      `json:"cpus"`                // how many
	Memory    int64    `json:"memory"`              // bytes of the whole machine
	Limit     int64    `json:"limit"`               // bytes of it that commands may have
	Arguments string   `json:"arguments,omitempty"` // the kernel's
	Firmware  []string `json:"firmware,omitempty"`  // directories of QEMU's own files, in boxinit.Engine

}

// Names of the files that a machine is made with, in boxinit.GuestKernelFiles.Supplies.
const (
	FileLinux  = "linux" // an ELF kernel with a PVH entry
	FileInitrd = "initrd"
	FileKVM    = "kvm"             // /dev/kvm, open
	FileState  = "template state"  // of a template: its devices
	FileMemory = "template memory" // of a template: its memory, read-only, as long as Machine.Memory
)

// An Accel is what runs a machine's processors.
type Accel string

// What QEMU calls them.
const (
	KVM Accel = "kvm"
	TCG Accel = "tcg"
)

// A Request is one to the machine's init; an Answer follows.
type Request struct {
	Begin   *Begin
	Hold    bool     // let no more requests for files out, and answer when none is under way
	Go      bool     // undoes Hold
	Archive *Archive // chunks follow the answer, the last is empty
	Memory  int64    // bytes that commands may have from now on
	Inspect bool
}

// Begin is the first request to a machine that was started, or that goes on from
// memory. Nothing else runs in it before it is answered.
type Begin struct {
	Again    bool   // it goes on from memory of a running box: only the next four count
	Entropy  []byte // for the machine's own generator, 64 bytes
	Time     int64  // ns since 1970
	Hostname string
	Machine  string // what /etc/machine-id is to say: 32 hexadecimal digits

	Link   bool // there is an interface
	Binds  []boxinit.Bind
	Disk   int64 // bytes of the private layer
	Memory int64 // bytes that commands may have
	UID    int   // the box's user
	GID    int   // likewise
	Sudo   bool  // commands have sudo
	Layer  bool  // chunks with an archive of the private layer follow
}

// An Archive asks for the private layer.
type Archive struct {
	All     int64 // see boxinit.Room
	Content int64 // likewise
	File    int64 // likewise
}

// An Answer is the machine's.
type Answer struct {
	Error  string
	Kind   paddock.Kind
	Kills  int64 // processes that were ended for lack of memory
	Memory int64 // bytes that commands have
	Peak   int64
}

// Err is why it failed.
func (a *Answer) Err() error {
	if a.Error == "" {
		return nil
	}
	return fmt.Errorf("%s: %w", boxinit.Words(a.Error, 1000), a.Kind)
}

// Bounds of what one message says, in bytes.
const (
	MaxMessage = 1 << 20
	MaxChunk   = 256 << 10
)

// Write writes a message.
func Write(w io.Writer, m framing.Message) error { return framing.Write(w, m) }

// Read reads a message.
func Read(r io.Reader, m framing.Message) error { return framing.Read(r, m, MaxMessage) }

// WriteChunk writes bytes in the same frame.
func WriteChunk(w io.Writer, data []byte) error { return framing.WriteFrame(w, data) }

// ReadChunk reads them.
func ReadChunk(r io.Reader) ([]byte, error) { return framing.ReadFrame(r, MaxChunk) }
