// Package sudo is what the command sudo of a sandbox is made of: the options
// that it knows, the request that it makes of the agent, and the command itself.
//
// It gains nothing by itself: no bit of its file does anything, and it runs as
// who called it. The agent, which starts commands as any user of the sandbox
// anyway, starts this one, with the caller's streams, and tells how it ended.
// Whatever runs in the sandbox may say such a request, as that is what the
// spec asked for: what it says is hostile, and Decode takes nothing else than
// what a command could be.
package sudo

// Name is the command's name, by which the guest program knows that it was
// started as one. Path is where it stands in a sandbox that was asked with it.
const (
	Name = "sudo"
	Path = "/usr/bin/" + Name
)

// Address is where the agent listens: a name that no file has, which is taken
// before there is a command.
const Address = "@paddock-sudo"

// SecurePath is the PATH of what sudo starts, whatever the caller's is.
const SecurePath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
