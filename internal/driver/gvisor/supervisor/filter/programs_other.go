//go:build linux && !amd64 && !arm64

package filter

// compressed is empty, because gVisor does not run on this architecture.
var compressed []byte
