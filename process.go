package paddock

import (
	"context"
	"io"
	"syscall"
	"time"
)

// A PID is a process's number inside its sandbox.
type PID int

// A Cmd is a command to run.
type Cmd struct {
	// Args are the program and its arguments. A program without a slash is
	// looked up in the PATH of the command's environment.
	Args []string

	// Env is added to the sandbox's environment, and wins over it.
	Env map[string]string

	// Dir is the working directory; empty is the sandbox's.
	Dir string

	// User is who it runs as; empty is the sandbox's user. Another one needs
	// [CanUsers].
	User string

	// Input keeps a way in open: Process.Input. Without it the command reads
	// from an empty file.
	Input bool

	// Terminal gives the command a terminal of this size in place of three
	// streams. It implies Input; its output arrives at Output.Stdout.
	Terminal *Size

	// Timeout kills the command's process group when it has run this long.
	// Zero is no bound of its own.
	Timeout time.Duration

	// Output is where output goes while the caller is there.
	Output Output
}

// Output says where a process's output is copied to. Stdout and Stderr are
// written from one goroutine, in the order in which the output was made.
//
// While an Output is attached the process waits for its writers, as it would
// for a pipe, so nothing is lost. A writer that returns an error detaches the
// Output: the process goes on. Where no Output is attached the newest output
// is kept, up to the tier's bound; what was dropped is told by Process.Wait
// in [Exit.Dropped].
type Output struct {
	Stdout io.Writer // nil discards
	Stderr io.Writer // nil discards

	// From is the offset to begin at: bytes of output since the start of the
	// process, both streams together. What is no longer kept is skipped.
	From int64

	// Detached asks for no copying at all; Stdout and Stderr are not used.
	Detached bool
}

// A Process is a command that was started.
type Process interface {
	ID() PID

	// Input is the way to the command's standard input or terminal. Close is
	// the end of file; for a terminal it sends the end-of-file character. Of
	// a command without Input it fails with [Conflict]. Of an attached
	// process it is the same way in.
	Input() io.WriteCloser

	// Wait waits for the end of the process and of its output, and returns how
	// the process ended. A non-zero code is not an error. Each call returns the
	// same. ctx bounds only the waiting.
	Wait(ctx context.Context) (Exit, error)

	// Signal sends a signal to the command's process group. A process that
	// has ended is [NotFound].
	Signal(ctx context.Context, sig syscall.Signal) error

	// Resize changes the terminal's size; without a terminal it is [Conflict].
	Resize(ctx context.Context, size Size) error

	// Release lets go of the process: its output is no longer copied, and
	// Wait ends with [Canceled]. The process goes on. Releasing twice is fine.
	Release()
}

// Size is a terminal's, in characters.
type Size struct {
	Rows, Cols uint16
}

// A Cause says why a process ended.
type Cause string

const (
	// Exited is by itself, with a code.
	Exited Cause = "exited"
	// Signaled is by a signal that came from inside, or by Process.Signal.
	Signaled Cause = "signaled"
	// TimedOut is by Cmd.Timeout or Limits.Lifetime.
	TimedOut Cause = "timed-out"
	// OutOfMemory is by the memory limit; Exit.Limit and Exit.Peak tell.
	OutOfMemory Cause = "out-of-memory"
	// KilledByPolicy is by a forbidden system call or a policy.
	KilledByPolicy Cause = "killed-by-policy"
	// OutOfBudget is by a limit of the tier that is none of the others: on
	// work, on depth, on output. Exit.Reason names it.
	OutOfBudget Cause = "out-of-budget"
	// SandboxGone is by the end of the sandbox: removed, or its boundary
	// process died.
	SandboxGone Cause = "sandbox-gone"
)

// An Exit says how a process ended.
type Exit struct {
	Code    int            `json:"code"`             // as a shell has it: 128+n for signal n
	Signal  syscall.Signal `json:"signal,omitempty"` // zero if it was not killed
	Cause   Cause          `json:"cause"`
	Reason  string         `json:"reason,omitempty"`  // one sentence; empty for a plain exit
	Limit   int64          `json:"limit,omitempty"`   // of OutOfMemory, bytes
	Peak    int64          `json:"peak,omitempty"`    // of OutOfMemory, bytes
	Dropped int64          `json:"dropped,omitempty"` // bytes of output that this Output missed because no one was attached
	Usage   Usage          `json:"usage"`
}

// ProcessInfo describes a process that Start started.
type ProcessInfo struct {
	PID      PID       `json:"pid"`
	Args     []string  `json:"args"`
	Dir      string    `json:"dir"`
	User     string    `json:"user"`
	Terminal bool      `json:"terminal,omitempty"`
	Started  time.Time `json:"started"`
	Exit     *Exit     `json:"exit,omitempty"` // nil while it runs
	First    int64     `json:"first"`          // offset of the oldest kept byte of output
	Next     int64     `json:"next"`           // offset after the newest one
}
