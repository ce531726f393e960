// Package wire is what the three parties of a virtual machine say to each other:
// the driver on the host, the monitor in the box, and the init in the machine.
//
// The machine is hostile: whatever comes out of it may say anything, and every
// reader here bounds what it takes.
package wire

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/container/inner"
)

// Names of the machine's ports (virtio-serial). The monitor's end of each is a
// connection that is made when the machine runs, and made anew when it goes on
// from memory: inside, the port then was closed and is open again.
const (
	ControlPort = "paddock.control" // requests and answers, see Conn
	FilesPort   = "paddock.files"   // FUSE, as /dev/fuse speaks it: messages begin with their length
	AgentPort   = "paddock.agent"   // yamux, whose server is inside; each stream is a connection to the agent (package inside)
)

// A Machine says what the monitor is to run. The host makes it.
type Machine struct {
	Engine    string   `json:"engine"`              // path of QEMU, in the directory inner.Engine
	Accel     Accel    `json:"accel"`               // what runs the machine's processors
	CPU       string   `json:"cpu"`                 // their model, and what they have besides: ",+avx"
	CPUs      int      `json:"cpus"`                // how many
	Memory    int64    `json:"memory"`              // bytes of the whole machine
	Limit     int64    `json:"limit"`               // bytes of it that commands may have
	Arguments string   `json:"arguments,omitempty"` // the kernel's
	Firmware  []string `json:"firmware,omitempty"`  // directories of QEMU's own files, in inner.Engine

	// Places among KernelFiles.Supplies, from 1; 0 is none.
	Kernel int `json:"kernel,omitempty"` // an ELF kernel with a PVH entry
	Initrd int `json:"initrd,omitempty"`
	KVM    int `json:"kvm,omitempty"`   // /dev/kvm, open
	State  int `json:"state,omitempty"` // of a template: its devices
	RAM    int `json:"ram,omitempty"`   // of a template: its memory, read-only, as long as Memory

	// Hold has the machine stop when its init waits for Begin, to be saved as a
	// template.
	Hold bool `json:"hold,omitempty"`
}

// An Accel is what runs a machine's processors.
type Accel string

// What QEMU calls them.
const (
	KVM Accel = "kvm"
	TCG Accel = "tcg"
)

// A Request is one to the machine's init; an Answer follows.
type Request struct {
	Begin   *Begin   `json:"begin,omitempty"`
	Hold    bool     `json:"hold,omitempty"`    // let no more requests for files out, and answer when none is under way
	Go      bool     `json:"go,omitempty"`      // undoes Hold
	Archive *Archive `json:"archive,omitempty"` // chunks follow the answer, the last is empty
	Memory  int64    `json:"memory,omitempty"`  // bytes that commands may have from now on
	Inspect bool     `json:"inspect,omitempty"`
}

// Begin is the first request to a machine that was started, or that goes on from
// memory. Nothing else runs in it before it is answered.
type Begin struct {
	Again    bool   `json:"again,omitempty"` // it goes on from memory of a running box: only the next four count
	Entropy  []byte `json:"entropy"`         // for the machine's own generator, 64 bytes
	Time     int64  `json:"time"`            // ns since 1970
	Hostname string `json:"hostname"`
	Machine  string `json:"machine"` // what /etc/machine-id is to say: 32 hexadecimal digits

	Link   bool         `json:"link,omitempty"` // there is an interface
	Binds  []inner.Bind `json:"binds,omitempty"`
	Disk   int64        `json:"disk"`            // bytes of the private layer
	Memory int64        `json:"memory"`          // bytes that commands may have
	UID    int          `json:"uid"`             // the box's user
	GID    int          `json:"gid"`             // likewise
	Sudo   bool         `json:"sudo,omitempty"`  // commands have sudo
	Layer  bool         `json:"layer,omitempty"` // chunks with an archive of the private layer follow
}

// An Archive asks for the private layer.
type Archive struct {
	All     int64 `json:"all"`     // see inner.Room
	Content int64 `json:"content"` // likewise
	File    int64 `json:"file"`    // likewise
}

// An Answer is the machine's.
type Answer struct {
	Error  string       `json:"error,omitempty"`
	Kind   paddock.Kind `json:"kind,omitempty"`
	Kills  int64        `json:"kills,omitempty"`  // processes that were ended for lack of memory
	Memory int64        `json:"memory,omitempty"` // bytes that commands have
	Peak   int64        `json:"peak,omitempty"`
}

// Err is why it failed.
func (a *Answer) Err() error {
	if a.Error == "" {
		return nil
	}
	return fmt.Errorf("%s: %w", inner.Words(a.Error, 1000), a.Kind)
}

// Bounds of what one message says, in bytes.
const (
	MaxMessage = 1 << 20
	MaxChunk   = 256 << 10
)

// Warm has it worked out how messages are made of values. It takes longer than all the
// rest of a first message, and both ends have time for it before.
func Warm() error {
	r := Request{Begin: &Begin{Entropy: []byte{1}, Binds: []inner.Bind{{}}}, Archive: &Archive{}}
	data, err := json.Marshal(&r)
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err == nil {
		_, err = json.Marshal(Answer{})
	}
	return err
}

// Write writes a message: four bytes of length, the lowest first, then JSON.
func Write(w io.Writer, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return WriteChunk(w, data)
}

// Read reads a message.
func Read(r io.Reader, v any) error {
	data, err := readBounded(r, MaxMessage)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}

// WriteChunk writes bytes in the same frame.
func WriteChunk(w io.Writer, data []byte) error {
	frame := binary.LittleEndian.AppendUint32(make([]byte, 0, 4+len(data)), uint32(len(data)))
	_, err := w.Write(append(frame, data...))
	return err
}

// ReadChunk reads them.
func ReadChunk(r io.Reader) ([]byte, error) { return readBounded(r, MaxChunk) }

func readBounded(r io.Reader, limit uint32) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n > limit {
		return nil, fmt.Errorf("a message of %d bytes: %w", n, paddock.Invalid)
	}
	data := make([]byte, n)
	_, err := io.ReadFull(r, data)
	return data, err
}
