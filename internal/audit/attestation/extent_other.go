//go:build !linux

package attestation

import "os"

// extent returns all that is left of a file: holes are known on Linux only.
func extent(_ *os.File, at, size int64) (from, to int64) { return at, size }
