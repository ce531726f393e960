package paddock

import (
	"context"
	"io"
	"syscall"
	"time"
)

// A PID is the number of a process inside its sandbox.
type PID int

// A Cmd is a command to run.
type Cmd struct {
	// Args are the program and its arguments. A program name without a slash is looked up
	// in the PATH of the command's environment.
	Args []string

	// Env is added to the sandbox's environment and overrides it.
	Env map[string]string

	// Dir is the working directory. Empty selects the sandbox's.
	Dir string

	// User is the user to run as. Empty selects the sandbox's user. Another user needs
	// [CanUsers].
	User string

	// Input keeps standard input open for [Process.Input]. Without it the command reads
	// from an empty file.
	Input bool

	// Terminal gives the command a terminal of this size instead of three streams. It
	// implies Input. The output arrives at Output.Stdout.
	Terminal *Size

	// Timeout is the time after which the command's process group is killed. Zero sets no
	// bound for this command.
	Timeout time.Duration

	// Output receives the command's output while the caller is attached.
	Output Output
}

// Output says where the output of a process is copied to. Stdout and Stderr are written by
// one goroutine, in the order in which the output was produced.
//
// While an Output is attached, the process waits for its writers, as it would for a pipe,
// so nothing is lost. A writer that returns an error detaches the Output, and the process
// continues. Without an Output, the newest output is kept, up to the bound of the tier.
// [Exit.Dropped] counts what was dropped.
type Output struct {
	Stdout io.Writer // nil discards
	Stderr io.Writer // nil discards

	// From is the offset to begin at: bytes of output since the start of the process, both
	// streams together. Output that is no longer kept is skipped.
	From int64

	// Detached asks for no copying at all. Stdout and Stderr are then ignored.
	Detached bool
}

// A Process is a started command.
type Process interface {
	ID() PID

	// Input returns the writer to the command's standard input or terminal. Close sends the
	// end of file; for a terminal it sends the end-of-file character. The writer of a
	// command without Input fails with [Conflict]. An attached process has the same input
	// as the one that Start returned.
	Input() io.WriteCloser

	// Wait waits for the end of the process and of its output, and returns how the process
	// ended. A non-zero code is not an error. Every call returns the same Exit. ctx bounds
	// only the waiting.
	Wait(ctx context.Context) (Exit, error)

	// Signal sends a signal to the command's process group. It returns [NotFound] if the
	// process has ended.
	Signal(ctx context.Context, sig syscall.Signal) error

	// Resize changes the size of the terminal. It returns [Conflict] if there is no
	// terminal.
	Resize(ctx context.Context, size Size) error

	// Release stops copying the output; a pending Wait returns [Canceled]. The process
	// continues. A second Release does nothing.
	Release()
}

// Size is the size of a terminal in characters.
type Size struct {
	Rows, Cols uint16
}

// A Cause says why a process ended.
type Cause string

const (
	// Exited means that the process ended by itself, with a code.
	Exited Cause = "exited"
	// Signaled means that a signal from inside, or from Process.Signal, killed it.
	Signaled Cause = "signaled"
	// TimedOut means that Cmd.Timeout or Limits.Lifetime ended it.
	TimedOut Cause = "timed-out"
	// OutOfMemory means that the memory limit ended it. Exit.Limit and Exit.Peak have the
	// figures.
	OutOfMemory Cause = "out-of-memory"
	// KilledByPolicy means that a forbidden system call or a policy ended it.
	KilledByPolicy Cause = "killed-by-policy"
	// OutOfBudget means that another limit of the tier ended it: on work, depth or output.
	// Exit.Reason names the limit.
	OutOfBudget Cause = "out-of-budget"
	// SandboxGone means that the sandbox ended: it was removed, or its boundary process
	// died.
	SandboxGone Cause = "sandbox-gone"
)

// An Exit says how a process ended.
type Exit struct {
	Code    int            `json:"code"`             // as a shell reports it: 128+n for signal n
	Signal  syscall.Signal `json:"signal,omitempty"` // zero if no signal killed it
	Cause   Cause          `json:"cause"`
	Reason  string         `json:"reason,omitempty"`  // one sentence; empty for a plain exit
	Limit   int64          `json:"limit,omitempty"`   // of memory, bytes, if it was reached: see Cause and Reason
	Peak    int64          `json:"peak,omitempty"`    // of memory, bytes, if the limit was reached
	Dropped int64          `json:"dropped,omitempty"` // bytes of output that this Output missed while detached
	Usage   Usage          `json:"usage"`
}

// ProcessInfo describes a process that [Sandbox.Start] started.
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
