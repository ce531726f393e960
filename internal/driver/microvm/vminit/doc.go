// Package vminit is the first process of a virtual machine: it builds the
// commands' file tree of what the host serves, starts the agent in it, and does
// what the monitor asks (package wire).
//
// It has all of the machine, and is as much the guest's as anything there: a
// command that takes over the machine's kernel has it too.
package vminit

// Argv0 is what a kernel calls the first program of an initrd.
const Argv0 = "/init"
