//go:build unix

package cli

import (
	"os"
	"syscall"
)

// Signals that a run listens to. SIGPIPE is among them so that a reader of our
// output who goes away ends the command, and not us before the sandbox is
// removed.
var (
	forwarded   = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}
	brokenPipe  = os.Signal(syscall.SIGPIPE)
	windowMoved = os.Signal(syscall.SIGWINCH)
)
