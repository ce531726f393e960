// Package bootfiles finds the files that a virtual machine starts with: the QEMU program, the kernel, the
// modules that the kernel needs, and the initrd with the modules and the machine's init.
//
// A kernel and a package that contains one are third-party input, so every reader here bounds what it
// reads. This package reads nothing from a guest.
package bootfiles
