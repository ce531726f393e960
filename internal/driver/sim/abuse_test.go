package sim_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/testrun/sample"
)

// small are limits that hostile scripts reach soon; the ways to them are those
// of the defaults.
func small() budget.Limits {
	const mib = 1 << 20
	return budget.Limits{
		Commands: 100_000, Iterations: 50_000, Steps: 200_000_000, Output: 64 * mib, Traversal: 200_000, Brace: 1_000_000,
		Matches: 100_000, Array: 200_000, Heap: abuseHeap, String: 16 * mib, Record: 16 * mib, Input: 32 * mib, Heredoc: 16 * mib,
		Disk: 64 * mib, Inodes: 20_000, Source: 16 * mib, Archive: 64 * mib, ScriptTime: time.Second,
	}
}

const abuseHeap = 48 << 20

// A ending is how an abuse may end: "exit" is by itself, "timeout" by the
// caller's timeout, anything else is the name of a limit. Several are
// separated by spaces.
type abuse struct{ name, tool, script, ending string }

// patience is what rows get that wait for ever; the others have as long as
// they need.
const (
	waiting  = 200 * time.Millisecond
	forgiven = 2 * time.Minute
)

func ending(x paddock.Exit) string {
	switch x.Cause {
	case paddock.Exited, paddock.Signaled:
		return "exit"
	case paddock.OutOfMemory, paddock.OutOfBudget:
		if _, name, ok := strings.Cut(x.Reason, "the limit \""); ok {
			name, _, _ = strings.Cut(name, "\"")
			return name
		}
	case paddock.TimedOut:
		return "timeout"
	}
	return fmt.Sprintf("%s: %s", x.Cause, x.Reason)
}

func TestAbuseEndsAndTheComputerLivesOn(t *testing.T) {
	d, err := sim.New(sim.Options{Limits: small()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	rows := map[string]abuse{}
	var names []string
	for _, row := range slices.Concat(shellAbuses(), toolAbuses(), engineAbuses(), valueAbuses()) {
		if _, twice := rows[row.name]; twice {
			t.Fatalf("two abuses are called %s", row.name)
		}
		rows[row.name] = row
		names = append(names, row.name)
	}
	tried, left := sample.Part(sample.Seed("abuses of sim"), "rows", names, 8)
	for _, name := range left {
		t.Log(sample.LeftOut + name)
	}
	for _, name := range tried {
		t.Run(name, func(t *testing.T) { rows[name].try(t, d) })
	}
}

func (row abuse) try(t *testing.T, d *sim.Driver) {
	sb, err := d.Create(t.Context(), paddock.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := sb.Remove(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	if exit, _ := do(t, sb, "command -v "+row.tool, forgiven); row.tool != "" && exit.Code != 0 {
		t.Fatalf("the computer has no %s", row.tool)
	}
	bound := forgiven
	if strings.Contains(row.ending, "timeout") {
		bound = waiting
	}
	runtime.GC() // what the rows before left is not this one's
	stop := watch()
	began := time.Now()
	exit, out := do(t, sb, row.script, bound)
	took, peak := time.Since(began), stop()
	got := ending(exit)
	t.Logf("%s in %v, %v of processors, memory %d MiB; %.300q", got, took.Round(time.Millisecond), exit.Usage.CPU.Round(time.Millisecond), peak>>20, out)
	if !strings.Contains(" "+row.ending+" ", " "+got+" ") {
		t.Errorf("it ended by %q (%s), not by %q\n%.2000s", got, exit.Reason, row.ending, out)
	}
	if peak > 8*abuseHeap {
		t.Errorf("the process held %d MiB for a computer of %d", peak>>20, abuseHeap>>20)
	}
	if exit, out := do(t, sb, revive, forgiven); out != "alive\n" || exit.Code != 0 {
		t.Errorf("afterwards: %q, %+v", out, exit)
	}
}

// revive kills what is left, waits for its end, and uses the computer.
const revive = `kill -9 -1; for ((i = 0; i < 10000; i++)); do set -- /proc/[0-9]*; (( $# < 3 )) && break; done
cd / && echo alive | cat && rm -rf /tmp/*`

// do runs a script and gives the beginning of what it wrote.
func do(t *testing.T, sb paddock.Sandbox, script string, bound time.Duration) (paddock.Exit, string) {
	t.Helper()
	var out beginning
	p, err := sb.Start(t.Context(), paddock.Cmd{
		Args: []string{"bash", "-s"}, Input: true, Dir: "/tmp", Timeout: bound, Output: paddock.Output{Stdout: &out, Stderr: &out},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	if _, err := p.Input().Write([]byte(script + "\n")); err != nil && !errors.Is(err, paddock.NotFound) {
		t.Fatal(err)
	}
	if err := p.Input().Close(); err != nil && !errors.Is(err, paddock.NotFound) {
		t.Fatal(err)
	}
	exit, err := p.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return exit, out.String()
}

// A beginning keeps the first bytes that are written to it.
type beginning struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

func (b *beginning) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if room := 4096 - b.buf.Len(); room > 0 {
		b.buf.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}

func (b *beginning) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// watch measures the most that the process holds in objects until the function
// that it gives is called.
func watch() (stop func() uint64) {
	quit, peak := make(chan struct{}), make(chan uint64)
	go func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		var most uint64
		for {
			metrics.Read(sample)
			most = max(most, sample[0].Value.Uint64())
			select {
			case <-quit:
				peak <- most
				return
			case <-tick.C:
			}
		}
	}()
	return func() uint64 {
		close(quit)
		return <-peak
	}
}
