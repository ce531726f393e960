package mcpserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/paddock-sandbox/paddock"
)

// Bounds of one run.
const (
	usualTimeout = 2 * time.Minute
	mostTimeout  = 24 * time.Hour
	firstOutput  = 4 << 10 // bytes of a stream that a result has of its beginning
	lastOutput   = 12 << 10
	mostChanged  = 50
	mostRefused  = 20
	killTime     = time.Minute     // bounds the end of a command that was canceled
	progressTime = 5 * time.Second // between two notifications
)

type runIn struct {
	Sandbox    string  `json:"sandbox"`
	Command    string  `json:"command"`
	Language   string  `json:"language"`
	Directory  string  `json:"directory"`
	Timeout    float64 `json:"timeout"` // seconds
	Background bool    `json:"background"`
}

type runOut struct {
	Exit    *int     `json:"exit,omitempty"` // nil while it runs, and of cells
	Cause   string   `json:"cause"`          // of the end; "running"
	Reason  string   `json:"reason,omitempty"`
	Stdout  string   `json:"stdout"`
	Stderr  string   `json:"stderr"`
	Process int      `json:"process,omitempty"`
	Cut     int64    `json:"cut,omitempty"` // bytes of output that are left out
	Changed []string `json:"changed"`       // files, each with what happened
	Refused []string `json:"refused"`
}

func run(ctx context.Context, c *call, in runIn) (runOut, error) {
	timeout, err := seconds(in.Timeout)
	switch {
	case err != nil:
		return runOut{}, err
	case strings.TrimSpace(in.Command) == "":
		return runOut{}, fmt.Errorf("the command is empty: %w", paddock.Invalid)
	}
	b, err := c.open(ctx, in.Sandbox)
	if err != nil {
		return runOut{}, err
	}
	if in.Language != "" && in.Language != shellLanguage {
		if in.Background || in.Directory != "" {
			return runOut{}, fmt.Errorf("background and directory are of shell commands; code goes on where its language was left: %w", paddock.Invalid)
		}
		return c.cell(ctx, b, in, cmp.Or(timeout, usualTimeout))
	}
	cmd := paddock.Cmd{Timeout: timeout}
	if in.Directory != "" {
		if cmd.Dir, err = b.inside(in.Directory); err != nil {
			return runOut{}, err
		}
	}
	if in.Background {
		return c.background(ctx, b, cmd, in.Command)
	}
	cmd.Timeout = cmp.Or(timeout, usualTimeout)
	return c.foreground(ctx, b, cmd, in.Command)
}

func seconds(n float64) (time.Duration, error) {
	if n < 0 || n > mostTimeout.Seconds() {
		return 0, fmt.Errorf("timeout %g: it is between 0 and %g seconds: %w", n, mostTimeout.Seconds(), paddock.Invalid)
	}
	return time.Duration(n * float64(time.Second)), nil
}

// start starts a command by bash, or by sh where there is no bash. It does not end with ctx, but some time later: of a start
// that is given up nobody knows which process to kill.
func (b *box) start(ctx context.Context, cmd paddock.Cmd, command string) (paddock.Process, error) {
	ctx, cancel := later(ctx)
	defer cancel()
	b.mu.Lock()
	known := b.shell
	b.mu.Unlock()
	cmd.Args = []string{cmp.Or(known, "bash"), "-c", command}
	proc, err := b.Start(ctx, cmd)
	var start *paddock.StartError
	if known == "" && errors.As(err, &start) && start.Code == 127 {
		cmd.Args[0] = "sh"
		proc, err = b.Start(ctx, cmd)
	}
	if err == nil && known == "" {
		b.mu.Lock()
		b.shell = cmd.Args[0]
		b.mu.Unlock()
	}
	return proc, err
}

// later gives a context that ends some time after another one.
func later(ctx context.Context) (context.Context, func()) {
	long, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		t := time.AfterFunc(killTime, cancel)
		context.AfterFunc(long, func() { t.Stop() })
	})
	return long, func() { stop(); cancel() }
}

