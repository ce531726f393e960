// Package boxinit sets up a box from inside: it builds the file tree, drops every privilege and
// installs the filters. Then it serves as the box's agent and init process, or starts the guest kernel
// that commands run on.
//
// It runs from the first instruction inside the new namespaces, as an unprivileged user of the host.
// The host's decisions arrive as a [Config] on descriptor 3. Descriptor 4 is the first connection to
// the agent.
package boxinit

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest"
)

// Descriptors that the box is started with.
const (
	ControlFD = 3
	ConnFD    = 4
)

// A box that is full must not end its agent. A Go program that cannot make a thread when
// it needs one ends. So the agent has AgentThreads from the start, and keeps them. They
// are counted beside the limit of processes. Where it needs more for a while, it may have
// SpareThreads more, which no command can take: a command inherits a bound without them.
const (
	AgentThreads = 16
	SpareThreads = 256
)

// BrokerFailed is the exit status of a box whose broker failed.
const BrokerFailed = 3

// GuestKernelEnded is the exit status of a box whose guest kernel ended.
const GuestKernelEnded = 4

// Ended says what the other statuses mean that a box's init ends with. A crash is 2, of
// Go's runtime: its words go nowhere, but to the host's standard error where the
// sandbox's environment has PADDOCK_DEBUG.
func Ended(status int) string {
	why := "for no reason that is known"
	switch status {
	case 0:
		why = "since nobody asks it for anything any more"
	case 1:
		why = "after it could not make the sandbox, or tell why"
	case 2:
		why = "in a crash of its own, as where the machine had no memory or no thread left for it; with PADDOCK_DEBUG=1 in the sandbox's environment it tells more on standard error"
	}
	return fmt.Sprintf("the sandbox's init ended with status %d, %s", status, why)
}

// What a box with a link calls it, and the addresses of it and of what answers
// names at the other end. They are in ranges that no network uses.
const (
	LinkName  = "eth0"
	LinkMTU   = 65520
	Address4  = "198.18.0.2"
	Address6  = "fd7a:6f74::2"
	Resolver4 = "198.18.0.1"
)

// Argv0 is the name by which a program knows that it was started as a box.
const Argv0 = "paddock-guest-jail"

// A Config tells the box's init how to build the box. It comes from the host and is trusted.
type Config struct {
	Mounts   []Mount           `json:"mounts"`
	Hostname string            `json:"hostname"`
	HostNet  bool              `json:"host_net,omitempty"` // no network namespace of its own
	Link     bool              `json:"link,omitempty"`     // an interface, whose other end the host gets in a Report
	User     guest.User        `json:"user"`
	Env      map[string]string `json:"env"`
	Dir      string            `json:"dir"`
	Files    int               `json:"files"` // RLIMIT_NOFILE
	PIDs     int               `json:"pids"`  // RLIMIT_NPROC

	// Landlock is off only where the caller accepted that by name.
	Landlock bool `json:"landlock"`
	// Writable are the paths inside that may be changed at all.
	Writable []string `json:"writable"`
	// Trees are those of Writable that the broker decides about.
	Trees []Tree `json:"trees,omitempty"`
	// Hosts are the paths where files of the host are mounted.
	Hosts []string `json:"hosts,omitempty"`
	// Deny are paths that may be neither made nor changed.
	Deny      []string `json:"deny,omitempty"`
	Protect   []string `json:"protect,omitempty"`
	Unprotect []string `json:"unprotect,omitempty"`

	// GuestKernel describes the kernel that commands run on. Nil is the host's kernel.
	GuestKernel *GuestKernelConfig `json:"kernel,omitempty"`

	// Names are those of the descriptors that come along, in their order; see [Files].
	Names []string `json:"names,omitempty"`
}

