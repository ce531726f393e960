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

// A full box must not end its agent, but a Go program that cannot make a thread when it
// needs one ends. So the agent makes AgentThreads at its start, and keeps them. They are
// counted in addition to the limit of processes. If it needs more for a while, it may have
// SpareThreads more. No command can take those, because commands inherit a limit without
// them.
const (
	AgentThreads = 16
	SpareThreads = 256
)

// Crashed is the exit status of a box whose init crashed; it is that of Go's runtime.
const Crashed = 2

// BrokerFailed is the exit status of a box whose broker failed.
const BrokerFailed = 3

// GuestKernelEnded is the exit status of a box whose guest kernel ended.
const GuestKernelEnded = 4

// Ended describes the other exit statuses of a box's init. Status 2 is a crash of Go's
// runtime. The runtime's message is only visible, on the host's standard error, if the
// sandbox's environment has PADDOCK_DEBUG.
func Ended(status int) string {
	why := "for no reason that is known"
	switch status {
	case 0:
		why = "since nobody asks it for anything any more"
	case 1:
		why = "after it could not make the sandbox, or tell why"
	case Crashed:
		why = "in a crash of its own, as where the machine had no memory or no thread left for it; with PADDOCK_DEBUG=1 in the sandbox's environment it tells more on standard error"
	}
	return fmt.Sprintf("the sandbox's init ended with status %d, %s", status, why)
}

// Name and addresses of a box's link, and the addresses of the resolver at the other end.
// They are in ranges that no network uses.
const (
	LinkName  = "eth0"
	LinkMTU   = 65520
	Address4  = "198.18.0.2"
	Address6  = "fd7a:6f74::2"
	Resolver4 = "198.18.0.1"
)

// Argv0 is the name by which a program detects that it was started as a box.
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

	// Netlinks is the number of sockets of all kinds from which on the box gets no further
	// netlink socket. It has no effect with the host's network.
	Netlinks int `json:"netlinks"`
	// Streams is the same for sockets of TCP.
	Streams int `json:"streams"`

	// Landlock is only false if the caller accepted that by name.
	Landlock bool `json:"landlock"`
	// Writable are the only paths inside that may be changed.
	Writable []string `json:"writable"`
	// Trees are those of Writable whose changes the broker decides.
	Trees []Tree `json:"trees,omitempty"`
	// Hosts are the paths where files of the host are mounted.
	Hosts []string `json:"hosts,omitempty"`
	// Named are the paths of mounts that the caller named.
	Named []string `json:"named,omitempty"`
	// Deny are paths that may be neither made nor changed.
	Deny      []string `json:"deny,omitempty"`
	Protect   []string `json:"protect,omitempty"`
	Unprotect []string `json:"unprotect,omitempty"`

	// GuestKernel describes the commands' kernel. Nil means the host's kernel.
	GuestKernel *GuestKernelConfig `json:"kernel,omitempty"`

	// Names are the names of the transmitted descriptors, in order; see [Files].
	Names []string `json:"names,omitempty"`
}

