package cli

import (
	"fmt"
	"io"
	"math"

	"golang.org/x/term"

	"github.com/paddock-sandbox/paddock"
)

// terminalOf gives the descriptor of a stream that is a terminal.
func terminalOf(stream any) (fd int, ok bool) {
	d, ok := stream.(interface{ Fd() uintptr })
	if !ok || !term.IsTerminal(int(d.Fd())) {
		return 0, false
	}
	return int(d.Fd()), true
}

// isTerminal tells whether a stream is a terminal.
func isTerminal(stream any) bool {
	_, ok := terminalOf(stream)
	return ok
}

// sizeOf gives the size of the first of the streams that is a terminal, and
// that of a classic one where none is.
func sizeOf(streams ...any) paddock.Size {
	for _, s := range streams {
		fd, ok := terminalOf(s)
		if !ok {
			continue
		}
		cols, rows, err := term.GetSize(fd)
		if err == nil && cols > 0 && rows > 0 && cols <= math.MaxUint16 && rows <= math.MaxUint16 {
			return paddock.Size{Rows: uint16(rows), Cols: uint16(cols)}
		}
	}
	return paddock.Size{Rows: 24, Cols: 80}
}

// rawMode hands every key to the command: no echo, no lines, no signals from
// keys. It answers how to restore the terminal. A stdin that is no terminal
// stays as it is.
func rawMode(stdin io.Reader) (restore func() error, err error) {
	fd, ok := terminalOf(stdin)
	if !ok {
		return func() error { return nil }, nil
	}
	before, err := term.MakeRaw(fd)
	if err != nil {
		return nil, fmt.Errorf("terminal: %w", err)
	}
	return func() error { return term.Restore(fd, before) }, nil
}

// AskHidden asks for a line at the terminal, which does not show it. It returns [paddock.Invalid] without a terminal.
func (a *App) AskHidden(question string) (string, error) {
	if !isTerminal(a.Stdin) {
		return "", fmt.Errorf("terminal: there is none: %w", paddock.Invalid)
	}
	fmt.Fprintf(a.Stderr, "%s: ", OneLine(question))
	text, err := readHidden(a.Stdin)
	fmt.Fprintln(a.Stderr)
	if err != nil {
		return "", fmt.Errorf("terminal: %w: %w", err, paddock.Unavailable)
	}
	return text, nil
}

// readHidden reads a line from the terminal without showing it.
func readHidden(stdin io.Reader) (string, error) {
	fd, ok := terminalOf(stdin)
	if !ok {
		return "", fmt.Errorf("terminal: there is none: %w", paddock.Invalid)
	}
	text, err := term.ReadPassword(fd)
	return string(text), err
}
