package sim_test

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/sim"
)

// A lines calls each when it was written so many lines.
type lines struct {
	mu    sync.Mutex
	left  int
	ready chan struct{}
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for range bytes.Count(p, []byte("\n")) {
		if l.left--; l.left == 0 {
			close(l.ready)
		}
	}
	return len(p), nil
}

func TestDatabasesOfOneSandboxTakeNothingFromAnother(t *testing.T) {
	d, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	made := func(memory int64) paddock.Sandbox {
		sb, err := d.Create(t.Context(), paddock.Spec{Dir: "/tmp", Limits: paddock.Limits{Memory: memory, Disk: 16 << 20}})
		if err != nil {
			t.Fatal(err)
		}
		return sb
	}
	a, b := made(256<<20), made(16<<20)
	ctx, cancel := context.WithCancel(t.Context())
	// The console says at once that it does not know ".ready".
	out := &lines{left: 9, ready: make(chan struct{})}
	done := make(chan error, 1)
	go func() {
		_, err := sim.Run(ctx, a, sim.Script{Stdout: out, Stderr: out, Text: `mkfifo p; exec 3<>p
for i in 1 2 3 4 5 6 7 8 9; do
  sqlite3 :memory: 'create table t(x); insert into t values(zeroblob(15000000))' '.ready' '.read p' &
done; wait`})
		done <- err
	}()
	<-out.ready
	// Again and again, so that what is not given back would be missed.
	var text bytes.Buffer
	x, err := sim.Run(t.Context(), b, sim.Script{Stdout: &text, Stderr: &text, Text: `for i in 1 2 3 4 5; do
sqlite3 :memory: 'create table t(x); insert into t values(zeroblob(3000000)); insert into t values(zeroblob(3000000)); select count(*) from t'
done`})
	if err != nil || x.Code != 0 || text.String() != strings.Repeat("2\n", 5) {
		t.Errorf("%v %+v %q", err, x, text.String())
	}
	// Its own memory is what a database is bounded by.
	text.Reset()
	x, err = sim.Run(t.Context(), b, sim.Script{Stdout: &text, Stderr: &text, Text: `sqlite3 :memory: 'create table t(x); insert into t select zeroblob(3000000) from (values(1),(2),(3),(4),(5),(6),(7))'`})
	if err != nil || x.Code != 7 || !strings.Contains(text.String(), "out of memory") {
		t.Errorf("%v %+v %q", err, x, text.String())
	}
	cancel()
	<-done
}
