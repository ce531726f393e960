//go:build linux && !amd64

package main

// System calls of another architecture only.
var sysModifyLDT, sysIOPerm, sysIOPL = -1, -1, -1
