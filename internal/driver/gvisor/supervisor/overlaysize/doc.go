// Package overlaysize computes, in the sentry, the size of an archive of a box's private layer before
// gVisor writes it.
//
// To write an archive gVisor reads each file whole into memory, holes included, and ends when it runs
// out of memory. A sparse file of an exabyte, which costs a command nothing, would end the box. gVisor
// has no call that returns the size first, so this package walks the tree with gVisor's own means.
// gVisor does not promise the way that leads to the tree. If that way changes, the count returns an
// error, and so does the snapshot.
package overlaysize
