// Package sim is the driver of the tier sim: computers that consist of Go values. Package
// internal/sim has the engine: the shell, the tools and the file system. This package makes a
// [paddock.Driver] of it. It starts no process of the host, follows no path of the host, and runs
// only its own programs.
//
// The boundary is the Go language: a script can reach only what a tool offers. A tool gets a task
// (package kernel) and nothing else. Every path goes through package vfs. Everything that a script
// can make grow is counted (package budget). Because tools have bugs, the command line runs each
// sandbox in a child process with rlimits, Landlock and a system-call filter (package parent). A
// Go program that links this package can run sandboxes in its own process.
package sim
