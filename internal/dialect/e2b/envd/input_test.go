package envd

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect/e2b/envd/envdpb"
)

// An agent starts processes with the numbers that it likes. They read no input until they
// are let go on, and run until they are released.
type agent struct {
	nothing

	pid  func(started int) paddock.PID
	mute bool // a write is not answered before its process is released

	mu      sync.Mutex
	started []*busy // guarded by mu
}

func (a *agent) Start(context.Context, paddock.Cmd) (paddock.Process, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := &busy{
		pid: a.pid(len(a.started)), mute: a.mute,
		begins: make(chan struct{}, 1), goOn: make(chan struct{}), released: make(chan struct{}), end: make(chan struct{}),
	}
	a.started = append(a.started, p)
	return p, nil
}

// all lists the processes, also the refused ones.
func (a *agent) all() []*busy {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.started
}

type busy struct {
	paddock.Process

	pid      paddock.PID
	mute     bool
	begins   chan struct{} // gets an element when a write waits
	goOn     chan struct{} // closed when the process reads
	end      chan struct{} // closed when the process ends
	killed   atomic.Int32
	once     sync.Once
	released chan struct{}

	mu     sync.Mutex
	got    strings.Builder // guarded by mu
	closed bool            // guarded by mu
}

func (p *busy) ID() paddock.PID       { return p.pid }
func (p *busy) Input() io.WriteCloser { return p }
func (p *busy) Release()              { p.once.Do(func() { close(p.released) }) }

func (p *busy) Signal(context.Context, syscall.Signal) error {
	p.killed.Add(1)
	return nil
}

func (p *busy) Wait(ctx context.Context) (paddock.Exit, error) {
	select {
	case <-p.end:
		return paddock.Exit{Cause: paddock.Exited}, nil
	case <-p.released:
		return paddock.Exit{}, paddock.Canceled
	case <-ctx.Done():
		return paddock.Exit{}, ctx.Err()
	}
}

func (p *busy) Write(data []byte) (int, error) {
	select {
	case p.begins <- struct{}{}:
	default:
	}
	end := p.end
	if p.mute {
		end = nil
	}
	select {
	case <-p.goOn:
	case <-end:
		return 0, paddock.NotFound
	case <-p.released:
		return 0, paddock.Canceled
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.got.Write(data)
}

func (p *busy) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	return nil
}

func (p *busy) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.got.String()
}

// begin starts a process with input in a trial, whose client then goes.
func (a *agent) begin(tr *trial, more string) *busy {
	tr.t.Helper()
	s := tr.open("process.Process/Start", `{"process":{"cmd":"x"}`+more+`}`)
	s.pid()
	s.quit()
	all := a.all()
	return all[len(all)-1]
}

// taken returns how much of a room is taken, of most.
func (r *narrow) taken(most int64) int64 {
	left := <-r.room
	r.room <- left
	return most - left
}

// send makes a call with input and returns its answer when its handler has ended.
func send(ctx context.Context, b *Box, method, kind, body string) string {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/process.Process/"+method, strings.NewReader(body))
	r.Header.Set("Content-Type", kind)
	w := httptest.NewRecorder()
	b.ServeHTTP(w, r)
	return w.Body.String()
}

