//go:build linux

package guestclient_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest"
	"github.com/paddock-sandbox/paddock/internal/guest/guesttest"
)

func TestATerminalIsOne(t *testing.T) {
	g := guesttest.New(t, guest.Options{})
	out := newMailbox()
	// A trap may end the reading of a line, which then is not the end of the file.
	cmd := sh(`trap 'trapped=1; echo resized $(stty size)' WINCH
		test -t 0 && test -t 1 && test -t 2 && echo all; echo to stderr >&2; stty size; tty; : </dev/tty
		echo ready; while :; do
			if read line; then trapped=; echo got $line; elif [ "$trapped" ]; then trapped=; else break; fi
		done; echo end of file; exit 3`)
	cmd.Terminal = &paddock.Size{Rows: 30, Cols: 100}
	cmd.Output = paddock.Output{Stdout: out, Stderr: &refusing{}}
	p := start(t, g, cmd)
	hear(t, out, "ready")
	for _, want := range []string{"all\r\n", "to stderr\r\n", "30 100\r\n", "/dev/pts/"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output %q lacks %q", out.String(), want)
		}
	}
	if _, err := p.Input().Write([]byte("hello\n")); err != nil {
		t.Fatal(err)
	}
	hear(t, out, "got hello")
	if err := p.Resize(limit(t), paddock.Size{Rows: 50, Cols: 132}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Input().Write([]byte("\n")); err != nil { // a shell runs its trap after the line
		t.Fatal(err)
	}
	hear(t, out, "resized 50 132")
	if err := p.Input().Close(); err != nil {
		t.Fatal(err)
	}
	hear(t, out, "end of file")
	if exit := wait(t, p); exit.Code != 3 {
		t.Errorf("%+v", exit)
	}
	if err := p.Resize(limit(t), paddock.Size{Rows: 1, Cols: 1}); !errors.Is(err, paddock.NotFound) {
		t.Errorf("after the end Resize answers %v", err)
	}
}

func TestWithoutATerminalThereIsNoSize(t *testing.T) {
	g := guesttest.New(t, guest.Options{})
	p := start(t, g, paddock.Cmd{Args: []string{"cat"}, Input: true})
	if err := p.Resize(limit(t), paddock.Size{Rows: 1, Cols: 1}); !errors.Is(err, paddock.Conflict) {
		t.Errorf("Resize answers %v", err)
	}
	_ = p.Input().Close()
	wait(t, p)
}

func TestAllOutputOfATerminalArrives(t *testing.T) {
	g := guesttest.New(t, guest.Options{})
	var out bytes.Buffer
	cmd := sh("i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done")
	cmd.Terminal, cmd.Output.Stdout = &paddock.Size{Rows: 24, Cols: 80}, &out
	if exit := wait(t, start(t, g, cmd)); exit.Code != 0 || !strings.HasSuffix(out.String(), "line 19999\r\n") || strings.Count(out.String(), "\n") != 20000 {
		t.Errorf("%+v, %d lines", exit, strings.Count(out.String(), "\n"))
	}
}
