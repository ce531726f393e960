//go:build embedguest

package main

import _ "embed"

//go:embed guest.bin
var guest []byte

// guestBinary is the guest agent that the build put into this program.
func guestBinary() []byte { return guest }
