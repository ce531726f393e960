package drivertest

import (
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func terminalPromises() []group {
	return []group{{can: []paddock.Capability{paddock.CanTerminal}, promises: []promise{
		{"a terminal is one, for all three streams, of the asked size", isTerminal},
		{"a resize arrives, with its signal", resizes},
		{"all output of a terminal arrives at stdout", terminalOutput},
		{"Ctrl-C interrupts the command", interrupts},
		{"closing a terminal's input sends the end-of-file character", terminalEOF},
		{"a terminal echoes and edits lines", terminalEchoes},
		{"two terminals do not see each other", terminalsApart},
	}}, {promises: []promise{
		{"a command without a terminal has none, and cannot be resized", noTerminal},
	}}}
}

// terminal starts a script on a terminal of 24 lines with 80 columns.
func (b box) terminal(t testing.TB, script string) (paddock.Process, *syncBuffer) {
	t.Helper()
	var out syncBuffer
	cmd := b.shell(script)
	cmd.Terminal = &paddock.Size{Rows: 24, Cols: 80}
	cmd.Output = paddock.Output{Stdout: &out}
	return b.start(t, cmd), &out
}

// says waits until the output contains text.
func says(t testing.TB, out *syncBuffer, text string) {
	t.Helper()
	if !eventually(patience/2, func() bool { return strings.Contains(out.String(), text) }) {
		t.Fatalf("it never said %q, but %q", text, clip(out.String()))
	}
}

func send(t testing.TB, p paddock.Process, text string) {
	t.Helper()
	if _, err := io.WriteString(p.Input(), text); err != nil {
		t.Fatalf("write %q: %v", text, err)
	}
}

func isTerminal(t *testing.T, s *suite) {
	p, out := s.box(t).terminal(t, `[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo all three; stty size; : < /dev/tty && echo controlled; [ -n "$TERM" ] && echo typed`)
	exit := wait(t, p)
	for _, want := range []string{"all three", "24 80", "controlled", "typed"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in %q (%+v)", want, out, exit)
		}
	}
}

func resizes(t *testing.T, s *suite) {
	p, out := s.box(t).terminal(t, "trap 'stty size' WINCH; echo ready; while :; do sleep 0.05; done")
	says(t, out, "ready")
	for _, size := range []paddock.Size{{Rows: 50, Cols: 132}, {Rows: 1, Cols: 1}} {
		if err := p.Resize(bounded(t), size); err != nil {
			t.Fatalf("resize: %v", err)
		}
	}
	says(t, out, "1 1")
	kill(t, p)
	wait(t, p)
}

func terminalOutput(t *testing.T, s *suite) {
	b := s.box(t)
	var out, errs syncBuffer
	cmd := b.shell("echo to stderr >&2; echo to stdout")
	cmd.Terminal = &paddock.Size{Rows: 24, Cols: 80}
	cmd.Output = paddock.Output{Stdout: &out, Stderr: &errs}
	wait(t, b.start(t, cmd))
	if want := "to stderr\r\nto stdout\r\n"; out.String() != want || errs.String() != "" {
		t.Errorf("stdout %q, stderr %q", &out, &errs)
	}
}

func interrupts(t *testing.T, s *suite) {
	p, out := s.box(t).terminal(t, "echo ready; exec sleep 1000")
	says(t, out, "ready")
	send(t, p, "\x03")
	exit := wait(t, p)
	if exit.Cause != paddock.Signaled || exit.Signal != syscall.SIGINT || exit.Code != 130 {
		t.Errorf("%+v", exit)
	}
}

func terminalEOF(t *testing.T, s *suite) {
	p, out := s.box(t).terminal(t, "echo ready; cat; echo ended")
	says(t, out, "ready")
	if err := p.Input().Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	says(t, out, "ended")
	if exit := wait(t, p); exit.Code != 0 {
		t.Errorf("%+v", exit)
	}
}

func terminalEchoes(t *testing.T, s *suite) {
	p, out := s.box(t).terminal(t, `echo ready; read -r line; echo "<$line>"`)
	says(t, out, "ready")
	send(t, p, "axx\x7f\x7fb\n") // two characters are erased
	says(t, out, "<ab>")
	wait(t, p)
}

func terminalsApart(t *testing.T, s *suite) {
	b := s.box(t)
	p, first := b.terminal(t, `echo ready; read -r line; echo "<$line>"`)
	q, second := b.terminal(t, `echo ready; read -r line; echo "<$line>"`)
	says(t, first, "ready")
	says(t, second, "ready")
	send(t, p, "one\n")
	send(t, q, "two\n")
	wait(t, p)
	wait(t, q)
	if !strings.Contains(first.String(), "<one>") || strings.Contains(first.String(), "two") ||
		!strings.Contains(second.String(), "<two>") || strings.Contains(second.String(), "one") {
		t.Errorf("%q and %q", first, second)
	}
}

func noTerminal(t *testing.T, s *suite) {
	b := s.box(t)
	p, out := b.announce(t, `[ -t 0 ] || [ -t 1 ] || [ -t 2 ] || echo none; (: < /dev/tty) 2>/dev/null || echo uncontrolled; read -r x`)
	says(t, out, "uncontrolled")
	if !strings.Contains(out.String(), "none") {
		t.Errorf("%q", out)
	}
	wantKind(t, "resize", p.Resize(bounded(t), paddock.Size{Rows: 1, Cols: 1}), paddock.Conflict)
	kill(t, p)
}
