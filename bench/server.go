//go:build linux

package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	remote "github.com/paddock-sandbox/paddock/client"
)

const (
	serverStarts = 10
	burst        = 20                    // creations at once
	staggered    = 50 * time.Millisecond // between creations that do not wait for each other
	arrivals     = 40
	callsEach    = time.Minute / 5000 // of the load
	watched      = 15 * time.Second   // between looks at the memory of a loaded server
)

// measureServer measures `paddock serve` as a process, through package client.
func measureServer(ctx context.Context, o options) (_ []row, err error) {
	rows, err := serverStart(ctx, o)
	if err != nil {
		return rows, err
	}
	for _, measure := range []func(context.Context, options) ([]row, error){coldServer, warmServer, loadedServer} {
		more, err := measure(ctx, o)
		rows = append(rows, more...)
		if err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// A served is a server that runs, and a caller of it.
type served struct {
	cmd     *exec.Cmd
	state   string
	address string
	key     string
	*remote.Driver
}

// startServer starts one on a state of its own, and tells how long it took from
// before fork to its answer to a call.
func startServer(ctx context.Context, o options, flags ...string) (_ *served, took time.Duration, err error) {
	s := &served{key: fmt.Sprintf("e2b_%x", random(20))} // which E2B's clients take too
	if s.state, err = os.MkdirTemp("", "paddock-bench-"); err != nil {
		return nil, 0, err
	}
	// It outlives an interrupt, so that stop can have it remove its sandboxes.
	s.cmd = exec.CommandContext(context.WithoutCancel(ctx), o.paddock, append([]string{"serve", "--listen", "127.0.0.1:0", "--state", s.state}, flags...)...)
	s.cmd.Env = append(os.Environ(), "PADDOCK_KEY="+s.key)
	log, err := os.Create(filepath.Join(s.state, "log"))
	if err != nil {
		return nil, 0, errors.Join(err, os.RemoveAll(s.state))
	}
	defer log.Close()
	s.cmd.Stderr = log
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, 0, errors.Join(err, os.RemoveAll(s.state))
	}
	began := time.Now()
	if err := s.cmd.Start(); err != nil {
		return nil, 0, errors.Join(err, os.RemoveAll(s.state))
	}
	address, err := bufio.NewReader(out).ReadString('\n')
	if err == nil {
		s.address = strings.TrimSpace(address)
		s.Driver, err = remote.New(remote.Options{Address: s.address, Key: s.key})
	}
	if err == nil {
		_, err = s.List(ctx)
	}
	took = time.Since(began)
	if err != nil {
		said, _ := os.ReadFile(log.Name())
		return nil, 0, errors.Join(fmt.Errorf("start a server: %w\n%s", err, said), s.stop(ctx))
	}
	return s, took, nil
}

func random(n int) []byte {
	data := make([]byte, n)
	_, _ = rand.Read(data) // it never fails
	return data
}

// stop removes its sandboxes, ends it and waits for its end.
func (s *served) stop(ctx context.Context) error {
	var errs []error
	left := error(nil)
	if s.Driver != nil {
		left = s.removeAll(context.WithoutCancel(ctx))
		errs = append(errs, s.Close())
	}
	errs = append(errs, s.cmd.Process.Signal(os.Interrupt))
	err := s.cmd.Wait()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		errs = append(errs, err)
	}
	if left != nil { // the next server of that state can remove them
		return errors.Join(append(errs, fmt.Errorf("sandboxes are left, whose state is %s: %w", s.state, left))...)
	}
	return errors.Join(append(errs, os.RemoveAll(s.state))...)
}

func (s *served) removeAll(ctx context.Context) error {
	list, err := s.List(ctx)
	if err != nil {
		return err
	}
	return each(len(list), func(i int) error {
		sb, err := s.Open(ctx, list[i].ID)
		if errors.Is(err, paddock.NotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		return sb.Remove(ctx)
	})
}

// memory is that of the server's own process, its sandboxes not counted.
func (s *served) memory() int64 {
	for line := range strings.Lines(word(fmt.Sprintf("/proc/%d/smaps_rollup", s.cmd.Process.Pid))) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "Rss:" {
			n, err := strconv.ParseInt(fields[1], 10, 64)
			if err == nil {
				return n << 10
			}
		}
	}
	return 0
}

func serverStart(ctx context.Context, o options) ([]row, error) {
	var took samples
	var idle int64
	for range serverStarts {
		s, one, err := startServer(ctx, o)
		if err != nil {
			return nil, err
		}
		took = append(took, one)
		if len(took) == serverStarts {
			time.Sleep(settled)
			idle = s.memory()
		}
		if err := s.stop(ctx); err != nil {
			return nil, err
		}
	}
	return []row{
		{what: "`paddock serve` on an empty state, to its first answer", p50: ms(took.p50()), p99: ms(took.p99()), runs: len(took)},
		{what: "memory of an idle server (RSS)", p50: mib(idle), runs: 1},
	}, nil
}

// jailed is the spec of what is made over the network: it stays when its maker
// goes.
func jailed() paddock.Spec { return paddock.Spec{Tier: paddock.Jail} }