// A GuestKernelConfig describes the kernel that a box brings for its commands.
type GuestKernelConfig struct {
	// Binds are the host's files that are mounted past the private layer. The
	// tree has them already, at Root and their target.
	Binds []Bind `json:"binds,omitempty"`
	Disk  int64  `json:"disk"`  // bytes of the private layer
	Token []byte `json:"token"` // what the agent knows the host by

	// Sudo says that the agent answers what commands ask by sudo.
	Sudo bool `json:"sudo,omitempty"`

	// Layered says that the box began with an archive of the private layer:
	// the one file of FileImage, unless it goes on from memory.
	Layered bool `json:"layered,omitempty"`
	Memory  bool `json:"memory,omitempty"` // FileImage holds memory too

	// Audit lists the kinds of events that the guest kernel writes to FileEvents.
	Audit []paddock.AuditKind `json:"audit,omitempty"`

	// Machine describes the virtual machine that the guest kernel runs in. Only its
	// own init reads it.
	Machine  json.RawMessage `json:"machine,omitempty"`
	Number   []byte          `json:"number,omitempty"`   // the machine's own, of 16 bytes, which those that go on from the same memory do not share
	Made     int64           `json:"made,omitempty"`     // bytes of memory that commands could have when it was made, and can have at most
	Overhead int64           `json:"overhead,omitempty"` // bytes of memory beside the limit, which the host allows
	Shape    string          `json:"shape,omitempty"`    // of the machine: memory of one shape goes on in it only
	About    string          `json:"about,omitempty"`    // the same in words

	// Room bounds what is written to FileTemplate, where that comes along.
	Room Room `json:"room,omitzero"`
}

// A Bind is a file or directory of the host's.
type Bind struct {
	Target string `json:"target"` // as commands see it
	Write  bool   `json:"write,omitempty"`
	IsFile bool   `json:"is_file,omitempty"`
}

// Places of the box that only the kernel's starter sees: the tree of the
// commands, a directory for what the starter needs, and its own program, where
// that is a file.
const (
	Root    = "/root"
	State   = "/state"
	Program = "/program"

	// Engine is the tree that a kernel of the box's own runs programs of the
	// host's in, where it needs some: a machine's emulator.
	Engine = "/engine"
)

// An Op is what the host asks of a box on the control descriptor: a packet that
// begins with this byte, with a descriptor for the answer.
type Op byte

const (
	OpConnect Op = iota // the descriptor is a connection to the agent
	OpInspect           // an Inspection, JSON
	OpSave              // a Report; the descriptors that follow take the saved box, for which the bytes after the first are the Room
	OpStop              // as OpSave, and nothing runs any more; the host ends the box
	OpGo                // a Report; undoes OpStop
	OpFiles             // a Report; the descriptor that follows takes an archive of the private layer; with a Room
	OpBound             // a Report; four bytes after the first say how many processes there may be
	OpMemory            // a Report; eight bytes after the first say how much memory commands may have, of a Bounder
)

// A Room bounds what is saved of a box, in bytes. No room is room for nothing.
// The last two are for an archive, where holes count as what they are read as.
type Room struct {
	All     int64 `json:"all,omitempty"`
	Content int64 `json:"content,omitempty"` // of all files
	File    int64 `json:"file,omitempty"`    // of one
}

// Bytes gives it as a part of a packet.
func (r Room) Bytes() []byte {
	var data []byte
	for _, n := range []int64{r.All, r.Content, r.File} {
		data = binary.LittleEndian.AppendUint64(data, uint64(n))
	}
	return data
}

func roomOf(data []byte) (r Room) {
	if len(data) != 24 {
		return Room{}
	}
	for i, n := range []*int64{&r.All, &r.Content, &r.File} {
		*n = int64(binary.LittleEndian.Uint64(data[8*i:]))
	}
	return r
}

// An Inspection is what a box's init knows of it.
type Inspection struct {
	Refusals []paddock.Refusal `json:"refusals,omitempty"`
	PIDs     int               `json:"pids"` // processes and threads of commands

	// Of a Bounder: processes that were ended for lack of memory, and what commands
	// have of it, and had at most, in bytes.
	Kills  int64 `json:"kills,omitempty"`
	Memory int64 `json:"memory,omitempty"`
	Peak   int64 `json:"peak,omitempty"`
}

