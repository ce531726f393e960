//go:build !embedguest && !linux

package main

// gvisorMain knows no gVisor on this system.
func gvisorMain() bool { return false }

// monitorMain knows no machines either.
func monitorMain() bool { return false }

// gatewayMain knows none either.
func gatewayMain() bool { return false }
