package parent

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/parent/protocol"
)

// A mouth is a child that says what it likes, whatever it is asked.
type mouth struct{ io.Reader }

func (mouth) Write(p []byte) (int, error) { return len(p), nil }

func message(t testing.TB, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := protocol.Send(&b, v); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func FuzzAnswer(f *testing.F) {
	f.Add(message(f, protocol.Reply{Status: &protocol.Status{User: "x", Refused: []paddock.Refusal{{What: "x", Target: "\x1b[31m"}}}}))
	f.Add(message(f, protocol.Reply{Kind: paddock.Denied, Error: "no"}))
	f.Add([]byte("\xff\xff\xff\xff"))
	f.Add([]byte("\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := protocol.Link{Conn: mouth{bytes.NewReader(b)}}.Ask(protocol.Order{Op: "status"})
		if err == nil {
			return
		}
		if r.Status != nil {
			t.Errorf("an error came with a status: %v", err)
		}
		if strings.ContainsAny(err.Error(), "\x1b\x07\n") || len(err.Error()) > 2*protocol.MaxText {
			t.Errorf("words that a terminal obeys: %q", err)
		}
		var kind paddock.Kind
		if !errors.As(err, &kind) || kind > paddock.Canceled {
			t.Errorf("an error of no kind: %v", err)
		}
	})
}

func TestWhatAHostileChildSaysIsNotBelieved(t *testing.T) {
	long := make([]byte, 4)
	binary.BigEndian.PutUint32(long, protocol.MaxReply+1)
	for name, row := range map[string]struct {
		says []byte
		kind paddock.Kind
	}{
		"nothing":               {nil, paddock.Unavailable},
		"half a length":         {[]byte{0, 0}, paddock.Unavailable},
		"less than it promised": {[]byte{0, 0, 0, 9, 1}, paddock.Unavailable},
		"more than is read":     {long, paddock.Internal},
		"no message":            {[]byte{0, 0, 0, 2, 0xff, 0xff}, paddock.Internal},
		"a kind there is not":   {message(t, protocol.Reply{Kind: 200, Error: "x"}), paddock.Internal},
		"that it is gone":       {message(t, protocol.Reply{Kind: paddock.NotFound, Error: "x"}), paddock.Invalid},
		"that it does not run":  {message(t, protocol.Reply{Kind: paddock.Unavailable, Error: "x"}), paddock.Internal},
		"that it is there":      {message(t, protocol.Reply{Kind: paddock.Exists, Error: "x"}), paddock.Internal},
		"that we gave up":       {message(t, protocol.Reply{Kind: paddock.Canceled, Error: "x"}), paddock.Internal},
		"escape sequences":      {message(t, protocol.Reply{Kind: paddock.Denied, Error: "\x1b]0;owned\x07\u009b31m\n"}), paddock.Denied},
		"a long story":          {message(t, protocol.Reply{Kind: paddock.Denied, Error: strings.Repeat("x", protocol.MaxReply/2)}), paddock.Denied},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := protocol.Link{Conn: mouth{bytes.NewReader(row.says)}}.Ask(protocol.Order{Op: "status"})
			switch {
			case err == nil:
				t.Fatal("it was taken for an answer")
			case paddock.KindOf(err) != row.kind:
				t.Errorf("%v is %v, not %v", err, paddock.KindOf(err), row.kind)
			case strings.ContainsAny(err.Error(), "\x1b\x07\u009b\n"), len(err.Error()) > protocol.MaxText:
				t.Errorf("its words come through as they are: %.200q", err.Error())
			}
		})
	}
}