// A GuestKernelConfig describes a guest kernel for commands.
type GuestKernelConfig struct {
	// Binds are the host's files that bypass the private layer. The tree has them already,
	// at Root and their target.
	Binds []Bind `json:"binds,omitempty"`
	Disk  int64  `json:"disk"`  // bytes of the private layer
	Token []byte `json:"token"` // authenticates the host to the agent

	// Sizes are what commands see as the machine's memory and processors, on a kernel that would otherwise
	// show the host's.
	Sizes Sizes `json:"sizes,omitzero"`

	// Sudo means that the agent answers sudo requests of commands.
	Sudo bool `json:"sudo,omitempty"`

	// Layered means that the box began with an archive of the private layer. That is the
	// only file of FileImage, unless the box restores memory.
	Layered bool `json:"layered,omitempty"`
	Memory  bool `json:"memory,omitempty"` // FileImage also holds memory

	// SavedParts is how many parts of a saved box are mounted at SavedPart. If it is zero, they come as FileImage.
	SavedParts int `json:"saved_parts,omitempty"`

	// ImageFile means that the commands' tree is the file system in the file ImageFile, which the kernel reads
	// itself. What a box has besides is in the list of its agent: see guestinit.Furniture.
	ImageFile bool `json:"image_file,omitempty"`

	// Audit lists the kinds of events that the guest kernel writes to FileEvents.
	Audit []paddock.AuditKind `json:"audit,omitempty"`

	// Machine describes the guest kernel's virtual machine. Only that machine's init reads
	// it.
	Machine  json.RawMessage `json:"machine,omitempty"`
	Number   []byte          `json:"number,omitempty"`   // the machine's ID of 16 bytes, which forks do not share
	Made     int64           `json:"made,omitempty"`     // maximum memory of commands, set when it was made
	Overhead int64           `json:"overhead,omitempty"` // bytes of memory that the host allows in addition to the limit
	Shape    string          `json:"shape,omitempty"`    // only a machine of the same shape can restore its memory
	About    string          `json:"about,omitempty"`    // the shape in words

	// Room bounds what is written to FileTemplate, if it was transmitted.
	Room Room `json:"room,omitzero"`
}

// A Bind is a file or directory of the host.
type Bind struct {
	Target string `json:"target"` // as commands see it
	Write  bool   `json:"write,omitempty"`
	IsFile bool   `json:"is_file,omitempty"`
}

// Paths in the box that only the kernel's supervisor sees: the commands' tree, a directory for
// the supervisor's files, and the supervisor's program, if that is a file.
const (
	Root    = "/root"
	State   = "/state"
	Program = "/program"

	// Engine is the tree in which a guest kernel runs programs of the host, if it needs
	// some, such as a machine's emulator.
	Engine = "/engine"

	saved = "/saved" // see SavedPart

	ImageFile = "/image" // see GuestKernelConfig.ImageFile
)

// SavedPart returns where a part of a saved box is mounted, if it does not come as a FileImage.
func SavedPart(i int) string { return fmt.Sprintf("%s/%d", saved, i) }

// An Op is a request of the host on the control descriptor: the first byte of a packet that
// carries a descriptor for the answer.
type Op byte

const (
	OpConnect Op = iota // the descriptor is a connection to the agent
	OpInspect           // an Inspection in JSON
	OpSave              // a Report; further descriptors receive the saved box; a Room follows the first byte
	OpStop              // like OpSave, and then nothing runs any more; the host ends the box
	OpGo                // a Report; undoes OpStop
	OpFiles             // a Report; a further descriptor receives an archive of the private layer; with a Room
	OpBound             // a Report; four bytes after the first are the maximum number of processes
	OpHeld              // the files that commands have open for writing; see WriteChanges
	OpMemory            // a Report; eight bytes after the first are the commands' maximum memory; for a Bounder
)

// A Room bounds what is saved of a box, in bytes. Zero leaves no room. The last two fields
// are for an archive, where holes count like data.
type Room struct {
	All     int64 `json:"all,omitempty"`
	Content int64 `json:"content,omitempty"` // of all files
	File    int64 `json:"file,omitempty"`    // of one
}

// Bytes returns its form in a packet.
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

// An Inspection is the init's knowledge of its box.
type Inspection struct {
	Refusals []paddock.Refusal `json:"refusals,omitempty"`
	PIDs     int               `json:"pids"` // processes and threads of commands

	// Of a Bounder: processes that were killed for lack of memory, and the present and
	// maximum memory use of commands, in bytes.
	Kills  int64 `json:"kills,omitempty"`
	Memory int64 `json:"memory,omitempty"`
	Peak   int64 `json:"peak,omitempty"`
}

// A Tree is a writable place whose changes the broker decides.
type Tree struct {
	Path      string `json:"path"`
	Protected bool   `json:"protected,omitempty"` // a host directory: names are protected
	Source    string `json:"source,omitempty"`    // path of a host directory: a protected name may begin above
	Cache     bool   `json:"cache,omitempty"`     // only names of version control systems are protected
}

