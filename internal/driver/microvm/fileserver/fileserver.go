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

// Bounds of what a machine can have the server keep.
const (
	nodeLimit   = 1 << 20
	nameLimit   = 128 << 20 // bytes of all names
	handleLimit = 64 << 10
)

// Options say what is served.
type Options struct {
	// Root is the directory. It stays the caller's, and open for as long as the
	// server is used.
	Root *os.File

	// UID and GID are the box's user, to whom new files belong: the one that the
	// serving process is.
	UID, GID int

	// Begun says that INIT, which comes before all else, is answered in the machine:
	// by wire.AppendInit.
	Begun bool

	// Binds are the places below Root, as absolute names in it, that change while
	// they are served. What is elsewhere is taken for the host's system, of which
	// the machine may keep what it has seen. Only what is in a bind with Write is
	// ever changed.
	Binds []boxinit.Bind
}