// A byte can stand for many times as much memory, and a list asks many children at once.
func TestAReplyTakesLittleMoreMemoryThanItHasBytes(t *testing.T) {
	for name, v := range map[string]any{
		"many refusals": protocol.Reply{Status: &protocol.Status{Refused: make([]paddock.Refusal, protocol.MaxReply/7)}},
		"many labels": struct { // what a status had once
			Kind   paddock.Kind
			Error  string
			Status *paddock.Status
		}{Status: &paddock.Status{Labels: many(protocol.MaxReply / 8)}},
		"a long text": protocol.Reply{Error: strings.Repeat("x", protocol.MaxReply-100)},
	} {
		t.Run(name, func(t *testing.T) {
			says := bytes.NewReader(message(t, v))
			if size := says.Len(); size > protocol.MaxReply || size < protocol.MaxReply/2 {
				t.Fatalf("it has %d bytes, so that it is refused proves nothing", size)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := protocol.Link{Conn: mouth{says}}.Answer()
			runtime.ReadMemStats(&after)
			if err == nil {
				t.Error("it was taken for an answer")
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 8*protocol.MaxReply {
				t.Errorf("%d bytes of memory were taken for one of %d", took, says.Size())
			}
		})
	}
}

// many returns that many labels.
func many(n int) map[string]string {
	labels := map[string]string{}
	for i := range n {
		labels[strconv.Itoa(i)] = ""
	}
	return labels
}

func TestAChildIsNotListenedToWithoutEnd(t *testing.T) {
	var l tail
	n, err := io.Copy(&l, io.LimitReader(endless{}, 1<<30))
	if !errors.Is(err, errFull) || n > 2*tailSize || len(l.String()) != tailSize {
		t.Errorf("%d bytes were read: %v", n, err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// made gives a sandbox with a process that stays.
func made(t *testing.T, d *Driver) (*sandbox, paddock.Process) {
	t.Helper()
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	sb, err := d.Create(t.Context(), paddock.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := sb.Start(t.Context(), paddock.Cmd{Args: []string{"sleep", "1000"}})
	if err != nil {
		t.Fatal(err)
	}
	s, ok := sb.(*sandbox)
	if !ok {
		t.Fatalf("a sandbox is a %T", sb)
	}
	<-s.found // its process is known to us
	return s, p
}

func TestTheEndOfAChildIsToldInWords(t *testing.T) {
	for name, row := range map[string]struct {
		signal syscall.Signal
		says   string
	}{
		"killed":   {syscall.SIGKILL, "killed"},
		"a fault":  {syscall.SIGABRT, "its process"},
		"finished": {syscall.SIGTERM, "its process ended"},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := New(Options{})
			if err != nil {
				t.Fatal(err)
			}
			sb, p := made(t, d)
			if err := sb.process.Signal(row.signal); err != nil {
				t.Fatal(err)
			}
			exit, err := p.Wait(t.Context())
			if err != nil || exit.Cause != paddock.SandboxGone || !strings.Contains(exit.Reason, row.says) {
				t.Errorf("its process: %v %+v", err, exit)
			}
			st, err := sb.Status(t.Context())
			if err != nil || st.State != paddock.Dead || !strings.Contains(st.Reason, row.says) {
				t.Errorf("its status: %v %v %q", err, st.State, st.Reason)
			}
			if _, err := sb.Start(t.Context(), paddock.Cmd{Args: []string{"true"}}); !errors.Is(err, paddock.Unavailable) {
				t.Errorf("another start: %v", err)
			}
			if err := sb.Remove(t.Context()); err != nil {
				t.Error(err)
			}
			// The driver makes others.
			next, err := d.Create(t.Context(), paddock.Spec{})
			if err != nil {
				t.Fatal(err)
			}
			if err := next.Remove(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAChildThatDoesNotAnswerIsEnded(t *testing.T) {
	d, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	d.answer = 50 * time.Millisecond
	sb, p := made(t, d)
	if err := sb.process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	st, err := sb.Status(t.Context())
	for err == nil && st.State == paddock.Ready { // until the signal has arrived
		st, err = sb.Status(t.Context())
	}
	if err != nil || st.State != paddock.Dead || !strings.Contains(st.Reason, "does not answer") {
		t.Fatalf("its status: %v %v %q", err, st.State, st.Reason)
	}
	if exit, err := p.Wait(t.Context()); err != nil || exit.Cause != paddock.SandboxGone {
		t.Errorf("its process: %v %+v", err, exit)
	}
}
