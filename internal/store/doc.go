// Package store keeps what a server must not forget: tenants, keys, sandboxes,
// snapshots and what was used.
//
// # The story
//
// [Open] takes a place. A path is a file of SQLite, for one server; a URL
// postgres://… is a database of PostgreSQL, which several servers may share.
// Everything else is the same on both.
//
// # What is promised
//
// A call that answered without an error is kept: on disk, through a crash of the
// program, of the machine, and of the power. One that answered with an error of
// the database left nothing, but for one: if a connection to PostgreSQL is lost
// while it commits, nobody can tell.
//
// Of a file, what is true of a sandbox from its creation to its removal is not waited
// for: that it is being made, is ready, is removed, its first lease; nor when a key was used. A
// sandbox ends with the power, so what the last seconds before had of it may be lost
// with it. What outlives the power (a pause, a snapshot, what was used, a change
// of its lease) is on disk when it is told, and all that was written before it too.
//
// A change and the condition for it are one: [Store.AddSandbox] asks its caller
// whether the tenant may have one more while nobody else can change what that
// tenant has.
//
// # What is never kept
//
// Keys are kept as sums of their secrets. A spec is kept without the values of
// its secrets, of its environment and of the headers of its rules, since any of
// them may be a credential; what is kept is what was asked, not what to make it
// from.
//
// # The file
//
// It is readable for its owner alone, in a directory that nobody else can enter:
// Open makes both, and refuses a directory that others may enter. A full disk is
// paddock.Exhausted, and ends when there is room again. A damaged file is told
// in words, when it is opened or when the damage is met; it is never mended.
package store
