package cli

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/interpreter"
)

func (a *App) replCommand() *cobra.Command {
	f := &runFlags{}
	remote := &RemoteFlags{}
	var language string
	c := &cobra.Command{
		Use:   "repl [flags] [ID]",
		Short: "Run cells of Python, JavaScript and other languages that keep their state",
		Long: `Run cells of code in a new sandbox, which is removed at the end; with an ID in that
sandbox of a server, which stays, and with it the default context of the language:
the next paddock repl goes on where this one ended.

At a terminal a cell is a line. A line that ends in : { ( [ , or \ begins a cell of
several lines, which an empty line ends. Ctrl-C interrupts the cell that runs, Ctrl-D
ends. Without a terminal, cells are read from standard input: a line that begins with
"# %%" or "// %%" begins the next one, and the first that fails is the last.

Pictures are written to files in the working directory, and named. Escape sequences
are taken out of what goes to a terminal. docs/server/interpreter.md has the languages and
what each of them needs.

Exit status: 0; 1 if a cell of standard input failed; 125 if Paddock itself failed.`,
		Example: `  paddock repl
  paddock repl --lang js "$id"
  echo '6 * 7' | paddock repl --tier jail --lang python`,
		Args:                  cobra.MaximumNArgs(1),
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     a.completeIDs(1),
		RunE: func(c *cobra.Command, args []string) error {
			l, err := interpreter.ParseLanguage(language)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				return a.replIn(c, remote, paddock.ID(args[0]), l)
			}
			if remote.Server != "" {
				return WithHint(fmt.Errorf("--server without a sandbox of it: %w", paddock.Invalid), "paddock repl --server %s ID", remote.Server)
			}
			p, err := f.plan(a, c.Flags().Changed)
			if err == nil {
				err = p.unbudgeted()
			}
			if err == nil {
				err = p.unmonitored()
			}
			if err != nil {
				return err
			}
			p.spec.Ephemeral = true
			return a.repl(c.Context(), l, func(ctx context.Context) (paddock.Sandbox, func() error, error) {
				if err := a.takeImage(ctx, p); err != nil {
					return nil, nil, err
				}
				b, err := a.createOneShot(ctx, p)
				if err != nil {
					return nil, nil, err
				}
				return b, func() error {
					gone, cancel := context.WithTimeout(context.WithoutCancel(ctx), 6*Patience)
					defer cancel()
					return b.close(gone)
				}, nil
			})
		},
	}
	fs := c.Flags()
	fs.SortFlags = false
	fs.StringVar(&language, "lang", "python", "`language` of the cells: python, javascript, typescript, bash, r or java")
	f.register(fs)
	remote.register(fs)
	return c
}

// replIn runs cells in a sandbox that is there, of which no flag says what it is.
func (a *App) replIn(c *cobra.Command, f *RemoteFlags, id paddock.ID, l interpreter.Language) error {
	var given string
	c.Flags().Visit(func(f *pflag.Flag) {
		if f.Name != "server" && f.Name != "lang" {
			given = f.Name
		}
	})
	if given != "" {
		return WithHint(fmt.Errorf("--%s is of a new sandbox, and %s is there: %w", given, id, paddock.Invalid), "leave one out")
	}
	return a.repl(c.Context(), l, func(ctx context.Context) (paddock.Sandbox, func() error, error) {
		r, err := a.connect(ctx, f)
		if err != nil {
			return nil, nil, err
		}
		sb, err := r.Open(ctx, id)
		if err != nil {
			return nil, nil, errors.Join(err, r.Close())
		}
		return sb, r.Close, nil
	})
}

// A prompt reads cells, runs them and tells what they say.
type prompt struct {
	a        *App
	in       *interpreter.Interpreter
	language interpreter.Language
	out, err io.Writer
	pictures int
}

func (a *App) repl(ctx context.Context, l interpreter.Language, open func(context.Context) (paddock.Sandbox, func() error, error)) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	signals, stop := a.Notify(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	p := &prompt{a: a, language: l, out: stripped(a.Stdout), err: stripped(a.Stderr)}
	running := make(chan string, 1) // the context whose cell runs
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { p.listen(ctx, signals, running, cancel, done) })
	defer wg.Wait()
	defer close(done)
	sb, end, err := open(ctx)
	if err != nil {
		return Because(ctx, err)
	}
	defer func() { err = errors.Join(err, end()) }()
	if p.in, err = interpreter.New(interpreter.Options{Sandbox: sb}); err != nil {
		return err
	}
	defer p.in.Close() //nolint:errcheck // it never fails
	c, err := p.in.Default(ctx, l)
	if err != nil {
		return Because(ctx, err)
	}
	cells := cellsOf(a.Stdin)
	if fd, ok := terminalOf(a.Stdin); ok {
		cells = typedCells(fd, a.Stdin, a.Stdout, string(l))
	}
	for {
		code, err := cells()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if strings.TrimSpace(code) == "" {
			continue
		}
		running <- c.ID
		failed, err := p.run(ctx, code)
		<-running
		switch {
		case err != nil:
			return Because(ctx, err)
		case failed && !isTerminal(a.Stdin):
			return ExitStatus(1)
		}
	}
}

