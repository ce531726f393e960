package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock"
)

func timeout(f TimeFlag) time.Duration { return time.Duration(f) }

func (a *App) logsCommand() *cobra.Command {
	var f RemoteFlags
	var follow, strip, asJSON bool
	c := &cobra.Command{
		Use:   "logs [flags] ID [PID]",
		Short: "Write the output that is kept of a command",
		Long: `Write the output that is kept of a command, each stream to its own. With -f more
follows as it comes, until the command ends. Nothing is passed on to the command,
and it does not matter to it when this ends. Without PID it is the one command
that runs, or else the only one there is.

Exit status: 0, or 125 if Paddock itself failed; 128+n if signal n ended it.`,
		Args:                  cobra.RangeArgs(1, 2),
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     a.completeIDs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if follow && asJSON {
				return WithHint(fmt.Errorf("-f and --json: one object has an end: %w", paddock.Invalid), "leave one out")
			}
			return a.With(c.Context(), &f, func(ctx context.Context, r *Remote) error {
				sb, err := r.Open(ctx, paddock.ID(args[0]))
				if err != nil {
					return err
				}
				list, err := sb.Processes(ctx)
				if err != nil {
					return err
				}
				info, err := pick(list, args)
				if err != nil {
					return err
				}
				to := paddock.Output{Stdout: a.Stdout, Stderr: a.Stderr}
				switch {
				case asJSON:
					return a.logsJSON(ctx, sb, info)
				case strip:
					to = paddock.Output{Stdout: stripped(a.Stdout), Stderr: stripped(a.Stderr)}
				}
				return a.logs(ctx, sb, info, to, follow)
			})
		},
	}
	fs := c.Flags()
	fs.SortFlags = false
	f.register(fs)
	fs.BoolVarP(&follow, "follow", "f", false, "go on with what comes, until the command ends")
	fs.BoolVar(&asJSON, "json", false, "answer with one JSON object: the command as of paddock ps --json, with the first 1 MiB of each stream")
	registerStrip(fs, &strip)
	return c
}

// A tap passes output on until it has had a number of bytes of it.
type tap struct {
	full chan struct{} // closed when there is nothing left to wait for

	mu   sync.Mutex
	left int64 // guarded by mu; negative is without end
	err  error // guarded by mu; of a write
}

// A spout is one of its streams.
type spout struct {
	t  *tap
	to io.Writer
}

var errEnough = errors.New("there was enough")

func (s spout) Write(p []byte) (int, error) {
	t := s.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left == 0 {
		return 0, errEnough
	}
	if t.left > 0 {
		p = p[:min(int64(len(p)), t.left)]
	}
	n, err := s.to.Write(p)
	if err != nil {
		t.err, t.left = err, 0
	} else if t.left > 0 {
		t.left -= int64(n)
	}
	if t.left == 0 {
		close(t.full)
		return n, errEnough
	}
	return n, nil
}

// logged is what is kept of a process, for machines.
type logged struct {
	paddock.ProcessInfo
	Stdout *captured `json:"stdout"`
	Stderr *captured `json:"stderr"`
}

// logsJSON writes what is kept of a process as one object.
func (a *App) logsJSON(ctx context.Context, sb paddock.Sandbox, info paddock.ProcessInfo) error {
	l := logged{info, &captured{}, &captured{}}
	if err := a.logs(ctx, sb, info, paddock.Output{Stdout: l.Stdout, Stderr: l.Stderr}, false); err != nil {
		return err
	}
	return PrintJSON(a.Stdout, l)
}

// logs writes what is kept of a process, and with follow what comes.
func (a *App) logs(ctx context.Context, sb paddock.Sandbox, info paddock.ProcessInfo, to paddock.Output, follow bool) error {
	t := &tap{full: make(chan struct{}), left: info.Next - info.First}
	if follow {
		t.left = -1
	} else if t.left <= 0 {
		return nil
	}
	p, err := sb.Attach(ctx, info.PID, paddock.Output{Stdout: spout{t, to.Stdout}, Stderr: spout{t, to.Stderr}, From: info.First})
	if err != nil {
		return err
	}
	defer p.Release()
	ended, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-t.full:
			cancel()
		case <-ended.Done():
		}
	})
	_, err = p.Wait(ended)
	cancel()
	wg.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.err != nil:
		return fmt.Errorf("write the output: %w: %w", t.err, paddock.Exhausted)
	case t.left == 0 && ctx.Err() == nil:
		return nil
	}
	return err
}

func (a *App) processesCommand() *cobra.Command {
	var f RemoteFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "ps ID",
		Short: "List the commands of a sandbox",
		Long: `List what paddock exec started in a sandbox: all that run, and those that ended and
whose output is still kept.

Exit status: 0, or 125 if Paddock itself failed.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeIDs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.With(c.Context(), &f, func(ctx context.Context, r *Remote) error {
				sb, err := r.Open(ctx, paddock.ID(args[0]))
				if err != nil {
					return err
				}
				list, err := sb.Processes(ctx)
				if err != nil {
					return err
				}
				if asJSON {
					if list == nil {
						list = []paddock.ProcessInfo{}
					}
					return PrintJSON(a.Stdout, list)
				}
				w := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
				fmt.Fprintln(w, "PID\tSTATE\tSTARTED\tOUTPUT\tCOMMAND")
				for _, p := range list {
					fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\n", p.PID, stateOf(p), p.Started.Local().Format(time.DateTime), BytesInWords(p.Next), OneLine(strings.Join(p.Args, " ")))
				}
				return w.Flush()
			})
		},
	}
	f.register(c.Flags())
	c.Flags().BoolVar(&asJSON, "json", false, "answer with a JSON list")
	return c
}

// stateOf says in a word or two how a process is.
func stateOf(p paddock.ProcessInfo) string {
	switch {
	case p.Exit == nil:
		return "runs"
	case p.Exit.Cause == paddock.Exited:
		return fmt.Sprintf("exited %d", p.Exit.Code)
	}
	return OneLine(string(p.Exit.Cause))
}
