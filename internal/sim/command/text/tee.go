package text

import (
	"errors"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

var teeSpec = &command.Spec{
	Name: "tee", Synopsis: "[OPTION]... [FILE]...",
	About: "Copy standard input to each FILE, and also to standard output.",
	Options: []command.Option{
		{Short: 'a', Long: "append", Help: "append to the given FILEs, do not overwrite"},
		{Short: 'i', Long: "ignore-interrupts", Help: "ignore interrupt signals"},
		{Short: 'p', Help: "diagnose errors writing to non pipes"},
		{Long: "output-error", Arg: command.Optional, Name: "MODE", Help: "set behavior on write error: warn, warn-nopipe, exit, exit-nopipe"},
	},
}

func runTee(t *kernel.Task) int {
	a, status, ok := teeSpec.Parse(t)
	if !ok {
		return status
	}
	mode := ""
	for _, f := range a.Flags {
		switch f.Key {
		case "i":
			t.On(linux.SIGINT, kernel.Ignore)
		case "p":
			mode = "warn-nopipe"
		case "output-error":
			mode = "warn-nopipe"
			if f.Given {
				found, err := command.Choice(f.Value, []string{"warn", "warn-nopipe", "exit", "exit-nopipe"})
				if err != nil {
					return command.BadChoice(t, teeSpec, "--output-error", f.Value, err, []string{"warn", "warn-nopipe", "exit", "exit-nopipe"})
				}
				mode = found
			}
		}
	}
	if mode != "" {
		t.On(linux.SIGPIPE, kernel.Ignore)
	}
	flags := linux.O_TRUNC
	if a.Has("a") {
		flags = linux.O_APPEND
	}
	x := &tee{t: t, mode: mode}
	defer x.close()
	for _, name := range a.Operands {
		o, err := command.Create(t, name, flags)
		if err != nil {
			command.FailFile(t, name, err)
			if mode == "exit" || mode == "exit-nopipe" {
				return 1
			}
			x.status = 1
			continue
		}
		x.out = append(x.out, o)
		x.names = append(x.names, name)
	}
	r, err := command.StdinReader(t)
	if err != nil {
		t.Errorf("read error: %s", reason(err))
		return 1
	}
	defer r.Close()
	for x.left() {
		b, ok := r.Piece()
		if !ok {
			break
		}
		if !x.write(b) {
			return 1
		}
	}
	if err := r.Err(); err != nil {
		t.Errorf("read error: %s", reason(err))
		return 1
	}
	return x.status
}

type tee struct {
	t      *kernel.Task
	mode   string
	out    []*command.Output // nil where writing has failed
	names  []string
	closed bool // standard output cannot be written
	status int
}

func (x *tee) left() bool {
	if !x.closed {
		return true
	}
	for _, o := range x.out {
		if o != nil {
			return true
		}
	}
	return false
}

func (x *tee) write(b []byte) bool {
	if !x.closed {
		if _, err := x.t.Write(1, b); err != nil {
			x.closed = true
			if !x.failed("'standard output'", err) {
				return false
			}
		}
	}
	for i, o := range x.out {
		if o == nil {
			continue
		}
		if _, err := o.Write(b); err != nil {
			_ = o.Close()
			x.out[i] = nil
			if !x.failed(command.QuoteFile(x.names[i]), err) {
				return false
			}
		}
	}
	return true
}

// failed complains, and tells whether to go on.
func (x *tee) failed(name string, err error) bool {
	pipe := errors.Is(err, linux.EPIPE)
	if pipe && (x.mode == "warn-nopipe" || x.mode == "exit-nopipe") {
		return true
	}
	x.t.Errorf("%s: %s", name, reason(err))
	x.status = 1
	return x.mode != "exit" && x.mode != "exit-nopipe"
}

func (x *tee) close() {
	for _, o := range x.out {
		if o != nil {
			_ = o.Close()
		}
	}
}
