// Package kernel is the kernel of a simulated computer: tasks with process IDs,
// descriptors, pipes and signals, all of them Go values. A task runs a Go
// function on a goroutine. Everything it does to the computer goes through its
// [Task], which counts, stops and kills it.
//
// A [Kernel] is one computer. A [Run] is one command that was started from
// outside, with every task that comes of it; limits that count work are per
// run, and reaching one ends the run.
//
// A task is killed by unwinding its goroutine: [Task.Step], [Task.Check] and
// every read and write of its descriptors panic with a private value when the
// task is to end, and the task's first frame catches it. So a program checks
// nothing, but it must reach one of these again and again, and it must not
// recover from panics that it does not know.
//
// A Task belongs to its goroutine: but for [Task.Signal], [Task.Done] and
// [Task.Status], its methods are called from there only.
package kernel
