package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// Bounds of one piece of output.
const (
	usualPiece  = 16 << 10
	mostPiece   = 64 << 10
	mostWait    = 10 * time.Minute
	mostInput   = 1 << 20
	longCommand = 200
)

type processIn struct {
	Sandbox string  `json:"sandbox"`
	Process int     `json:"process"`
	Action  string  `json:"action"`
	Input   string  `json:"input"`
	Offset  *int64  `json:"offset"`
	Limit   int64   `json:"limit"`
	Wait    float64 `json:"wait"` // seconds
}

type processOut struct {
	Process   int      `json:"process,omitempty"`
	Cause     string   `json:"cause,omitempty"` // of the end; "running"
	Exit      *int     `json:"exit,omitempty"`
	Reason    string   `json:"reason,omitempty"`
	Output    string   `json:"output"`
	Offset    int64    `json:"offset"` // of the first byte of the output
	Next      int64    `json:"next"`   // offset to go on at
	Total     int64    `json:"total"`
	Processes []string `json:"processes,omitempty"`
}

func actions() []string { return []string{"output", "list", "write", "close", "interrupt", "kill"} }

func process(ctx context.Context, c *call, in processIn) (processOut, error) {
	b, err := c.open(ctx, in.Sandbox)
	if err != nil {
		return processOut{}, err
	}
	pid := paddock.PID(in.Process)
	if in.Action != "list" && in.Process <= 0 {
		return processOut{}, fmt.Errorf("process %d: sandbox_process with action list tells which there are: %w", in.Process, paddock.Invalid)
	}
	switch in.Action {
	case "", "output":
		return c.output(ctx, b, pid, in)
	case "list":
		return c.processes(ctx, b)
	case "write":
		if len(in.Input) > mostInput {
			return processOut{}, fmt.Errorf("an input of %d bytes: at most %d are sent at once: %w", len(in.Input), mostInput, paddock.Invalid)
		}
		err = b.with(ctx, pid, func(p paddock.Process) error {
			_, err := p.Input().Write([]byte(in.Input))
			return err
		})
		c.text = fmt.Sprintf("%d bytes are written to process %d.", len(in.Input), pid)
	case "close":
		err = b.with(ctx, pid, func(p paddock.Process) error { return p.Input().Close() })
		c.text = fmt.Sprintf("the input of process %d is closed.", pid)
	case "interrupt", "kill":
		sig := syscall.SIGKILL
		if in.Action == "interrupt" {
			sig = syscall.SIGINT
		}
		err = b.with(ctx, pid, func(p paddock.Process) error { return p.Signal(ctx, sig) })
		c.text = fmt.Sprintf("process %d has the signal.", pid)
	default:
		return processOut{}, fmt.Errorf("action %q: it is %s: %w", clip(in.Action, 80), strings.Join(actions(), ", "), paddock.Invalid)
	}
	return processOut{Process: in.Process}, err
}

// with does something to a process that runs.
func (b *box) with(ctx context.Context, pid paddock.PID, do func(paddock.Process) error) error {
	p, err := b.Attach(ctx, pid, paddock.Output{Detached: true})
	if err != nil {
		return noProcess(pid, err)
	}
	defer p.Release()
	return noProcess(pid, do(p))
}

func noProcess(pid paddock.PID, err error) error {
	if errors.Is(err, paddock.NotFound) {
		return fmt.Errorf("process %d has ended, or there is none: %w", pid, paddock.NotFound)
	}
	return err
}

// processes lists them.
func (c *call) processes(ctx context.Context, b *box) (processOut, error) {
	all, err := b.Processes(ctx)
	if err != nil {
		return processOut{}, err
	}
	var out processOut
	for i, p := range slices.Backward(all) {
		if len(out.Processes) == mostListed {
			out.Processes = append(out.Processes, fmt.Sprintf("and %d older ones", i+1))
			break
		}
		state := "running"
		if p.Exit != nil {
			state = fmt.Sprintf("exit %d, %s", p.Exit.Code, p.Exit.Cause)
		}
		args := p.Args
		if len(args) == 3 && args[1] == "-c" {
			args = args[2:]
		}
		out.Processes = append(out.Processes, fmt.Sprintf("%d (%s): %s", p.PID, state, clip(oneLine(strings.Join(args, " ")), longCommand)))
	}
	c.text = strings.Join(out.Processes, "\n")
	if c.text == "" {
		c.text = "there are none"
	}
	return out, nil
}

