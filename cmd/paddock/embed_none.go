//go:build !embedguest

package main

// guestBinary is nothing: this build carries no guest agent of its own, and
// the driver starts this very program as one.
func guestBinary() []byte { return nil }

// gvisorBinary is nothing likewise.
func gvisorBinary() []byte { return nil }

// monitorBinary is nothing likewise.
func monitorBinary() []byte { return nil }

// keeperBinary is nothing likewise.
func keeperBinary() []byte { return nil }

// gatewayBinary is nothing likewise.
func gatewayBinary() []byte { return nil }
