// Package wall runs simulated computers in child processes, one each, so that
// a bug in one of their tools is still behind a wall: the child has given up
// every right that it does not need (rlimits, no capabilities, no new
// privileges, Landlock, a system-call filter) before the first byte of a
// script reaches it.
//
// The child is this same program, started again under another name; [Main]
// must be called first by the program's main. It speaks the protocol of a
// guest on one socket (package guestclient is the host's side, which distrusts every
// byte) and answers to what concerns the sandbox as a whole on another one.
package wall
