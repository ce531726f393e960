package guest_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest"
	"github.com/paddock-sandbox/paddock/internal/guest/guesttest"
	"github.com/paddock-sandbox/paddock/internal/guestclient"
)

func TestTheHookStartsEveryProgramOneAtATime(t *testing.T) {
	inside := make(chan struct{}, 1)
	var calls []*guest.ProcAttr
	g := guesttest.New(t, guest.Options{Dir: "/usr", StartProcess: func(argv0 string, argv []string, attr *guest.ProcAttr) (int, error) {
		select {
		case inside <- struct{}{}:
			defer func() { <-inside }()
		default:
			t.Error("it is called twice at once")
		}
		calls = append(calls, attr)
		files := make([]uintptr, len(attr.Files))
		for i, f := range attr.Files {
			files[i] = f.Fd()
		}
		return syscall.ForkExec(argv0, argv, &syscall.ProcAttr{Dir: attr.Dir, Env: attr.Env, Files: files, Sys: &syscall.SysProcAttr{Setsid: true}})
	}})
	done := make(chan error)
	for range 20 {
		go func() {
			p, err := g.Start(t.Context(), paddock.Cmd{Args: []string{"true"}})
			if err == nil {
				_, err = p.Wait(t.Context())
			}
			done <- err
		}()
	}
	for range 20 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if len(calls) != 20 || len(calls[0].Files) != 3 || calls[0].Dir != "/usr" || calls[0].Terminal {
		t.Errorf("%d calls, %+v", len(calls), calls[0])
	}
}

func TestOutputOfTheBackgroundHoldsUpTheExitForSecondsOnly(t *testing.T) {
	g := guesttest.New(t, guest.Options{Kept: 64 << 10})
	dir := t.TempDir()
	// What writes without a pause would never be quiet.
	var out bytes.Buffer
	p, err := g.Start(limit(t), paddock.Cmd{
		Args:   []string{"/bin/sh", "-c", `(echo $$ > pid; exec yes) & exit 9`},
		Dir:    dir,
		Output: paddock.Output{Stdout: &out},
	})
	if err != nil {
		t.Fatal(err)
	}
	exit, err := p.Wait(limit(t))
	if err != nil || exit.Code != 9 || exit.Usage.Wall > time.Second {
		t.Errorf("%+v, %v", exit, err)
	}
	if pgid := p.ID(); syscall.Kill(-int(pgid), syscall.SIGKILL) != nil {
		t.Error("what was left behind did not go on")
	}
}

func TestWhatNobodyLearnsOfIsNotStarted(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	g := guesttest.New(t, guest.Options{Dir: dir, StartProcess: func(argv0 string, argv []string, attr *guest.ProcAttr) (int, error) {
		cancel() // the caller gives up while its command starts
		<-ctx.Done()
		return syscall.ForkExec(argv0, argv, &syscall.ProcAttr{Dir: attr.Dir, Env: attr.Env, Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true}})
	}})
	if _, err := g.Start(ctx, paddock.Cmd{Args: []string{"sleep", "1000"}}); !errors.Is(err, paddock.Canceled) {
		t.Fatalf("it answers %v", err)
	}
	for end := limit(t); ; {
		list, err := g.Processes(end)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) == 1 && list[0].Exit != nil && list[0].Exit.Signal == syscall.SIGKILL {
			return
		}
	}
}

func TestServeEndsWithItsContextAndProcessesGoOn(t *testing.T) {
	_, s := guesttest.Both(t, guest.Options{}, guestclient.Options{})
	host, inside := guesttest.Pair(t)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error)
	go func() { served <- s.Serve(ctx, inside) }()
	g, err := guestclient.New(host, guestclient.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := g.Start(limit(t), paddock.Cmd{Args: []string{"sleep", "1000"}})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	<-served
	if exit, err := p.Wait(limit(t)); err != nil || exit.Cause != paddock.SandboxGone {
		t.Errorf("%+v, %v", exit, err)
	}
	list, err := guesttest.Join(t, s, guestclient.Options{}).Processes(limit(t))
	if err != nil || len(list) != 1 || list[0].PID != p.ID() || list[0].Exit != nil {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestCloseKillsWhatRunsAndRefusesMore(t *testing.T) {
	g, s := guesttest.Both(t, guest.Options{}, guestclient.Options{})
	p, err := g.Start(limit(t), paddock.Cmd{Args: []string{"sleep", "1000"}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Kill(int(p.ID()), 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("it lives: %v", err)
	}
	if _, err := g.Start(limit(t), paddock.Cmd{Args: []string{"true"}}); !errors.Is(err, paddock.Unavailable) {
		t.Errorf("a start answers %v", err)
	}
}

func TestRefusalsAreTold(t *testing.T) {
	want := []paddock.Refusal{{Time: time.Unix(5, 7), What: "write", Target: "/a\xff\n", Rule: "r", Remedy: "m", Count: 3}}
	g := guesttest.New(t, guest.Options{Refusals: func() []paddock.Refusal { return want }})
	if got, err := g.Refusals(limit(t)); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	many := guesttest.New(t, guest.Options{Refusals: func() []paddock.Refusal { return make([]paddock.Refusal, 5000) }})
	if got, err := many.Refusals(limit(t)); err != nil || len(got) != 1000 {
		t.Errorf("%d, %v", len(got), err)
	}
	if got, err := guesttest.New(t, guest.Options{}).Refusals(limit(t)); err != nil || len(got) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAProgramThatIsStillOpenForWritingIsTriedAgain(t *testing.T) {
	for what, terminal := range map[string]*paddock.Size{"streams": nil, "a terminal": {Rows: 24, Cols: 80}} {
		t.Run(what, func(t *testing.T) {
			program := t.TempDir() + "/program"
			writer, err := os.OpenFile(program, os.O_CREATE|os.O_WRONLY, 0o755)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := writer.WriteString("#!/bin/sh\necho here\n"); err != nil {
				t.Fatal(err)
			}
			tries := 0
			g := guesttest.New(t, guest.Options{StartProcess: func(argv0 string, argv []string, attr *guest.ProcAttr) (int, error) {
				tries++
				if tries == 4 {
					if err := writer.Close(); err != nil {
						t.Error(err)
					}
				}
				files := make([]uintptr, len(attr.Files))
				for i, f := range attr.Files {
					files[i] = f.Fd()
				}
				return syscall.ForkExec(argv0, argv, &syscall.ProcAttr{Dir: attr.Dir, Env: attr.Env, Files: files,
					Sys: &syscall.SysProcAttr{Setsid: true, Setctty: attr.Terminal}})
			}})
			var out bytes.Buffer
			p, err := g.Start(limit(t), paddock.Cmd{Args: []string{program}, Terminal: terminal, Output: paddock.Output{Stdout: &out}})
			if err != nil {
				t.Fatal(err)
			}
			exit, err := p.Wait(limit(t))
			if err != nil || exit.Code != 0 || tries != 4 || strings.TrimSpace(out.String()) != "here" {
				t.Errorf("%+v, %v, %d tries, %q", exit, err, tries, out.String())
			}
		})
	}
}

func TestAProgramThatStaysOpenForWritingIsInConflict(t *testing.T) {
	program := t.TempDir() + "/program"
	writer, err := os.OpenFile(program, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	g := guesttest.New(t, guest.Options{})
	_, err = g.Start(limit(t), paddock.Cmd{Args: []string{program}})
	var start *paddock.StartError
	if !errors.As(err, &start) || start.Code != 126 || !errors.Is(err, paddock.Conflict) {
		t.Errorf("it answers %v", err)
	}
}