// output reads a piece of the output of a process, both streams in their order. It can wait for the process to end.
func (c *call) output(ctx context.Context, b *box, pid paddock.PID, in processIn) (processOut, error) {
	if in.Wait < 0 || in.Wait > mostWait.Seconds() || in.Limit < 0 || in.Limit > mostPiece {
		return processOut{}, fmt.Errorf("wait is 0 to %g seconds, and limit 0 to %d bytes: %w", mostWait.Seconds(), mostPiece, paddock.Invalid)
	}
	if in.Wait > 0 {
		if err := c.await(ctx, b, pid, time.Duration(in.Wait*float64(time.Second))); err != nil {
			return processOut{}, err
		}
	}
	p, err := b.find(ctx, pid)
	if err != nil {
		return processOut{}, err
	}
	limit := in.Limit
	if limit == 0 {
		limit = usualPiece
	}
	from := max(p.First, p.Next-limit) // the newest
	if in.Offset != nil {
		from = min(max(*in.Offset, p.First), p.Next)
	}
	data, err := b.piece(ctx, pid, from, min(limit, p.Next-from))
	if err != nil {
		return processOut{}, err
	}
	out := processOut{Process: int(pid), Cause: "running", Output: plain(data), Offset: from, Next: from + int64(len(data)), Total: p.Next}
	if binary(data) {
		out.Output = fmt.Sprintf("(%d bytes that are no text)", len(data))
	}
	state := "runs"
	if p.Exit != nil {
		out.Cause, out.Exit, out.Reason = string(p.Exit.Cause), &p.Exit.Code, oneLine(p.Exit.Reason)
		state = strings.TrimSuffix(fmt.Sprintf("ended: exit %d, %s, %s", p.Exit.Code, out.Cause, out.Reason), ", ")
	}
	var t strings.Builder
	t.WriteString(out.Output)
	endLine(&t)
	fmt.Fprintf(&t, "[process %d %s; bytes %d to %d of %d", pid, state, out.Offset, out.Next, out.Total)
	if in.Offset != nil && *in.Offset < p.First {
		fmt.Fprintf(&t, "; bytes before %d are kept no more", p.First)
	}
	if out.Next < out.Total {
		fmt.Fprintf(&t, "; go on at offset %d", out.Next)
	}
	t.WriteString("]")
	c.text = t.String()
	return out, nil
}

// await waits for the end of a process, for a while.
func (c *call) await(ctx context.Context, b *box, pid paddock.PID, wait time.Duration) error {
	p, err := b.Attach(ctx, pid, paddock.Output{Detached: true})
	if err != nil {
		return noProcess(pid, err)
	}
	defer p.Release()
	short, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	stop := c.progress(ctx, &ends{}, &ends{})
	defer stop()
	_, err = p.Wait(short)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("wait for process %d: %w", pid, paddock.Canceled)
	case short.Err() != nil:
		return nil // it goes on
	}
	return err
}

func (b *box) find(ctx context.Context, pid paddock.PID) (paddock.ProcessInfo, error) {
	all, err := b.Processes(ctx)
	if err != nil {
		return paddock.ProcessInfo{}, err
	}
	i := slices.IndexFunc(all, func(p paddock.ProcessInfo) bool { return p.PID == pid })
	if i < 0 {
		return paddock.ProcessInfo{}, noProcess(pid, paddock.NotFound)
	}
	return all[i], nil
}

// piece reads output that is kept.
func (b *box) piece(ctx context.Context, pid paddock.PID, from, length int64) ([]byte, error) {
	if length <= 0 {
		return nil, nil
	}
	got := &filling{want: int(length), full: make(chan struct{})}
	p, err := b.Attach(ctx, pid, paddock.Output{Stdout: got, Stderr: got, From: from})
	if err != nil {
		return nil, noProcess(pid, err)
	}
	defer p.Release()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { // it ends with the call's context
		_, err := p.Wait(ctx)
		ended <- err
	}()
	select {
	case <-got.full:
		cancel()
		<-ended //nolint:errcheck // it was given up
	case err := <-ended:
		if err != nil {
			return nil, err
		}
	}
	return got.bytes(), nil
}

// filling takes so many bytes, and then no more.
type filling struct {
	want int
	full chan struct{}

	mu   sync.Mutex
	data []byte // guarded by mu
}

func (f *filling) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.data) >= f.want {
		return 0, io.ErrShortWrite // which detaches
	}
	n := min(len(p), f.want-len(f.data))
	f.data = append(f.data, p[:n]...)
	if len(f.data) == f.want {
		close(f.full)
	}
	if n < len(p) {
		return n, io.ErrShortWrite
	}
	return n, nil
}

func (f *filling) bytes() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.data
}
