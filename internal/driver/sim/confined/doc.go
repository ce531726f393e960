// Package confined runs simulated computers in child processes, one each, so that a
// bug in one of their tools is still confined: the child has given up every right
// that it does not need (rlimits, no capabilities, no new privileges, Landlock, a
// system-call filter) before the first byte of a script reaches it.
//
// This is the host's side. The child executes a program of its own
// (cmd/paddock-sim, package child), or the calling program, whose main must call
// child.Main first. The child speaks the protocol of a guest on one socket (package
// guestclient is the host's side, which distrusts every byte) and package protocol,
// about the sandbox as a whole, on another one.
package confined
