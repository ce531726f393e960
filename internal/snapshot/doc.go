// Package snapshot keeps the files of sandboxes in a form that every tier can
// write and open: what differs from the root that a sandbox began with, as a
// list of entries, with the contents of files in blobs named by their SHA-256.
//
// A [Store] is a directory. The blobs of all snapshots lie together, so what
// two of them share is there once. A snapshot is relative to its base (the
// root source), never to another snapshot: each can be removed by itself.
//
// Identities are random and not made from the contents: a snapshot has its
// name from the moment it is taken, which takes no time, and is written
// afterwards. That nothing was changed on the disk is told by a sum at the end
// of each list and by the names of the blobs.
//
// A store may be read and written by several programs at once. What is read is
// not trusted: names cannot lead out of the tree, and every number is bounded
// before anything is made by it.
package snapshot
