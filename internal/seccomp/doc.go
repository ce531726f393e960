// Package seccomp builds the seccomp programs of a box from tables of the system calls that are
// refused or reported.
//
// Package boxinit uses the tables on the host's kernel. Package guestinit, which boxinit imports, uses
// them for the commands on a guest kernel. The tables share rows, so they have a package of their own.
package seccomp
