// Package fileserver serves a directory of the host to the kernel of a virtual machine, as a FUSE
// server (protocol 7.31 or later) over a stream of bytes.
//
// The machine is hostile and may send any request in any order. It reaches only files below the
// directory: names are walked one by one from there, and links are never followed. Of special files
// the server returns only the attributes. The machine can change files only below a bind with Write,
// and only those that the serving process may change.
package fileserver

import (
	"os"

	"github.com/paddock-sandbox/paddock/internal/boxinit"
)

// Bounds of what a machine can make the server keep.
const (
	nodeLimit   = 1 << 20
	nameLimit   = 128 << 20 // bytes of all names
	handleLimit = 64 << 10
)

// Options configure a Server.
type Options struct {
	// Root is the directory to serve. The caller closes it after the last use of the
	// server.
	Root *os.File

	// UID and GID are the box's user, who owns new files. The serving process runs as this
	// user.
	UID, GID int

	// Begun means that the machine's init has already answered INIT, the first request,
	// with protocol.AppendInit.
	Begun bool

	// Binds are the paths below Root, as absolute names in it, that may change while they
	// are served. Everything else is the host's system, which the machine may cache. Only
	// content of a bind with Write is ever changed.
	Binds []boxinit.Bind
}
