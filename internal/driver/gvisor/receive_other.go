//go:build !linux

package gvisor

import (
	"errors"
	"os"

	"github.com/paddock-sandbox/paddock/internal/audit"
)

// receive has nobody to hear: gVisor runs on Linux.
func receive(*os.File, string, audit.Sink) error { return errors.ErrUnsupported }
