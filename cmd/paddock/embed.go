//go:build embedguest

package main

import _ "embed"

//go:embed guest.bin
var guest []byte

//go:embed gvisor.bin.gz
var gvisorProgram []byte

// gvisorBinary is the program that starts gVisor, which the build put into this
// one, compressed.
func gvisorBinary() []byte { return gvisorProgram }

//go:embed gateway.bin.gz
var gatewayProgram []byte

// gatewayBinary is the program of the way out, likewise.
func gatewayBinary() []byte { return gatewayProgram }

//go:embed keeper.bin.gz
var keeperProgram []byte

// keeperBinary is the program that owns a sandbox which outlives its maker, likewise.
func keeperBinary() []byte { return keeperProgram }

//go:embed microvm.bin.gz
var monitorProgram []byte

// monitorBinary is the program that runs machines, likewise.
func monitorBinary() []byte { return monitorProgram }

// monitorMain does nothing: what runs machines is a program of its own.
func monitorMain() bool { return false }

// gatewayMain does nothing: the way out is a program of its own.
func gatewayMain() bool { return false }

// gvisorMain does nothing: gVisor is in a program of its own.
func gvisorMain() bool { return false }

// guestBinary is the guest agent that the build put into this program.
func guestBinary() []byte { return guest }