// background starts a command and does not wait for it. Its input stays open for sandbox_process.
func (c *call) background(ctx context.Context, b *box, cmd paddock.Cmd, command string) (runOut, error) {
	cmd.Input, cmd.Output.Detached = true, true
	proc, err := b.start(ctx, cmd, command)
	if err != nil {
		return runOut{}, err
	}
	defer proc.Release()
	if ctx.Err() != nil {
		return runOut{}, b.canceled(ctx, proc)
	}
	c.text = fmt.Sprintf("process %d runs; sandbox_process reads its output, writes to its input and kills it.", proc.ID())
	return runOut{Cause: "running", Process: int(proc.ID()), Changed: []string{}, Refused: []string{}}, nil
}

// foreground runs a command to its end. If the call is canceled, the command is killed.
func (c *call) foreground(ctx context.Context, b *box, cmd paddock.Cmd, command string) (runOut, error) {
	out, errs := &ends{first: firstOutput, last: lastOutput}, &ends{first: firstOutput / 2, last: lastOutput / 2}
	cmd.Output = paddock.Output{Stdout: out, Stderr: errs}
	step := b.lastStep(ctx)
	proc, err := b.start(ctx, cmd, command)
	if err != nil {
		return runOut{}, err
	}
	defer proc.Release()
	stop := c.progress(ctx, out, errs)
	exit, err := proc.Wait(ctx)
	stop()
	if ctx.Err() != nil {
		return runOut{}, b.canceled(ctx, proc)
	}
	if err != nil {
		return runOut{}, err
	}
	r := runOut{Exit: &exit.Code, Cause: string(exit.Cause), Reason: oneLine(exit.Reason), Process: int(proc.ID())}
	var cut [2]int64
	r.Stdout, cut[0] = out.text()
	r.Stderr, cut[1] = errs.text()
	r.Cut = cut[0] + cut[1]
	if err := c.aftermath(ctx, b, step, &r); err != nil {
		return runOut{}, err
	}
	c.tell(b, &r, exit)
	return r, nil
}

// canceled kills the command of a call that was canceled.
func (b *box) canceled(ctx context.Context, proc paddock.Process) error {
	gone, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTime)
	defer cancel()
	if err := b.kill(gone, proc); err != nil {
		return fmt.Errorf("the call was canceled, and its process %d could not be killed: %w", proc.ID(), err)
	}
	return fmt.Errorf("run: %w", paddock.Canceled)
}

// kill kills a process, also if the connection breaks meanwhile.
func (b *box) kill(ctx context.Context, proc paddock.Process) error {
	for {
		err := proc.Signal(ctx, syscall.SIGKILL)
		if err == nil || errors.Is(err, paddock.NotFound) {
			return nil
		}
		if _, gone := b.Status(ctx); errors.Is(gone, paddock.NotFound) {
			return nil
		}
		if !errors.Is(err, paddock.Unavailable) || ctx.Err() != nil {
			return err
		}
	}
}

// aftermath adds what was changed and refused meanwhile.
func (c *call) aftermath(ctx context.Context, b *box, step int64, r *runOut) error {
	r.Changed, r.Refused = b.changedSince(ctx, step), []string{}
	st, err := b.Status(ctx)
	switch {
	case errors.Is(err, paddock.NotFound), errors.Is(err, paddock.Unavailable):
		c.forget(b.ID())
		r.Reason = strings.TrimPrefix(r.Reason+"; the sandbox is gone", "; ")
		return nil
	case err != nil:
		return err
	case st.State == paddock.Dead:
		r.Reason = strings.TrimPrefix(r.Reason+"; the sandbox died: "+oneLine(st.Reason), "; ")
	}
	r.Refused = append(r.Refused, b.newly(st.Refused)...)
	return nil
}

// tell writes the result as text.
func (c *call) tell(b *box, r *runOut, exit paddock.Exit) {
	var t strings.Builder
	t.WriteString(r.Stdout)
	endLine(&t)
	if r.Stderr != "" {
		t.WriteString("[stderr]\n" + r.Stderr)
		endLine(&t)
	}
	if exit.Code != 0 || exit.Cause != paddock.Exited || t.Len() == 0 {
		fmt.Fprintf(&t, "[exit %d, %s]\n", exit.Code, r.Cause)
	}
	if r.Reason != "" {
		fmt.Fprintf(&t, "[reason: %s]\n", r.Reason)
	}
	if r.Cut > 0 {
		t.WriteString("[" + c.rest(b, r.Process, firstOutput) + "]\n")
	}
	tellLists(&t, r)
	c.text = t.String()
}

