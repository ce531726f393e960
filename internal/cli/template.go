package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock"
)

// templateFlags say what a template begins with.
type templateFlags struct {
	createFlags
	start  string
	ready  string
	within TimeFlag
}

const (
	readyWithin = 5 * time.Minute
	readyEvery  = 100 * time.Millisecond // between two checks
	readyTime   = 30 * time.Second       // that one check takes
)

func (a *App) templateCommand() *cobra.Command {
	f := &templateFlags{within: TimeFlag(readyWithin)}
	c := &cobra.Command{
		Use:   "template [flags]",
		Short: "Keep a sandbox that has begun, to begin others where it is",
		Long: `Make a sandbox on a server, start a command in it, wait until it is ready, and
keep it as a snapshot: its files, and with --start its processes and their memory
too. The sandbox itself is removed, and the ID of the snapshot is written. paddock
create --root snapshot:ID makes a sandbox that goes on from there, a server's --warm
keeps such ready, and paddock rm --snapshot removes it.

What the sandbox begins with is said as for paddock create. --start runs in the
background with the sandbox's shell. --ready is run again and again until it
succeeds; without it the template is kept when the command has been started.

Processes and memory are kept on gvisor and microvm. What a template was shown and
what it may reach is not in it: say so again for each sandbox.

Exit status: 0, or 125 if nothing was kept.`,
		Example: `  web=$(paddock template --tier gvisor --start 'python3 -m http.server 8000' --ready 'wget -qO- localhost:8000')
  id=$(paddock create --root "snapshot:$web")`,
		Args:                  cobra.NoArgs,
		DisableFlagsInUseLine: true,
		RunE: func(c *cobra.Command, _ []string) error {
			if f.ready != "" && f.start == "" {
				return WithHint(fmt.Errorf("--ready without --start: %w", paddock.Invalid), "--start names the command that becomes ready")
			}
			p, err := f.asked(a, c.Flags().Changed)
			if err != nil {
				return err
			}
			terms, err := f.termsWith(p)
			if err != nil {
				return err
			}
			return a.With(c.Context(), &f.RemoteFlags, func(ctx context.Context, r *Remote) (err error) {
				if err := r.sees(p.spec); err != nil {
					return err
				}
				sb, err := a.make(ctx, r, p.spec, terms)
				if err != nil {
					return err
				}
				defer func() {
					gone, cancel := context.WithTimeout(context.WithoutCancel(ctx), 6*Patience)
					defer cancel()
					err = errors.Join(err, sb.Remove(gone))
				}()
				return a.template(ctx, f, sb)
			})
		},
	}
	fs := c.Flags()
	f.registerAll(fs)
	fs.StringVar(&f.start, "start", "", "`script` for the sandbox's shell that goes on in each sandbox of the template")
	fs.StringVar(&f.ready, "ready", "", "`script` that succeeds when the command of --start is ready")
	fs.Var(&f.within, "ready-within", "how much `time` the command of --start has to become ready")
	return c
}

// template starts what a template has, and keeps it.
func (a *App) template(ctx context.Context, f *templateFlags, sb paddock.Sandbox) error {
	if f.start != "" {
		if err := a.becomesReady(ctx, f, sb); err != nil {
			return err
		}
	}
	defer a.progress("keeping the template")()
	id, err := sb.Snapshot(ctx, paddock.SnapshotOptions{Memory: f.start != ""})
	if err != nil {
		return Otherwise(err, keptFiles)
	}
	if f.json {
		return PrintJSON(a.Stdout, map[string]paddock.SnapshotID{"snapshot": id})
	}
	return a.Say("%s\n", id)
}

// becomesReady starts the command of a template, and waits until its check succeeds.
func (a *App) becomesReady(ctx context.Context, f *templateFlags, sb paddock.Sandbox) error {
	defer a.progress("starting the template")()
	said := &tail{most: maxErrors}
	p, err := sb.Start(ctx, paddock.Cmd{Args: []string{"sh", "-c", f.start}, Output: paddock.Output{Stdout: said, Stderr: said}})
	if err != nil {
		return fmt.Errorf("--start: %w", err)
	}
	defer p.Release()
	if f.ready == "" {
		return nil
	}
	ended := make(chan paddock.Exit, 1)
	var wg sync.WaitGroup
	defer wg.Wait()
	waiting, stop := context.WithTimeoutCause(ctx, time.Duration(f.within), fmt.Errorf("--ready: the command of --start was not ready within %v: %w", time.Duration(f.within), paddock.Timeout))
	defer stop()
	wg.Go(func() {
		if exit, err := p.Wait(waiting); err == nil {
			ended <- exit
		}
	})
	var last string
	for {
		exit, words, err := check(waiting, sb, f.ready)
		if err == nil && exit.Code == 0 {
			return nil
		}
		if words != "" {
			last = words
		}
		select {
		case e := <-ended:
			if e.Code != 0 {
				said.show(a.Stderr)
				return fmt.Errorf("--start: the command ended with %d before it was ready: %w", e.Code, paddock.Unavailable)
			}
			// What it began in the background goes on.
		case <-waiting.Done():
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("--ready: it was given up: %w", paddock.Canceled)
			}
			return WithHint(context.Cause(waiting), "the last check said: %s; --ready-within gives it more time", OneLine(last))
		case <-time.After(readyEvery):
		}
		if err != nil && !errors.Is(err, paddock.Timeout) {
			return fmt.Errorf("--ready: %w", err)
		}
	}
}

// check runs a check, and returns what it said.
func check(ctx context.Context, sb paddock.Sandbox, script string) (paddock.Exit, string, error) {
	said := &tail{most: maxErrors}
	p, err := sb.Start(ctx, paddock.Cmd{Args: []string{"sh", "-c", script}, Timeout: readyTime, Output: paddock.Output{Stdout: said, Stderr: said}})
	if err != nil {
		return paddock.Exit{}, "", err
	}
	exit, err := p.Wait(ctx)
	return exit, strings.Join(said.lines(), " "), err
}
