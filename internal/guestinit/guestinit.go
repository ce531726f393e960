// Package guestinit runs the agent as the first process of a guest kernel, which a supervisor outside
// reaches over a link of its own.
//
// The agent listens on that link and announces itself by opening one connection to the host. Commands
// could connect to the same address. The agent therefore answers only peers whose source address is
// the link's other end, which no process inside can forge, and which present the token that came over
// the first connection. The agent drops its privileges before it starts the first command.
package guestinit

import (
	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest"
	"github.com/paddock-sandbox/paddock/internal/guest/nameserver"
)

// Argv0 is the path of the agent's program. The program checks it to detect that it was
// started as the agent. It stays the same in a box that is saved and restored elsewhere.
// Only the agent sees it.
const (
	Argv0 = Dir + "/agent"
	Dir   = "/.paddock"
)

// OnPort is the agent's argument in a virtual machine, which has no link. Descriptor 3 is a
// port of the machine that only the agent has. On it arrive sessions (yamux), one after
// another, and their streams are connections to the agent. The agent is the first process
// of its own namespace there.
//
// The agent starts before the machine belongs to a box, and the machine may be saved and
// restored many times. So the agent first does what is the same in all of them, and then
// waits for an Order. Anything that it derived from random numbers before that is the same
// in all of them, too: seeds of the Go runtime, and the addresses of its memory. Nothing
// secret depends on those: the agent receives the token from outside, and commands get
// random numbers from the kernel.
const OnPort = "port"

// WithSudo is the agent's argument if it answers sudo requests of commands. In a virtual
// machine the Order decides that.
const WithSudo = "sudo"

// Furnish is the agent's argument if the tree is an image's, which the guest kernel reads itself. Then the agent makes
// in the private layer what the box has besides. It is listed in the file Furniture, as JSON: a list of [Piece].
const (
	Furnish      = "furnish"
	Furniture    = Dir + "/furniture"
	MaxFurniture = 4 << 20
)

// RootIsRoot is the agent's argument if commands of root have the capabilities that Docker gives by default, and programs of the
// image may be set-id. That is over the guest kernel alone.
const RootIsRoot = "root"

// Kinds of a Piece.
const (
	PieceDir    = "dir"
	PieceFile   = "file"
	PieceAppend = "append" // to a file of the image
)

// A Piece is a file or directory of the box itself in the tree of an image. The directories above it belong to root.
type Piece struct {
	Kind string `json:"kind"`
	Path string `json:"path"`
	Text string `json:"text,omitempty"`
	Mode uint32 `json:"mode"`
	UID  int    `json:"uid,omitempty"`
	GID  int    `json:"gid,omitempty"`
	Keep bool   `json:"keep,omitempty"` // a directory that is there stays as it is
	Old  bool   `json:"old,omitempty"`  // only if the file is there
}

// An Order assigns the waiting agent to a box. It is read from OrderFD, once.
type Order struct {
	Tree string // the commands' tree, as the agent sees it
	UID  int    // the box's user
	GID  int
	Sudo bool // it answers sudo requests of commands
}

// Directories that exist in the tree in which the agent waits, for its own mounts. Mounts
// made there from outside propagate to the agent, but not the other way round.
const (
	OwnProc   = "/agent-proc"
	OwnGroups = "/agent-groups"
)

// Descriptors of the agent in a virtual machine.
const (
	PortFD  = 3 // the port
	StateFD = 4 // gets a byte when a session begins and when it has ended
	OrderFD = 5 // gives an Order
)

// Bytes on StateFD. A new connection before a session has ended is treated as a part of
// that session. AgentReady comes first, and once: nothing is left to do before the Order,
// and a first program has run.
const (
	AgentReady    = 'r'
	SessionBegins = 'b'
	SessionEnded  = 'e'
)

// The ends of the link. Commands cannot reach a host of the network that has one of these
// addresses, and they get no message. So the addresses are in 198.18.0.0/15, which RFC 2544
// reserves for benchmarks of network devices, and which package netstack uses for names. It
// gives names no address in 198.18.0.0/24.
const (
	Address = "198.18.0.15" // the agent's
	Peer    = "198.18.0.14"
	Port    = 1
)

// TokenSize is the size of a token in bytes.
const TokenSize = 32

// The first byte of a connection names its purpose; a token follows.
const (
	Settle  = 'S' // Settings and an Answer follow, in the Form of the agent's environment, and nothing else
	Bound   = 'P' // Settings, of which only PIDs is used, and an Answer follow likewise
	Inspect = 'I' // Settings, of which nothing is used, and an Answer follow likewise
	Serve   = 'C' // calls to the agent
)

// Settings are the host's decisions. They come before anything else, and again after the
// box was restored.
type Settings struct {
	User  guest.User        `json:"user"` // used only the first time
	Env   map[string]string `json:"env"`
	Dir   string            `json:"dir"`
	Files int               `json:"files"` // RLIMIT_NOFILE of commands; used only the first time
	PIDs  int               `json:"pids"`  // processes and threads of all commands
}

// An Answer reports that a command has run, or why not.
type Answer struct {
	PIDs  int                `json:"pids"` // processes and threads of commands now
	Error string             `json:"error,omitempty"`
	Kind  paddock.Kind       `json:"kind,omitempty"`
	Asked []nameserver.Asked `json:"asked,omitempty"` // names that do not exist without a network

	Crowded bool `json:"crowded,omitempty"` // the limit of processes was reached
	Full    bool `json:"full,omitempty"`    // the private layer is full
}

// MaxSettings is the maximum size of encoded Settings, in bytes.
const MaxSettings = 1 << 20
