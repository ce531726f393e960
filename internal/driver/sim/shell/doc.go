// Package shell is a bash-compatible shell (5.2) on a simulated computer. It
// interprets syntax trees of mvdan.cc/sh/v3/syntax; everything that a script
// does goes through the [proc.Task] that the shell runs on, which counts it.
//
// The parts below it: variable keeps variables, expand turns words into
// fields. They know the shell by the methods of [Shell] that they need, as
// interfaces of their own.
//
// A Shell belongs to the goroutine of its task. A subshell is another Shell
// on a task that was forked: on the same goroutine where nothing runs beside
// the parent, else on its own.
package shell
