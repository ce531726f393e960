// Package protocol is what host and child of a simulated computer say to each other:
// orders, replies and streams of files. The child trusts the host. The host reads
// replies as bytes of a stranger.
package protocol
