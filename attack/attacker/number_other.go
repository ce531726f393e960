//go:build linux && !amd64

package main

// Calls that only another architecture has.
var sysModifyLDT, sysIOPerm, sysIOPL = -1, -1, -1
