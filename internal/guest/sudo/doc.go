// Package sudo implements the command sudo of a sandbox: it parses the options, encodes the request to
// the agent, and runs the command's own side.
//
// The command gains no privilege by itself: its file has no set-id bit, and its process runs as the
// calling user. The agent can start commands as any user of the sandbox. It starts the requested
// command with the caller's streams and reports the exit. Every process in the sandbox may send such a
// request, because the spec asked for sudo. A request is therefore hostile input, and Decode accepts
// only requests that describe a valid command.
package sudo

// Name is the command's name, by which the guest program knows that it was
// started as one. Path is where it stands in a sandbox that was asked with it.
const (
	Name = "sudo"
	Path = "/usr/bin/" + Name
)

// Address is the abstract socket on which the agent listens for requests. The agent takes it before
// the first command starts.
const Address = "@paddock-sudo"

// SecurePath is the PATH of commands that sudo starts, whatever the caller's PATH is.
const SecurePath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
