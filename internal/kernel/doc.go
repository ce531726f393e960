// Package kernel is the only importer of golang.org/x/sys/unix: thin wrappers
// around the Linux interfaces that Paddock stands on, and probes that tell
// whether this machine has them. It decides nothing.
//
// Files named *_linux.go hold the real thing; *_other.go answer Unsupported,
// so that everything above builds everywhere.
package kernel
