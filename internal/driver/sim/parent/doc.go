// Package parent runs simulated computers in child processes, one each. So a bug in a tool stays
// confined: before the first byte of a script reaches the child, it has given up every right that
// it does not need (rlimits, no capabilities, no new privileges, Landlock, a system-call filter).
//
// This package is the host's side. The child executes a program of its own (cmd/paddock-sim,
// package child), or the calling program, whose main must call child.Main first. There are two
// sockets. On one the child speaks the protocol of a guest, whose host's side is package
// guestclient, which trusts no byte. On the other, package protocol is about the sandbox as a
// whole.
package parent
