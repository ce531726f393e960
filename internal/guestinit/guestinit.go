// Package guestinit runs the agent as the first process of a guest kernel, which a supervisor outside
// reaches over the box's only link.
//
// The agent listens on that link and announces itself by opening one connection to the host. Commands
// could connect to the same address. The agent therefore answers only peers whose source address is
// the link's other end, which no process inside can forge, and which present the token that came over
// the first connection. The agent drops its privileges before it starts the first command.
package guestinit

import (
	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest"
)

// Argv0 is the path of the agent's program, by which it knows that it was
// started as this agent. It stays the same in a box that is saved and goes on
// elsewhere; nobody but the agent sees it.
const (
	Argv0 = Dir + "/agent"
	Dir   = "/.paddock"
)

// OnPort is the agent's argument in a machine, where there is no link: descriptor
// 3 is a port of the machine's, which only the agent has. On it come sessions
// (yamux), one after another, whose streams are connections to the agent. The
// agent is the first process of its own namespace there.
//
// It is started before the machine is anybody's, and may be saved and go on in
// many machines: it does what is the same in all of them, and then waits for an
// Order. What it made of random numbers before is the same in all, too: seeds of
// the Go runtime, and where its own memory is. Nothing secret comes of those: the
// token is brought to it, and commands have random numbers from the kernel.
const OnPort = "port"

// WithSudo is the agent's argument where it is to answer what commands ask by
// sudo. In a machine the Order says it.
const WithSudo = "sudo"

// An Order makes the waiting agent one of a box: it comes on OrderFD, and no more.
type Order struct {
	Tree string // the commands' tree, as the agent sees it
	UID  int    // the box's user
	GID  int
	Sudo bool // it answers what commands ask by sudo
}

// Directories that the agent finds made, in the tree that it waits in, for what it
// mounts meanwhile. Mounts that are made there reach the agent, not the other way
// round.
const (
	OwnProc   = "/agent-proc"
	OwnGroups = "/agent-groups"
)

// Descriptors that the agent begins with in a machine.
const (
	PortFD  = 3 // the port
	StateFD = 4 // takes a byte whenever a session begins and when it has ended
	OrderFD = 5 // gives an Order
)

// Bytes on StateFD. Who connects anew before a session has ended is taken for a
// part of it. AgentReady is the first, and comes once: nothing is left to be done
// before the Order, and a first program has run.
const (
	AgentReady    = 'r'
	SessionBegins = 'b'
	SessionEnded  = 'e'
)

// The ends of the link.
const (
	Address = "10.0.2.15" // the agent's
	Peer    = "10.0.2.2"
	Port    = 1
)

// TokenSize is the size of a token in bytes.
const TokenSize = 32

// The first byte of a connection says what it is for; a token follows.
const (
	Settle  = 'S' // Settings and an Answer follow, in the Form of where the agent is, and no more
	Bound   = 'P' // Settings, of which PIDs counts, and an Answer follow likewise
	Inspect = 'I' // Settings, of which nothing counts, and an Answer follow likewise
	Serve   = 'C' // calls to the agent
)

// Settings are what the host decides. They come first of all, and again after
// the box was restored.
type Settings struct {
	User  guest.User        `json:"user"` // counts the first time only
	Env   map[string]string `json:"env"`
	Dir   string            `json:"dir"`
	Files int               `json:"files"` // RLIMIT_NOFILE of commands; counts the first time only
	PIDs  int               `json:"pids"`  // processes and threads of all commands
}

// An Answer tells that a command has run, or why not.
type Answer struct {
	PIDs  int          `json:"pids"` // processes and threads of commands now
	Error string       `json:"error,omitempty"`
	Kind  paddock.Kind `json:"kind,omitempty"`
}

// MaxSettings is the maximum size of encoded Settings, in bytes.
const MaxSettings = 1 << 20
