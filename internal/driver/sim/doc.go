// Package sim is the driver of the simulated tier: a computer made of Go values.
// The shell, the tools and the file system are the engine in internal/sim; this
// package makes a [paddock.Driver] of them. It starts no process of the host and
// follows no path of the host. It runs its own programs only.
//
// The boundary is the Go language: a script reaches only what a tool was
// written to offer. A tool gets a task (package proc) and nothing else, every
// path goes through package vfs, and everything that a script can make grow is
// counted (package budget). Because tools have bugs, the command
// line runs each sandbox in a child process of its own, behind rlimits,
// Landlock and a system-call filter (package wall); a Go program that links
// this package may choose to have it in its own process.
package sim
