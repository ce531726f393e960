//go:build linux

package agent_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/agent"
	"github.com/paddock-sandbox/paddock/internal/guest"
	"github.com/paddock-sandbox/paddock/internal/guest/guesttest"
)

// limit bounds a test that would otherwise wait for ever.
func limit(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// run runs a command to its end.
func run(t *testing.T, g *agent.Guest, cmd paddock.Cmd) (exit paddock.Exit, stdout, stderr string) {
	t.Helper()
	var o, e bytes.Buffer
	cmd.Output = paddock.Output{Stdout: &o, Stderr: &e}
	p := start(t, g, cmd)
	return wait(t, p), o.String(), e.String()
}

func start(t *testing.T, g *agent.Guest, cmd paddock.Cmd) paddock.Process {
	t.Helper()
	p, err := g.Start(limit(t), cmd)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func wait(t *testing.T, p paddock.Process) paddock.Exit {
	t.Helper()
	exit, err := p.Wait(limit(t))
	if err != nil {
		t.Fatal(err)
	}
	return exit
}

func sh(script string) paddock.Cmd { return paddock.Cmd{Args: []string{"/bin/sh", "-c", script}} }

// expect fails the test unless out has what the test waits for.
func expect(t *testing.T, out *mailbox, want string) {
	t.Helper()
	if !out.waitFor(limit(t), want) {
		t.Fatalf("output %q never held %q", out.String(), want)
	}
}

// A mailbox is a writer that a test can wait for.
type mailbox struct {
	box   chan []byte
	heard []byte
}

func newMailbox() *mailbox { return &mailbox{box: make(chan []byte, 1024)} }

func (m *mailbox) Write(p []byte) (int, error) {
	m.box <- bytes.Clone(p)
	return len(p), nil
}

func (m *mailbox) waitFor(ctx context.Context, want string) bool {
	for !strings.Contains(string(m.heard), want) {
		select {
		case p := <-m.box:
			m.heard = append(m.heard, p...)
		case <-ctx.Done():
			return false
		}
	}
	return true
}

func (m *mailbox) String() string { return string(m.heard) }

func TestACommandTellsItsOutputAndItsCode(t *testing.T) {
	g := guesttest.New(t, guest.Options{})
	exit, stdout, stderr := run(t, g, sh("echo out; echo err >&2; exit 7"))
	if stdout != "out\n" || stderr != "err\n" || exit.Code != 7 || exit.Cause != paddock.Exited || exit.Reason != "" {
		t.Errorf("got %q, %q, %+v", stdout, stderr, exit)
	}
	if exit.Usage.Wall <= 0 || exit.Usage.MemoryPeak <= 0 {
		t.Errorf("usage is not told: %+v", exit.Usage)
	}
}

var _ = []any{errors.Is, fmt.Sprint, io.EOF, os.Getpid, filepath.Join, syscall.SIGKILL}