func TestInputThatAProcessDoesNotTakeIsCountedAfterItsCall(t *testing.T) {
	const most, size, processes = 10 << 20, 300_000, 3
	unary := func(pid paddock.PID, kind, text string) string {
		return fmt.Sprintf(`{"process":{"pid":%d},"input":{%q:%q}}`, pid, kind, base64Of(text))
	}
	stream := func(pid paddock.PID, kind, text string) string {
		return frame(0, fmt.Sprintf(`{"start":{"process":{"pid":%d}}}`, pid)) + frame(0, fmt.Sprintf(`{"data":{"input":{%q:%q}}}`, kind, base64Of(text)))
	}
	const plain, streamed, terminal = "application/json", "application/connect+json", `,"pty":{"size":{"rows":9,"cols":9}}`
	for name, c := range map[string]struct {
		method, form, kind, more string
		body                     func(pid paddock.PID, kind, text string) string
	}{
		"stdin":             {"SendInput", plain, "stdin", "", unary},
		"a terminal":        {"SendInput", plain, "pty", terminal, unary},
		"a stream to stdin": {"StreamInput", streamed, "stdin", "", stream},
		"a stream to a pty": {"StreamInput", streamed, "pty", terminal, stream},
	} {
		t.Run(name, func(t *testing.T) {
			room, a := newNarrow(most), &agent{pid: func(n int) paddock.PID { return paddock.PID(100 + n) }}
			b, err := New(Options{Sandbox: a, Room: room})
			if err != nil {
				t.Fatal(err)
			}
			tr := &trial{t: t, sb: a, box: b, web: newServer(t, b)}
			big := strings.Repeat("0123456789", size/10)
			var all []*busy
			for range processes {
				p := a.begin(tr, c.more)
				all = append(all, p)
				ctx, cancel := context.WithCancel(t.Context())
				go func() {
					<-p.begins
					cancel()
				}()
				if answer := send(ctx, b, c.method, c.form, c.body(p.pid, c.kind, big)); !strings.Contains(answer, `"canceled"`) {
					t.Errorf("a call that ended early is answered %.200q", answer)
				}
			}
			// The handlers of the streams that begin let go of may still end.
			for limit := time.Now().Add(time.Minute); b.held.Load() > processes*maxPiece && time.Now().Before(limit); {
				time.Sleep(time.Millisecond)
			}
			if n := b.held.Load(); n != processes*maxPiece || room.taken(most) != n {
				t.Errorf("%d bytes are counted, and %d of the room, for %d pieces of %d", n, room.taken(most), processes, maxPiece)
			}
			var calls sync.WaitGroup
			for _, p := range all[1:] {
				calls.Go(func() {
					if answer := send(t.Context(), b, c.method, c.form, c.body(p.pid, c.kind, "later")); strings.Contains(answer, "error") || strings.Contains(answer, "code") {
						t.Errorf("later input: %q", answer)
					}
				})
				close(p.goOn)
			}
			calls.Wait()
			for _, p := range all[1:] {
				if got := p.text(); got != big[:maxPiece]+"later" {
					t.Errorf("%d bytes arrived that end with %.20q", len(got), got[max(0, len(got)-20):])
				}
			}
			close(all[0].end)
			tr.web.Close()
			if err := b.Close(); err != nil {
				t.Error(err)
			}
			if n := b.held.Load(); n != 0 || room.taken(most) != 0 {
				t.Errorf("%d bytes are counted, and %d of the room, of nothing", n, room.taken(most))
			}
		})
	}
}

func TestLargeInputsOfSeveralCallsDoNotMix(t *testing.T) {
	a := &agent{pid: func(n int) paddock.PID { return paddock.PID(100 + n) }}
	b, err := New(Options{Sandbox: a})
	if err != nil {
		t.Fatal(err)
	}
	tr := &trial{t: t, sb: a, box: b, web: newServer(t, b)}
	p := a.begin(tr, "")
	close(p.goOn)
	var calls sync.WaitGroup
	for _, letter := range []string{"a", "b", "c", "d"} {
		calls.Go(func() {
			body := fmt.Sprintf(`{"process":{"pid":%d},"input":{"stdin":%q}}`, p.pid, base64Of(strings.Repeat(letter, 200_000)))
			if answer := send(t.Context(), b, "SendInput", "application/json", body); answer != "{}" {
				t.Errorf("%q", answer)
			}
		})
	}
	calls.Wait()
	text, changes := p.text(), 0
	for i := 1; i < len(text); i++ {
		if text[i] != text[i-1] {
			changes++
		}
	}
	if len(text) != 800_000 || changes != 3 {
		t.Errorf("%d bytes, and %d times another letter", len(text), changes)
	}
}

func TestAnInputThatIsNeverAnsweredKeepsNoBoxFromClosing(t *testing.T) {
	for name, wait := range map[string]time.Duration{"while the process is known": 0, "later": keptFor + time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // where a Close that waits for ever is a failure at once
				a := &agent{mute: true, pid: func(n int) paddock.PID { return paddock.PID(100 + n) }}
				b, err := New(Options{Sandbox: a})
				if err != nil {
					t.Fatal(err)
				}
				p, err := run(t, b)
				if err != nil {
					t.Fatal(err)
				}
				put := make(chan error, 1)
				go func() {
					put <- p.put(t.Context(), &envdpb.ProcessInput{Input: &envdpb.ProcessInput_Stdin{Stdin: []byte("x")}})
				}()
				<-a.all()[0].begins
				close(a.all()[0].end)
				<-p.ended
				time.Sleep(wait)
				if err := b.Close(); err != nil {
					t.Error(err)
				}
				if err := <-put; err == nil {
					t.Error("the input was taken")
				}
				if n := b.held.Load(); n != 0 {
					t.Errorf("%d bytes are held", n)
				}
			})
		})
	}
}
