// Package seccomp has the tables of system calls that are refused or reported in
// a container, and makes programs for a kernel of them. It is a package of its
// own because both sides of a kernel in software have such tables, and share
// rows: the host's side (package inner), and the agent on that kernel (package
// inside), which inner imports.
package seccomp
