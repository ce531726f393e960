// Package supervisor runs a machine as the kernel of a box: it starts QEMU and the
// server of the box's files from the box's init, and keeps the link to the agent
// in the machine.
//
// QEMU is trusted until its guest runs. From then on it may do anything that its
// process can, which is little: it has a tree that cannot be written to, no
// capability, no process of the box within reach, and of files those that were
// handed to it.
package supervisor
