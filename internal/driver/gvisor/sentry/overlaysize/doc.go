// Package overlaysize counts, in the sentry, how large an archive of a box's private
// layer would be.
//
// gVisor writes such archives, reads each file into memory for it as a whole,
// holes too, and ends where it cannot: a file of an exabyte, which costs a
// command nothing, would be the end of the box. There is no way to ask gVisor
// first, so this looks at the tree with gVisor's own means. How it comes to the
// tree is not a promise of gVisor's: the count then fails in words, and with it
// the snapshot.
package overlaysize
