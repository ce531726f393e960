// Package guest implements the agent that runs inside a sandbox. It serves processes, files and ports
// to the host over one connection, with the RPC service of guestpb, and acts as the sandbox's init
// process if [Options] say so.
//
// The agent is the same on every tier. Differences between tiers, such as how a process starts under
// the boundary and which names are protected, arrive in [Options]. The agent trusts the host and is
// not a security boundary against it. It keeps itself alive, and its memory unreadable, against the
// commands that it runs.
package guest

import (
	"context"
	"net"
	"os"
	"syscall"

	"github.com/paddock-sandbox/paddock"
)

// Options describe the sandbox in which the agent runs.
type Options struct {
	// User is who commands run as. The agent runs as the same one.
	User User

	// Env is the base environment of every command.
	Env map[string]string

	// Dir is the working directory of commands that name none.
	Dir string

	// Init says that the agent is process 1: it reaps every orphan.
	Init bool

	// Kept bounds the output kept per process, in bytes; zero is 1 MiB.
	Kept int

	// StartProcess starts a program under the tier's boundary, as
	// os.StartProcess does, and gives the process's number; nil is
	// syscall.ForkExec. It is called by one goroutine at a time.
	StartProcess func(argv0 string, argv []string, attr *ProcAttr) (pid int, err error)

	// Signal sends a signal to a process of another user's, or to a group where the
	// number is negative. Nil is that there are none: every command runs as User.
	Signal func(u *User, pid int, sig syscall.Signal) error

	// Gate holds every call back until it is closed, so that the agent can be
	// made, and a connection served, while the boundary is still being built.
	// Nil holds nothing back.
	Gate <-chan struct{}

	// Killed returns the number of processes that the kernel has killed for lack of memory. It is set
	// if the agent can count them, and is called before each start. Nil means that the host counts
	// them.
	Killed func() (int64, error)

	// Guard is asked before the agent itself changes a file on the host's
	// behalf; nil allows all.
	Guard Guard

	// Refusals returns the actions inside that the tier refused; nil means none.
	Refusals func() []paddock.Refusal
}

// User is a line of the sandbox's /etc/passwd.
type User struct {
	Name  string
	UID   int
	GID   int
	Home  string
	Shell string
}

// ProcAttr is what a new process starts with.
type ProcAttr struct {
	Dir      string
	Env      []string
	Files    []*os.File // descriptors 0, 1, 2
	Terminal bool       // descriptor 0 becomes the controlling terminal
	User     *User      // who it runs as; nil is Options.User. Another one is given only where Options.Signal is
}

// A Guard decides whether a file may be changed, by its name.
type Guard interface {
	// Check answers an error of kind Denied if op may not be done to the
	// entry base of dir, a directory that was opened with O_PATH, links
	// resolved. The caller then works relative to dir and follows no link at
	// base, so that nothing can be swapped in between.
	//
	// op is "write" where a file is made or written, "make" where a directory
	// is made, "link" where a symbolic link is made (its target is not asked
	// about), "chmod", and "remove" (of each file and directory below one,
	// too). base is "." for "/" alone.
	//
	// If done is not nil, what was asked about is kept for the caller, who calls
	// done when it has been changed.
	Check(op string, dir *os.File, base string) (done func(), err error)

	// Rename renames the entry base of dir to newBase of newDir, or answers an
	// error of kind Denied. What may be renamed depends on both, and no command
	// may put something else there between the decision and the rename.
	Rename(dir *os.File, base string, newDir *os.File, newBase string) error
}

// Serve answers the host on conn until conn ends or ctx does, and then
// returns. Processes go on; Serve may be called again with another
// connection, and with several at once.
func (s *Server) Serve(ctx context.Context, conn net.Conn) error {
	return s.serve(ctx, conn)
}
