// Package vfs is the file system of a simulated computer: a POSIX tree in
// memory with modes, links, times, atomic renames, open files that outlive
// their names, and snapshots in constant time.
//
// An [FS] is one live tree. All of it stands in persistent maps: a [Snapshot]
// is taken, and a new FS is made from one, in constant time; what the two
// share is copied when one of them writes to it, a page at a time.
//
// A [View] is how a task sees an FS: from a working directory, with a user's
// rights. Every name that comes from inside a sandbox goes through a View.
// Names and contents are bytes. Nothing in this package follows a name of the
// host.
//
// Errors are [linux.Errno], bare; [Message] gives the words that Unix tools
// print for them.
package vfs