// rest says how output that is left out is read.
func (c *call) rest(b *box, process int, offset int64) string {
	if c.s.o.Single {
		return fmt.Sprintf(`the rest: file_read {"path": "output:%d", "offset": %d}`, process, offset)
	}
	return fmt.Sprintf(`the rest: sandbox_process {"sandbox": %q, "process": %d, "offset": %d}`, b.ID(), process, offset)
}

func tellLists(t *strings.Builder, r *runOut) {
	if len(r.Changed) > 0 {
		fmt.Fprintf(t, "[changed: %s]\n", strings.Join(r.Changed, ", "))
	}
	for _, line := range r.Refused {
		fmt.Fprintf(t, "[refused: %s]\n", line)
	}
}

func endLine(t *strings.Builder) {
	if text := t.String(); text != "" && !strings.HasSuffix(text, "\n") {
		t.WriteByte('\n')
	}
}

// newly gives what was refused since it was asked last.
func (b *box) newly(all []paddock.Refusal) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := map[string]int{}
	var list []string
	for _, r := range all {
		key := r.What + "\x00" + r.Target + "\x00" + r.Rule
		now[key] += r.Count
		times := now[key] - b.refused[key]
		if times <= 0 {
			continue
		}
		text := fmt.Sprintf("%s %s: %s", oneLine(r.What), clip(oneLine(r.Target), 200), clip(oneLine(r.Rule), 200))
		if times > 1 {
			text += fmt.Sprintf(" (%d times)", times)
		}
		if r.Remedy != "" {
			text += "; " + clip(oneLine(r.Remedy), 200)
		}
		list = append(list, text)
	}
	b.refused = now
	if n := len(list); n > mostRefused { // the newest are the last
		list = append([]string{fmt.Sprintf("%d earlier ones", n-mostRefused)}, list[n-mostRefused:]...)
	}
	return list
}

// lastStep gives the number of the last step that is recorded; -1 if none are.
func (b *box) lastStep(ctx context.Context) int64 {
	if b.labels[labelDirectory] != shownWrite {
		return -1
	}
	j, err := paddock.JournalOf(b.Sandbox)
	if err != nil {
		return -1
	}
	steps, err := j.Steps(ctx, paddock.StepFilter{Last: 1})
	switch {
	case err != nil:
		return -1
	case len(steps) == 0:
		return 0
	}
	return steps[0].Number
}

// changedSince tells which files the steps after one changed. What is not recorded is not known.
func (b *box) changedSince(ctx context.Context, step int64) []string {
	list := []string{}
	if step < 0 {
		return list
	}
	j, err := paddock.JournalOf(b.Sandbox)
	if err != nil {
		return list
	}
	steps, err := j.Steps(ctx, paddock.StepFilter{Last: 20})
	if err != nil {
		return list
	}
	more := 0
	for _, s := range steps {
		if s.Number <= step || s.Changed == 0 {
			continue
		}
		whole, err := j.Step(ctx, s.Number)
		if err != nil {
			continue
		}
		room := min(mostChanged-len(list), len(whole.Changes))
		for _, change := range whole.Changes[:room] {
			list = append(list, change.What+" "+b.short(change.Path))
		}
		more += max(s.Changed, len(whole.Changes)) - room
	}
	if more > 0 {
		list = append(list, fmt.Sprintf("and %d more, which sandbox_changes tells", more))
	}
	return list
}

// short gives a path as it is seen from the working directory.
func (b *box) short(name string) string {
	if rest, ok := strings.CutPrefix(name, path.Clean(b.dir)+"/"); ok && b.dir != "" {
		return clip(oneLine(rest), 200)
	}
	return clip(oneLine(name), 200)
}

// progress tells the client now and then that a command still runs, if it asked for that, until stop is called.
func (c *call) progress(ctx context.Context, out, errs *ends) (stop func()) {
	token := c.req.Params.GetProgressToken()
	if token == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		began := time.Now()
		tick := time.NewTicker(progressTime)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			since := time.Since(began)
			text := fmt.Sprintf("runs for %s, %d bytes of output", since.Round(time.Second), out.size()+errs.size())
			if line := out.lastLine(); line != "" {
				text += ": " + line
			}
			// A client that does not want to hear it any more is heard of by the call's context.
			_ = c.req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: since.Seconds(), Message: text})
		}
	})
	return func() { cancel(); wg.Wait() }
}
