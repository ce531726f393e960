// Package distrotest tests paddock on machines that users have: Debian with systemd, cgroup v2, a user's
// session and a service. image.sh makes the disks of the machines, and QEMU emulates them, so that
// nothing of the tests' own machine matters. testdata/rows.sh has what each machine promises.
//
// `make distro` makes the disks and runs the tests.
package distrotest
