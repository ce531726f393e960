// Package supervisor runs a virtual machine as the guest kernel of a box: it starts QEMU and the file
// server from the box's init process, and maintains the link to the agent in the machine.
//
// QEMU is trusted until its guest runs. From then on it may do anything that its process can, which is
// little: its file tree is read-only, it has no capability, it can reach no process of the box, and it
// has only the files that it was handed.
package supervisor
