// Package store keeps the persistent state of a server: tenants, keys, sandboxes, snapshots
// and usage.
//
// # Overview
//
// [Open] opens a place. A path is a file of SQLite, for one server. A URL postgres://… is a
// database of PostgreSQL, which several servers may share. Everything else is the same for
// both.
//
// # Durability
//
// A call that returned without an error is on disk. It survives a crash of the program or
// the machine, and a power failure. A call that returned an error of the database changed
// nothing, with one exception: if a connection to PostgreSQL is lost during a commit, the
// result is unknown.
//
// With SQLite, some writes do not wait for the disk: that a sandbox is being made, is ready
// or is removed, its first lease, and the last use of a key. A sandbox does not survive a
// power failure either, so its last seconds may be lost with it. Facts that outlive a power
// failure (a pause, a snapshot, usage, a changed lease) are on disk when the call returns,
// and so is everything written before them.
//
// A change and its condition are atomic: [Store.AddSandbox] asks its caller whether the
// tenant may have one more sandbox while nothing else can change the tenant's sandboxes.
//
// # Secrets
//
// Of a key only the hash of its secret is stored. A spec is stored without the values of
// its secrets, of its environment and of the headers of its rules, because they may be
// credentials. So a stored spec documents a request, and a sandbox cannot be made from it.
//
// # The file
//
// Only its owner can read the file, and only the owner can enter its directory. Open
// creates both, and refuses a directory that others may enter. A full disk is
// paddock.Exhausted until there is room again. Damage of a file is reported when the file
// is opened or when the damage is found, and is never repaired.
package store