// coldServer measures sandboxes that are made when they are asked for: one after
// another, at fixed times, and many at once; then commands in one.
func coldServer(ctx context.Context, o options) (_ []row, err error) {
	s, _, err := startServer(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.stop(ctx)) }()
	rows, err := s.arriving(ctx, "a jail over the network")
	if err != nil {
		return rows, err
	}
	sb, err := s.Create(ctx, jailed())
	if err != nil {
		return rows, err
	}
	var took samples
	for i := range warmUp + execs {
		one, err := command(ctx, sb)
		if err != nil {
			return rows, err
		}
		if i >= warmUp {
			took = append(took, one)
		}
	}
	return append(rows, row{what: "`true` in a running jail, over the network", p50: ms(took.p50()), p99: ms(took.p99()), runs: len(took)}), nil
}

// warmServer measures the same where the server has made some before.
func warmServer(ctx context.Context, o options) (_ []row, err error) {
	s, _, err := startServer(ctx, o, "--warm", "jail=8")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.stop(ctx)) }()
	return s.arriving(ctx, "a warm jail over the network")
}

// arriving measures creations to the first output, in three orders.
func (s *served) arriving(ctx context.Context, what string) ([]row, error) {
	one := func() (time.Duration, error) { return firstOutput(ctx, s, jailed()) }
	var rows []row
	for _, order := range []struct {
		name string
		take func(func() (time.Duration, error)) (samples, error)
	}{
		{"one after another", func(f func() (time.Duration, error)) (samples, error) {
			return firstOutputs(ctx, s, tier{name: paddock.Jail, kept: true})
		}},
		{fmt.Sprintf("one each %v", staggered), func(f func() (time.Duration, error)) (samples, error) { return together(arrivals, staggered, f) }},
		{fmt.Sprintf("%d at once", burst), func(f func() (time.Duration, error)) (samples, error) { return together(burst, 0, f) }},
	} {
		time.Sleep(settled)
		took, err := order.take(one)
		if err != nil {
			return rows, err
		}
		rows = append(rows, row{
			what: fmt.Sprintf("%s, %s: create to the first output of `echo` (95 %% within %s)", what, order.name, ms(took.quantile(0.95))),
			p50:  ms(took.p50()), p99: ms(took.p99()), runs: len(took),
		})
	}
	return rows, nil
}

// together does it n times, and begins each so long after the one before.
func together(n int, apart time.Duration, f func() (time.Duration, error)) (samples, error) {
	took := make(samples, n)
	began := time.Now()
	err := each(n, func(i int) error {
		time.Sleep(time.Until(began.Add(time.Duration(i) * apart)))
		var err error
		took[i], err = f()
		return err
	})
	return took, err
}

// loadedServer has many sandboxes live, and calls at a steady rate. A call that
// fails ends it.
func loadedServer(ctx context.Context, o options) (_ []row, err error) {
	if o.load == 0 {
		return nil, nil
	}
	s, _, err := startServer(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.stop(ctx)) }()
	boxes, err := s.fill(ctx, o.live)
	if err != nil {
		return nil, err
	}
	time.Sleep(settled)
	var mu sync.Mutex
	var took samples
	var errs []error
	seen := []int64{s.memory()}
	var wg sync.WaitGroup
	began, looked := time.Now(), time.Now()
	for n := 0; time.Since(began) < o.load && ctx.Err() == nil; n++ {
		time.Sleep(time.Until(began.Add(time.Duration(n) * callsEach)))
		if time.Since(looked) > watched {
			looked = time.Now()
			seen = append(seen, s.memory())
		}
		wg.Go(func() {
			one, err := aCall(ctx, boxes[n%len(boxes)], n)
			mu.Lock()
			defer mu.Unlock()
			took = append(took, one)
			if err != nil {
				errs = append(errs, err)
			}
		})
	}
	wg.Wait()
	rows := []row{
		{what: fmt.Sprintf("a call of 5,000 in a minute for %v (status, files, one in ten a command), with %d jails live: %d errors", o.load, o.live, len(errs)), p50: ms(took.p50()), p99: ms(took.p99()), runs: len(took)},
		{what: fmt.Sprintf("memory of that server (RSS): at first %s, at most %s, at last", mib(seen[0]), mib(slices.Max(seen))), p50: mib(seen[len(seen)-1]), runs: len(seen)},
	}
	return rows, errors.Join(errs[:min(len(errs), 3)]...)
}

// fill makes n sandboxes that stay.
func (s *served) fill(ctx context.Context, n int) ([]paddock.Sandbox, error) {
	boxes := make([]paddock.Sandbox, n)
	turns := make(chan struct{}, 4)
	err := each(n, func(i int) error {
		turns <- struct{}{}
		defer func() { <-turns }()
		var err error
		boxes[i], err = s.Create(ctx, jailed())
		return err
	})
	return boxes, err
}

// aCall is one of those that a server is loaded with.
func aCall(ctx context.Context, sb paddock.Sandbox, n int) (time.Duration, error) {
	began := time.Now()
	var err error
	switch n % 10 {
	case 0:
		_, err = command(ctx, sb)
	case 1, 2, 3:
		_, err = sb.FS().Stat(ctx, "/etc")
	default:
		_, err = sb.Status(ctx)
	}
	return time.Since(began), err
}
