//go:build unix

package vfs

import "syscall"

// noFollow are flags of the host's open: a link is not followed, and a pipe
// does not make the caller wait.
const noFollow = syscall.O_NONBLOCK | syscall.O_NOFOLLOW
