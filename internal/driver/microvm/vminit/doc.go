// Package vminit runs as the first process of a virtual machine: it builds the commands' file tree
// from the files that the host serves, starts the agent in it, and carries out the supervisor's
// requests (package protocol).
//
// It has all rights in the machine and is no boundary against the guest: a command that takes over the
// machine's kernel controls this process too.
package vminit

// Argv0 is the first argument that a kernel gives to the init program of an initrd.
const Argv0 = "/init"
