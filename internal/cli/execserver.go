package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/execserver"
	"github.com/paddock-sandbox/paddock/internal/step"
)

type execServerFlags struct {
	specFlags
	undo string
}

func (a *App) execServerCommand() *cobra.Command {
	f := &execServerFlags{}
	c := &cobra.Command{
		Use:   "exec-server [flags]",
		Short: "Run the shell and patch tools of a Codex that stays outside in a box",
		Long: `Run the tools of a Codex that stays on this machine in a box: Codex starts this
command and asks it, over its standard input and output, for processes and files.
They are those of a new sandbox, which is removed when Codex ends. The sandbox has
the directory in which Codex was started, or that of --workspace, writable and with
a record for paddock undo, and what the flags give it, which are those of paddock
run. Nothing listens, so nobody else can connect.

Codex takes it from ~/.codex/environments.toml (docs/use/exec-server.md):

  default = "paddock"
  include_local = false

  [[environments]]
  id = "paddock"
  program = "/usr/local/bin/paddock"
  args = ["exec-server"]
  initialize_timeout_sec = 60

and is started with --sandbox danger-full-access: the box is the sandbox. What
Codex asks for with another mode is refused, because the box would not keep it.

Exit status: 0 when Codex has ended, or 125.`,
		Example: `  codex --sandbox danger-full-access
  paddock exec-server --workspace . --allow github.com --memory 4G`,
		Args:                  cobra.NoArgs,
		DisableFlagsInUseLine: true,
		RunE: func(c *cobra.Command, _ []string) error {
			if isTerminal(a.Stdin) {
				return WithHint(fmt.Errorf("a terminal does not speak Codex's protocol: %w", paddock.Invalid), "have Codex start it: paddock exec-server --help")
			}
			return a.execServer(c.Context(), f, c.Flags().Changed)
		},
	}
	fs := c.Flags()
	fs.SortFlags = false
	f.register(fs)
	registerUndo(fs, &f.undo)
	f.undo = string(paddock.UndoOn)
	if flag := fs.Lookup("undo"); flag != nil {
		flag.DefValue = f.undo
	}
	return c
}

// execServer makes the box and answers Codex from it.
func (a *App) execServer(ctx context.Context, f *execServerFlags, changed func(string) bool) (err error) {
	p, err := f.served(a, changed)
	if err != nil {
		return err
	}
	defer a.closeCaches(a.caches(p))
	if p.steps, err = a.recording(ctx, p, f.undo); err != nil {
		return err
	}
	if p.steps != nil {
		defer p.steps.Close()
	}
	ctx, stop := a.Interruptible(ctx)
	defer stop()
	if err := a.takeImage(ctx, p); err != nil {
		return Because(ctx, err)
	}
	b, err := a.createOneShot(ctx, p)
	if err != nil {
		return Because(ctx, err)
	}
	defer func() { err = errors.Join(Because(ctx, err), a.endServed(ctx, b, p.steps)) }()
	o, err := a.servedFrom(ctx, b)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Stderr, "paddock: the tools of Codex run in a box on tier %s\n", b.tier)
	return execserver.Serve(ctx, o, onlyReader{a.Stdin}, a.Stdout)
}

// served plans the box.
func (f *execServerFlags) served(a *App, changed func(string) bool) (*plan, error) {
	set := changed
	if !changed("workspace") {
		dir, err := a.Dir()
		if err != nil {
			return nil, fmt.Errorf("working directory: %w: %w", err, paddock.NotFound)
		}
		home, _ := a.Lookup("HOME")
		if why := tooMuch(dir, home); why != "" {
			return nil, WithHint(fmt.Errorf("the directory %s %s: %w", dir, why, paddock.Denied), "start Codex in a project directory")
		}
		f.workspace = dir
		set = func(name string) bool { return name == "workspace" || changed(name) }
	}
	p, err := f.plan(a, set)
	if err == nil {
		err = p.unbudgeted()
	}
	if err == nil {
		err = p.unmonitored()
	}
	if err != nil {
		return nil, err
	}
	if p.spec.Tier == paddock.Sim {
		return nil, WithHint(fmt.Errorf("a shell of this machine, which Codex needs, is not on the tier sim: %w", paddock.Unsupported), "leave --tier out")
	}
	p.spec.Ephemeral = true
	return p, nil
}

// servedFrom asks the box what Codex has to know of it.
func (a *App) servedFrom(ctx context.Context, b *oneShot) (execserver.Options, error) {
	st, err := b.Status(ctx)
	if err != nil {
		return execserver.Options{}, err
	}
	o := execserver.Options{Sandbox: b, Dir: st.Dir, Shell: execserver.ShellOf(ctx, b)}
	home := &keptText{most: 4096}
	proc, err := b.Start(ctx, paddock.Cmd{Args: []string{"/bin/sh", "-c", `printf %s "$HOME"`}, Timeout: time.Minute, Output: paddock.Output{Stdout: home, Stderr: io.Discard}})
	if err != nil {
		return o, WithHint(fmt.Errorf("the box has no shell: %w", err), "a Codex without one runs nothing: choose another --root or --image")
	}
	if _, err := proc.Wait(ctx); err != nil {
		return o, err
	}
	if text := home.String(); strings.HasPrefix(text, "/") && !strings.ContainsAny(text, "\x00\n") {
		o.Home = text
	}
	return o, nil
}

// endServed removes the box and tells what of it can be undone.
func (a *App) endServed(ctx context.Context, b *oneShot, j *step.Journal) error {
	gone, cancel := context.WithTimeout(context.WithoutCancel(ctx), 6*Patience)
	defer cancel()
	err := b.close(gone)
	if err != nil {
		err = fmt.Errorf("remove the box: %w", err)
	}
	if numbers := a.recorded(gone, j, b, false); len(numbers) > 0 {
		fmt.Fprintf(a.Stderr, "paddock: `paddock undo --to %d` brings back what was before Codex changed it\n", slices.Min(numbers))
	}
	return err
}

// A keptText keeps the beginning of what is written to it.
type keptText struct {
	mu   sync.Mutex
	most int
	text []byte
}

func (k *keptText) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.text = append(k.text, p[:min(len(p), k.most-len(k.text))]...)
	return len(p), nil
}

func (k *keptText) String() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return string(k.text)
}