// A MountKind is the source of a mount.
type MountKind string

const (
	MountBind    MountKind = "bind"    // a host path, or a tree that the host opened
	MountTmpfs   MountKind = "tmpfs"   // private memory
	MountProc    MountKind = "proc"    // the box's own processes
	MountPTS     MountKind = "devpts"  // the box's own terminals
	MountOverlay MountKind = "overlay" // Source below a private layer, for binds with Layer
	MountDir     MountKind = "dir"     // only a directory in the existing tree
	MountLink    MountKind = "link"    // a symbolic link to Source
	MountMask    MountKind = "mask"    // an empty unreadable file or directory
	MountPrivate MountKind = "private" // a directory of the root tmpfs that stays writable
	MountReplace MountKind = "replace" // a private file with the content Source, over an existing one
	MountFile    MountKind = "file"    // like MountReplace; a missing file is made
	MountAppend  MountKind = "append"  // like MountReplace, appends Source to the existing content, if the file exists
	MountKeys    MountKind = "keys"    // like MountReplace, a Java keystore of the certificates in the box's file Source
	MountCopy    MountKind = "copy"    // a copy of a transmitted program, which nobody can change
	MountPin     MountKind = "pin"     // a directory that becomes a mount, so that it cannot be moved
	MountView    MountKind = "view"    // a file that shows the size of the box, over that of the machine; Source is its name
	MountLock    MountKind = "lock"    // makes an existing path read-only
)

// A Mount is one step in building the file tree. Steps are done in order. The first is the
// root.
type Mount struct {
	Kind   MountKind `json:"kind"`
	Target string    `json:"target"`
	Source string    `json:"source,omitempty"`
	File   string    `json:"file,omitempty"` // name of the transmitted file (see Files); empty means by path
	Write  bool      `json:"write,omitempty"`
	NoExec bool      `json:"noexec,omitempty"`
	Device bool      `json:"device,omitempty"` // device files work
	Size   int64     `json:"size,omitempty"`   // bytes of a tmpfs
	Mode   uint32    `json:"mode,omitempty"`
	IsFile bool      `json:"is_file,omitempty"`
	Owned  bool      `json:"owned,omitempty"`   // for a root caller: files of the owner appear as the box's user's
	InRoot bool      `json:"in_root,omitempty"` // with Owned: a part of a file tree with its own user numbers
	Layer  bool      `json:"layer,omitempty"`   // Source is a name in the overlay made before
	// Maybe means that the source may be missing.
	Maybe bool `json:"maybe,omitempty"`

	// Upper is a directory of the host that takes what changes in a bind, in directories upper and work, so that the
	// source is never written. Write is false then, so that what does not know Upper writes nothing at all. UpperFile is
	// the name of the transmitted file of it; empty means by path.
	Upper     string `json:"upper,omitempty"`
	UpperFile string `json:"upper_file,omitempty"`

	Cache bool `json:"cache,omitempty"` // caches of build tools, which sandboxes alone write
}

// Writable reports whether commands may change what they see of a mount.
func (m *Mount) Writable() bool { return m.Write || m.Upper != "" }

// A Report is a message from the box to the host on the control descriptor.
type Report struct {
	Ready bool         `json:"ready,omitempty"` // a command has run
	Error string       `json:"error,omitempty"` // why there is no box; or, if it was ready, why its kernel ended
	Kind  paddock.Kind `json:"kind,omitempty"`  // of Error
	Step  string       `json:"step,omitempty"`  // the current step

	// Link means that the host's end of the box's link comes with it, and that another
	// report follows.
	Link bool `json:"link,omitempty"`

	// Private means that the directory of the box's private files comes with it, without what is mounted on it, and that
	// another report follows.
	Private bool `json:"private,omitempty"`
}

// MaxWords is the maximum length of a box's error message in bytes, which fits into a
// packet.
const MaxWords = 8 << 10

// Words makes text from a possibly hostile source safe for an error message. The result has
// about most bytes at most, and no characters that affect the surrounding text.
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
