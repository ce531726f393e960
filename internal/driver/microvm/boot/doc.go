// Package boot finds what a machine is started with: the program that runs it,
// its kernel, the modules that the kernel needs, and the initrd with both the
// modules and the machine's init.
//
// A kernel is somebody else's bytes, and so is a package with one: every reader
// here bounds what it takes. Nothing of a guest is read here.
package boot
