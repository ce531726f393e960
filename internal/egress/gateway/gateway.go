// Package gateway is a gateway's process: it confines itself, and does what its
// owner says over a channel.
package gateway

// Main becomes a gateway if that is what this program was started for. It tells
// whether it was, and returns when the gateway is over.
func Main() bool { return false }
