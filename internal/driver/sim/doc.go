// Package sim is the simulated tier: a computer made of Go values. Its shell,
// its tools and its files are this package and those below it; no process of
// the host is started and no name of the host is followed. It runs no programs
// of this machine, only its own.
//
// The boundary is the Go language: what a script can reach is what a tool was
// written to give it. So tools are handed a task (package proc) and nothing
// else, every file name goes through package vfs, and all that a script can
// make grow is counted (package budget). Because tools have bugs, the command
// line runs each sandbox in a child process of its own, behind rlimits,
// Landlock and a system-call filter (package wall); a Go program that links
// this package may choose to have it in its own process.
package sim
