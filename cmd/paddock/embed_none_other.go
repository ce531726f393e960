//go:build !embedguest && !linux

package main

// gvisorMain knows no gVisor on this system.
func gvisorMain() bool { return false }