// listen passes an interrupt on to the cell that runs; where none does, and with any
// other signal, the program ends.
func (p *prompt) listen(ctx context.Context, signals <-chan os.Signal, running chan string, cancel context.CancelCauseFunc, done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case s := <-signals:
			number, _ := s.(syscall.Signal)
			if number == syscall.SIGINT {
				select {
				case id := <-running:
					running <- id
					_ = p.in.Interrupt(ctx, id) // a cell that has ended needs none
					continue
				default:
				}
			}
			cancel(Interrupted{number})
		}
	}
}

// run runs a cell, and tells whether it failed.
func (p *prompt) run(ctx context.Context, code string) (failed bool, err error) {
	err = p.in.Run(ctx, interpreter.Cell{Code: code, Language: p.language}, func(e interpreter.Event) error {
		switch e.Kind {
		case interpreter.Stdout:
			return say(p.out, e.Text)
		case interpreter.Stderr:
			return say(p.err, e.Text)
		case interpreter.Shown:
			return p.show(e.Result)
		case interpreter.Failed:
			failed = true
			return say(p.err, strings.TrimRight(e.Error.Traceback, "\n")+"\n")
		default:
			return nil
		}
	})
	return failed, err
}

func say(w io.Writer, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("write what the cell says: %w: %w", err, paddock.Exhausted)
	}
	return nil
}

// show writes a result's text, and its picture to a file.
func (p *prompt) show(r *interpreter.Result) error {
	for _, form := range []struct{ kind, end string }{{"image/png", "png"}, {"image/jpeg", "jpg"}, {"image/svg+xml", "svg"}, {"application/pdf", "pdf"}} {
		var text string
		if json.Unmarshal(r.Data[form.kind], &text) != nil || text == "" {
			continue
		}
		data := []byte(text)
		if form.end != "svg" {
			var err error
			if data, err = base64.StdEncoding.DecodeString(text); err != nil {
				continue // it is no picture
			}
		}
		name, err := p.keep(form.end, data)
		if err != nil {
			return err
		}
		return say(p.out, name+"\n")
	}
	if text := r.Text(); text != "" {
		return say(p.out, text+"\n")
	}
	return nil
}

// keep writes a picture to a file that is new, and gives its name.
func (p *prompt) keep(end string, data []byte) (string, error) {
	dir, err := p.a.Dir()
	if err != nil {
		return "", err
	}
	for {
		p.pictures++
		name := fmt.Sprintf("picture-%d.%s", p.pictures, end)
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("write a picture: %w: %w", err, paddock.Denied)
		}
		_, err = f.Write(data)
		if err := errors.Join(err, f.Close()); err != nil {
			return "", fmt.Errorf("write a picture: %w: %w", err, paddock.Exhausted)
		}
		return name, nil
	}
}

// maxInput bounds what is read of standard input.
const maxInput = 64 << 20

// cellsOf gives the cells of a stream, one with each call.
func cellsOf(r io.Reader) func() (string, error) {
	var list []string
	read := false
	return func() (string, error) {
		if !read {
			data, err := io.ReadAll(io.LimitReader(r, maxInput+1))
			if err != nil {
				return "", fmt.Errorf("read the cells: %w: %w", err, paddock.Invalid)
			}
			if len(data) > maxInput {
				return "", fmt.Errorf("standard input has more than %d bytes: %w", maxInput, paddock.Invalid)
			}
			read, list = true, splitCells(string(data))
		}
		if len(list) == 0 {
			return "", io.EOF
		}
		code := list[0]
		list = list[1:]
		return code, nil
	}
}

// splitCells takes a script apart where a comment says so.
func splitCells(text string) []string {
	list := []string{""}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "# %%") || strings.HasPrefix(line, "// %%") {
			list = append(list, "")
			continue
		}
		list[len(list)-1] += line
	}
	return list
}

// typedCells gives the cells that a person types, with history.
func typedCells(fd int, stdin io.Reader, stdout io.Writer, name string) func() (string, error) {
	t := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{stdin, stdout}, "")
	line := func(mark string) (string, error) {
		before, err := term.MakeRaw(fd) // only while something is typed: Ctrl-C is a signal while a cell runs
		if err != nil {
			return "", fmt.Errorf("terminal: %w", err)
		}
		t.SetPrompt(mark)
		text, err := t.ReadLine()
		if errors.Is(err, term.ErrPasteIndicator) {
			err = nil
		}
		if back := term.Restore(fd, before); back != nil && err == nil {
			err = fmt.Errorf("terminal: %w", back)
		}
		return text, err
	}
	return func() (string, error) {
		text, err := line(name + "> ")
		if err != nil || !goesOn(text) {
			return text, err
		}
		for {
			next, err := line(strings.Repeat(".", len(name)) + "> ")
			if err != nil || next == "" {
				return text, err
			}
			text += "\n" + next
		}
	}
}

// goesOn tells whether a line begins a cell of several.
func goesOn(line string) bool {
	line = strings.TrimSpace(line)
	return line != "" && strings.ContainsRune(`:{([,\`, rune(line[len(line)-1]))
}
