package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/client"
)

func TestRunReturnsTheOutputAndTheExit(t *testing.T) {
	h := &host{driver: simulated}
	t.Cleanup(func() { h.close(t) })
	d, err := h.open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	sb, err := d.Create(t.Context(), paddock.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	shell := func(script string) paddock.Cmd { return paddock.Cmd{Args: []string{"sh", "-c", script}} }

	r, err := client.Run(t.Context(), sb, shell("echo out; echo err >&2"))
	if err != nil || r.Err() != nil || string(r.Stdout) != "out\n" || string(r.Stderr) != "err\n" {
		t.Errorf("%+v, %v, %v", r, err, r.Err())
	}
	r, err = client.Run(t.Context(), sb, shell("echo half; echo no such luck >&2; exit 3"))
	var failed *client.ExitError
	if err != nil || string(r.Stdout) != "half\n" || !errors.As(r.Err(), &failed) || failed.Exit.Code != 3 || failed.Error() != `exit status 3: "no such luck"` {
		t.Errorf("%+v, %v, %v", r, err, r.Err())
	}
	if _, err := client.Run(t.Context(), sb, paddock.Cmd{Args: []string{"no-such-program"}}); !errors.Is(err, paddock.NotFound) {
		t.Errorf("a missing program: %v", err)
	}
	for _, cmd := range []paddock.Cmd{{Args: []string{"cat"}, Input: true}, {Args: []string{"true"}, Output: paddock.Output{Stdout: &strings.Builder{}}}} {
		if _, err := client.Run(t.Context(), sb, cmd); !errors.Is(err, paddock.Invalid) {
			t.Errorf("%+v: %v", cmd, err)
		}
	}
	r, err = client.Run(t.Context(), sb, paddock.Cmd{Args: []string{"sleep", "1000"}, Timeout: time.Millisecond})
	if err != nil || r.Exit.Cause != paddock.TimedOut || !strings.Contains(r.Err().Error(), "timed-out") {
		t.Errorf("%+v, %v, %v", r, err, r.Err())
	}
	r, err = client.Run(t.Context(), sb, paddock.Cmd{Args: []string{"head", "-c", "70000000", "/dev/zero"}})
	if err != nil || len(r.Stdout) != client.MaxOutput || r.Lost != 70000000-client.MaxOutput {
		t.Errorf("%d bytes, %d lost, %v", len(r.Stdout), r.Lost, err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	started := make(chan struct{})
	go func() {
		defer close(started)
		for ctx.Err() == nil {
			if list, err := sb.Processes(t.Context()); err != nil || running(list, "sleep") {
				break
			}
		}
		cancel()
	}()
	if _, err := client.Run(ctx, sb, paddock.Cmd{Args: []string{"sleep", "1001"}}); !errors.Is(err, paddock.Canceled) {
		t.Errorf("a cancelled run: %v", err)
	}
	<-started
	list, err := sb.Processes(t.Context())
	for range 500 { // it was killed, and ends in a moment
		if err != nil || !running(list, "sleep") {
			break
		}
		time.Sleep(10 * time.Millisecond)
		list, err = sb.Processes(t.Context())
	}
	if err != nil || running(list, "sleep") {
		t.Errorf("the command goes on: %+v, %v", list, err)
	}
}

// running reports whether a program runs.
func running(list []paddock.ProcessInfo, program string) bool {
	for _, p := range list {
		if p.Exit == nil && p.Args[0] == program {
			return true
		}
	}
	return false
}
