package interpreter

import (
	"context"
	"fmt"
	"io"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/paddock-sandbox/paddock"
)

// A deaf sandbox starts kernels whose input it never answers and that it does not kill, and says on their output what a
// test wants.
type deaf struct {
	paddock.Sandbox
	says string // a message on both streams, or one that breaks the form
	all  []*deafProcess
}

func (*deaf) Status(context.Context) (paddock.Status, error) { return paddock.Status{Dir: "/"}, nil }

func (d *deaf) Processes(context.Context) ([]paddock.ProcessInfo, error) {
	return []paddock.ProcessInfo{{PID: 9, Args: []string{tag{language: Python, id: aMark, mark: aMark, byDefault: true}.String()}}}, nil
}

func (d *deaf) Start(_ context.Context, cmd paddock.Cmd) (paddock.Process, error) {
	t, _ := parseTag(cmd.Args)
	return d.process(t.mark, cmd.Output), nil
}

func (d *deaf) Attach(_ context.Context, _ paddock.PID, out paddock.Output) (paddock.Process, error) {
	return d.process(aMark, out), nil
}

func (d *deaf) process(mark string, out paddock.Output) paddock.Process {
	p := &deafProcess{released: make(chan struct{})}
	d.all = append(d.all, p)
	for _, w := range []io.Writer{out.Stdout, out.Stderr} {
		_, _ = fmt.Fprintf(w, "\x1e%s.%04x%s", mark, len(d.says), d.says)
	}
	return p
}

// held counts the processes that were not released.
func (d *deaf) held() int {
	n := 0
	for _, p := range d.all {
		select {
		case <-p.released:
		default:
			n++
		}
	}
	return n
}

type deafProcess struct {
	paddock.Process
	once     sync.Once
	released chan struct{}
}

func (p *deafProcess) ID() paddock.PID       { return 9 }
func (p *deafProcess) Input() io.WriteCloser { return p }
func (p *deafProcess) Close() error          { return nil }
func (p *deafProcess) Release()              { p.once.Do(func() { close(p.released) }) }

func (p *deafProcess) Write([]byte) (int, error) {
	<-p.released
	return 0, paddock.Canceled
}

func (p *deafProcess) Signal(context.Context, syscall.Signal) error {
	return fmt.Errorf("no: %w", paddock.Internal)
}

func (p *deafProcess) Wait(ctx context.Context) (paddock.Exit, error) {
	select {
	case <-p.released:
	case <-ctx.Done():
	}
	return paddock.Exit{}, paddock.Canceled
}

func newDeaf(t *testing.T, says string) (*Interpreter, *deaf) {
	t.Helper()
	d := &deaf{says: says}
	i, err := New(Options{Sandbox: d})
	if err != nil {
		t.Fatal(err)
	}
	return i, d
}

// ends closes an Interpreter. In a bubble a Close that waits for ever is a failure at once.
func ends(t *testing.T, i *Interpreter) {
	t.Helper()
	if err := i.Close(); err != nil {
		t.Error(err)
	}
}

func TestAKernelThatCouldNotBeStartedIsLetGoOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, d := newDeaf(t, "no JSON")
		for range 3 {
			if _, err := i.Create(t.Context(), Spec{Language: Python}); err == nil {
				t.Error("it was started")
			}
		}
		if len(d.all) != 3 || d.held() != 0 {
			t.Errorf("of %d processes %d are held", len(d.all), d.held())
		}
		ends(t, i)
	})
}

func TestAKernelThatCouldNotBeJoinedIsLetGoOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, d := newDeaf(t, "no JSON")
		for range 3 {
			if err := i.Run(t.Context(), Cell{Language: Python, Code: "1"}, func(Event) error { return nil }); err == nil {
				t.Error("it was joined")
			}
		}
		if len(d.all) != 3 || d.held() != 0 {
			t.Errorf("of %d processes %d are held", len(d.all), d.held())
		}
		ends(t, i)
	})
}

func TestAKernelWhoseContextWasRemovedMeanwhileIsLetGoOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, d := newDeaf(t, `{"t":"ready"}`)
		s := i.session(Context{ID: aMark, Language: Python}, nil)
		k, err := s.start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.gone.Store(true)
		if _, err := s.begun(t.Context(), k); err == nil || d.held() != 0 {
			t.Errorf("%v, and %d processes are held", err, d.held())
		}
		ends(t, i)
	})
}

func TestACellDoesNotWaitForAKernelThatCannotBeKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, d := newDeaf(t, `{"t":"ready"}`)
		k, err := i.session(Context{ID: aMark, Language: Python}, nil).start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []Kind
		c := k.begin(7)
		r := &running{k: k, c: c, tell: func(e Event) error { got = append(got, e.Kind); return nil }}
		r.kill(t.Context())
		if err := r.follow(t.Context()); err != nil || len(got) != 2 || got[0] != Failed || got[1] != Ended {
			t.Errorf("%v, told %v", err, got)
		}
		k.end(c)
		if d.held() != 0 {
			t.Errorf("%d processes are held", d.held())
		}
		ends(t, i)
	})
}