// A Tree is a writable place that the broker decides about.
type Tree struct {
	Path      string `json:"path"`
	Protected bool   `json:"protected,omitempty"` // a host directory: names are protected
	Source    string `json:"source,omitempty"`    // of a host directory: where it is on the host, as a name may begin above the mount
}

// A MountKind says what a mount is made of.
type MountKind string

const (
	MountBind    MountKind = "bind"    // a host path, or a tree that the host opened
	MountTmpfs   MountKind = "tmpfs"   // private memory
	MountProc    MountKind = "proc"    // the box's own processes
	MountPTS     MountKind = "devpts"  // the box's own terminals
	MountOverlay MountKind = "overlay" // Source below a private layer, for binds with Layer
	MountDir     MountKind = "dir"     // just a directory in what is there
	MountLink    MountKind = "link"    // a symbolic link that says Source
	MountMask    MountKind = "mask"    // nothing to see: an empty unreadable file or directory
	MountPrivate MountKind = "private" // a directory of the root tmpfs, writable for good
	MountReplace MountKind = "replace" // a file of the box's own, with the content Source, over what is there
	MountFile    MountKind = "file"    // as MountReplace, and made where nothing is there
	MountAppend  MountKind = "append"  // as MountReplace, with what is there before Source; nothing where nothing is
	MountKeys    MountKind = "keys"    // as MountReplace, a Java keystore of the certificates in the file Source of the box
	MountCopy    MountKind = "copy"    // a copy of a program that came along, which nobody can change
	MountPin     MountKind = "pin"     // a directory that becomes a mount, so that it cannot be moved
	MountLock    MountKind = "lock"    // what is there, read-only from now on
)

// A Mount is one step in building the file tree; they are done in order. The
// first is the root.
type Mount struct {
	Kind   MountKind `json:"kind"`
	Target string    `json:"target"`
	Source string    `json:"source,omitempty"`
	File   string    `json:"file,omitempty"` // name of the file that came along (see Files); empty is by path
	Write  bool      `json:"write,omitempty"`
	NoExec bool      `json:"noexec,omitempty"`
	Device bool      `json:"device,omitempty"` // device files work
	Size   int64     `json:"size,omitempty"`   // bytes of a tmpfs
	Mode   uint32    `json:"mode,omitempty"`
	IsFile bool      `json:"is_file,omitempty"`
	Owned  bool      `json:"owned,omitempty"`   // for a root caller: the owner's files become the box's user's
	InRoot bool      `json:"in_root,omitempty"` // with Owned: a part of a file tree, whose owners are numbers of that tree
	Layer  bool      `json:"layer,omitempty"`   // Source is a name in the overlay made before
	// Maybe lets a source that is not there (any more) pass.
	Maybe bool `json:"maybe,omitempty"`
}

// A Report is a message from the box to the host on the control descriptor.
type Report struct {
	Ready bool         `json:"ready,omitempty"` // a command has run
	Error string       `json:"error,omitempty"` // why there is no box; or, of one that was ready, why its kernel ended
	Kind  paddock.Kind `json:"kind,omitempty"`  // of Error
	Step  string       `json:"step,omitempty"`  // what was being done

	// Link says that the host's end of the box's link comes with it, and that
	// another report follows.
	Link bool `json:"link,omitempty"`
}

// MaxWords is how long an error is at most that a box tells, in bytes: a packet has
// room for it.
const MaxWords = 8 << 10

// Words gives text of somebody who may be hostile as a part of an error: hardly
// more than so many bytes, and nothing that moves what is beside it.
func Words(text string, most int) string {
	var b strings.Builder
	for _, r := range text {
		if b.Len() >= most {
			b.WriteString("…")
			break
		}
		switch {
		case r == '\n' || r == '\t':
			r = ' '
		case !unicode.IsPrint(r):
			r = unicode.ReplacementChar
		}
		b.WriteRune(r)
	}
	return b.String()
}
