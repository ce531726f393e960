package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// MaxOutput bounds each stream of output that [Run] keeps.
const MaxOutput = 64 << 20

// A Result is what a command of [Run] did.
type Result struct {
	Stdout, Stderr []byte
	Exit           paddock.Exit

	// Lost counts the bytes beyond MaxOutput, which were discarded.
	Lost int64
}

// Err returns an *ExitError if the command did not end by itself with code zero, as the
// package os/exec does.
func (r Result) Err() error {
	if r.Exit.Cause == paddock.Exited && r.Exit.Code == 0 {
		return nil
	}
	return &ExitError{r}
}

// An ExitError is the error of a command that failed.
type ExitError struct{ Result }

// Error returns how the command ended, and the last line of its standard error.
func (e *ExitError) Error() string {
	text := fmt.Sprintf("exit status %d", e.Exit.Code)
	if e.Exit.Cause != paddock.Exited {
		text += ": " + string(e.Exit.Cause)
	}
	if e.Exit.Reason != "" {
		text += ": " + e.Exit.Reason
	}
	lines := bytes.Split(bytes.TrimSpace(e.Stderr), []byte("\n"))
	if last := lines[len(lines)-1]; len(last) > 0 {
		text += fmt.Sprintf(": %.200q", last)
	}
	return text
}

// killTime bounds the call that kills a command after its context has ended.
const killTime = 10 * time.Second

// Run runs a command in a sandbox of any driver to its end, and returns its output. A
// failure of the command is in the Result; see [Result.Err]. The error says that the
// command could not be started, or that its end is not known.
//
//	r, err := client.Run(ctx, sb, paddock.Cmd{Args: []string{"make", "test"}})
//
// The command reads from an empty file: cmd.Input must not be set, nor cmd.Output. When ctx
// ends, Run kills the command, and returns the output so far with the error.
func Run(ctx context.Context, sb paddock.Sandbox, cmd paddock.Cmd) (Result, error) {
	if cmd.Output != (paddock.Output{}) || cmd.Input {
		return Result{}, fmt.Errorf("run: the output is returned, and there is no input; Start has both: %w", paddock.Invalid)
	}
	var out, errs bounded
	cmd.Output = paddock.Output{Stdout: &out, Stderr: &errs}
	if err := ctx.Err(); err != nil {
		kind := paddock.Canceled
		if errors.Is(err, context.DeadlineExceeded) {
			kind = paddock.Timeout
		}
		return Result{}, fmt.Errorf("run: %w: %w", err, kind)
	}
	// A start that is given up may have started the command, which nobody could kill then. So it goes on for a while.
	starting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(killTime, cancel) })()
	p, err := sb.Start(starting, cmd)
	if err != nil {
		return Result{}, err
	}
	defer p.Release()
	exit, err := p.Wait(ctx)
	if err != nil && ctx.Err() != nil {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTime)
		defer cancel()
		_ = p.Signal(late, syscall.SIGKILL) // it may have ended
		if killed, failed := p.Wait(late); failed == nil {
			exit = killed
		}
	}
	r := Result{Exit: exit}
	for _, b := range []struct {
		from *bounded
		to   *[]byte
	}{{&out, &r.Stdout}, {&errs, &r.Stderr}} {
		data, lost := b.from.take()
		*b.to = data
		r.Lost += lost
	}
	return r, err
}

// A bounded buffer keeps the first MaxOutput bytes.
type bounded struct {
	mu   sync.Mutex
	data []byte // guarded by mu
	lost int64  // guarded by mu
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(p), MaxOutput-len(b.data))
	b.lost += int64(len(p) - n)
	b.data = append(b.data, p[:n]...)
	return len(p), nil
}

// take returns what was written so far. A command that was not seen to end may write more.
func (b *bounded) take() ([]byte, int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.data), b.lost
}
