//go:build !unix

package cli

import (
	"os"
	"syscall"
)

// Signals that a run listens to, where the system has few.
var (
	forwarded   = []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	brokenPipe  = os.Signal(syscall.SIGPIPE)
	windowMoved = os.Signal(syscall.Signal(-1))
)
