package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// A talker is a sandbox with one process that has written much output.
type talker struct {
	thing
	said  []byte
	ended chan error // how each attachment ended
}

func newTalker(n int) *talker {
	said := make([]byte, n)
	for i := range said {
		said[i] = byte(i * 31 >> 8)
	}
	return &talker{thing: thing{id: "a"}, said: said, ended: make(chan error, 1000)}
}

func (k *talker) Processes(context.Context) ([]paddock.ProcessInfo, error) { return nil, nil }

func (k *talker) Attach(_ context.Context, _ paddock.PID, out paddock.Output) (paddock.Process, error) {
	p := &talk{copied: make(chan struct{}), released: make(chan struct{})}
	go func() {
		_, err := out.Stdout.Write(k.said[out.From:])
		k.ended <- err
		if err == nil {
			close(p.copied)
		}
	}()
	return p, nil
}

type talk struct {
	deaf
	copied, released chan struct{}
}

func (p *talk) Release() { p.once.Do(func() { close(p.released) }) }

func (p *talk) Wait(ctx context.Context) (paddock.Exit, error) {
	select {
	case <-p.copied:
		return paddock.Exit{}, nil
	case <-p.released:
	case <-ctx.Done():
	}
	return paddock.Exit{}, paddock.Canceled
}

const someToken = "0123456789abcdef"

// follow starts a request for the output of process 1.
func (tr *trial) follow(query string) *http.Response {
	tr.t.Helper()
	ctx, cancel := context.WithTimeout(tr.t.Context(), time.Minute)
	tr.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, "GET", tr.web.URL+"/v1/sandboxes/a/processes/1/output?"+query, http.NoBody)
	if err != nil {
		tr.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer good")
	res, err := tr.web.Client().Do(req)
	if err != nil {
		tr.t.Fatal(err)
	}
	tr.t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

func (tr *trial) wait(ended <-chan error) error {
	tr.t.Helper()
	select {
	case err := <-ended:
		return err
	case <-time.After(time.Minute):
		tr.t.Fatal("the process is held up")
		return nil
	}
}

func TestAKeyThatMayOnlyLookHoldsNoProcessUp(t *testing.T) {
	sb := newTalker(32 << 20)
	tr := newTrial(t, func(c *Caller) { c.Driver, c.ReadOnly = &shelf{sb: sb}, true })
	for _, query := range []string{"attachment=" + someToken, ""} {
		tr.follow(query) // and reads nothing
		if err := tr.wait(sb.ended); !errors.Is(err, errDetached) {
			t.Errorf("%q: the copying ended with %v", query, err)
		}
	}
}

func TestAKeyThatMayOnlyLookSeesAllOutput(t *testing.T) {
	sb := newTalker(5<<20 + 7)
	tr := newTrial(t, func(c *Caller) { c.Driver, c.ReadOnly = &shelf{sb: sb}, true })
	var got []byte
	for ended := false; !ended; {
		before := len(got)
		res := tr.follow(fmt.Sprintf("attachment=%s&from=%d", someToken, before))
		if res.StatusCode != http.StatusOK {
			t.Fatal(res.Status)
		}
		for in := api.NewFrameReader(res.Body); ; {
			k, payload, err := in.Next()
			if err != nil {
				break // the connection was cut
			}
			if k == api.Stdout {
				got = append(got, payload...)
			}
			if ended = k == api.End; ended {
				break
			}
		}
		_ = res.Body.Close()
		if !ended && len(got) == before {
			t.Fatalf("nothing comes after %d bytes", before)
		}
	}
	if !bytes.Equal(got, sb.said) {
		t.Errorf("%d bytes came of %d, or others", len(got), len(sb.said))
	}
	tr.want(204, "POST", fmt.Sprintf("/v1/attachments/%s/ack?offset=%d", someToken, len(got)), "")
	tr.want(204, "DELETE", "/v1/attachments/"+someToken, "")
}

func TestAKeyThatMayOnlyLookHasNoOnesAttachmentButItsOwn(t *testing.T) {
	sb := newTalker(10)
	tr := newTrial(t, func(c *Caller) { c.Driver = &shelf{sb: sb} })
	tr.follow("attachment=" + someToken)
	tr.caller.ReadOnly = true
	tr.want(403, "POST", "/v1/attachments/"+someToken+"/ack?offset=1", "")
	tr.want(403, "DELETE", "/v1/attachments/"+someToken, "")
	tr.want(403, "GET", "/v1/sandboxes/a/processes/1/output?attachment="+someToken, "")
	tr.want(403, "POST", "/v1/sandboxes", "{}")
}

func TestAProcessIsAttachedSoManyTimesAndNoMore(t *testing.T) {
	sb := newTalker(10)
	tr := newTrial(t, func(c *Caller) { c.Driver = &shelf{sb: sb} })
	token := func(i int) string { return fmt.Sprintf("%016d", i) }
	for i := range maxWatchers {
		tr.want(200, "GET", "/v1/sandboxes/a/processes/1/output?attachment="+token(i), "")
	}
	tr.want(429, "GET", "/v1/sandboxes/a/processes/1/output?attachment="+token(maxWatchers), "")
	tr.want(200, "GET", "/v1/sandboxes/a/processes/2/output?attachment="+token(maxWatchers), "")
	tr.want(204, "DELETE", "/v1/attachments/"+token(0), "")
	tr.want(200, "GET", "/v1/sandboxes/a/processes/1/output?attachment="+token(0), "")
}

// A client acknowledges soon only what is at least that much.
func TestSmallPiecesOfOutputGetTheirLeastToo(t *testing.T) {
	at := newAttachment(func() {}, &budget{})
	const size = 100
	for n := 0; n < least; {
		added, _, err := at.add(make([]byte, size), false)
		if want := min(size, least-n); err != nil || added != want {
			t.Fatalf("after %d bytes %d of %d are taken: %v", n, added, want, err)
		}
		n += added
	}
	if added, wait, err := at.add(make([]byte, size), false); err != nil || added != 0 || wait.room == nil {
		t.Errorf("beyond the least %d are taken: %v", added, err)
	}
}

func TestOutputWaitsWhileTheBudgetIsUsedUp(t *testing.T) {
	all := &budget{max: 3 * piece}
	one := &budget{max: 2 * piece, above: all}
	first, second := newAttachment(func() {}, one), newAttachment(func() {}, one)
	close(first.ready)
	if n, err := (stream{at: first}).Write(make([]byte, 2*piece)); err != nil {
		t.Fatal(n, err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := stream{at: second}.Write(make([]byte, piece))
		ended <- err
	}()
	(&trial{t: t}).until(func() bool { // it holds the least, and waits
		second.mu.Lock()
		defer second.mu.Unlock()
		return second.next == least
	})
	if n, more := one.take(1); n != 0 || more == nil {
		t.Errorf("%d bytes are left", n)
	}
	if err := first.ack(piece); err != nil {
		t.Fatal(err)
	}
	if err := (&trial{t: t}).wait(ended); err != nil {
		t.Error(err)
	}
	first.detach()
	first.detach()
	if err := second.ack(piece); err != nil {
		t.Fatal(err)
	}
	if one.used != 0 || all.used != 0 {
		t.Errorf("%d and %d bytes are still counted", one.used, all.used)
	}
}

// until polls for an event of another goroutine.
func (tr *trial) until(done func() bool) {
	tr.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	late := time.After(time.Minute)
	for !done() {
		select {
		case <-tick.C:
		case <-late:
			tr.t.Fatal("it does not happen")
		}
	}
}

func TestBodiesAreBoundedTogether(t *testing.T) {
	tr := newTrial(t)
	tr.want(201, "POST", "/v1/sandboxes", `{"id":"a"}`)
	a := tr.s.accounts["one"]
	a.bodies.max, a.inputHeld.max = 1000, 100
	tr.want(429, "POST", "/v1/sandboxes", `{"id":"b"}`+strings.Repeat(" ", 1000))
	tr.want(429, "POST", "/v1/sandboxes/a/processes/1/input", strings.Repeat("x", 101))
	tr.want(201, "POST", "/v1/sandboxes", `{"id":"b"}`)
	if a.bodies.used != 0 || a.inputHeld.used != 0 || tr.s.bodies.used != 0 || tr.s.inputHeld.used != 0 {
		t.Error("what is over is still counted")
	}
	if _, err := io.ReadAll(&metered{r: strings.NewReader("xx"), b: &budget{max: 1}}); !errors.Is(err, paddock.Exhausted) {
		t.Errorf("%v", err)
	}
}

func TestABodyCountsWithTheMemoryOfItsValues(t *testing.T) {
	tr := newTrial(t)
	mounts := `{"id":"a","mounts":[` + strings.Repeat("{},", 200_000) + `{}]}` // 600 KB
	tr.want(429, "POST", "/v1/sandboxes", mounts)
	if used := tr.s.accountOf("one").bodies.used; used != 0 {
		t.Errorf("%d bytes are still counted", used)
	}
}

// A starter is a sandbox that notes what is counted while it starts a process.
type starter struct {
	*talker
	starts func()
}

func (s *starter) Start(ctx context.Context, cmd paddock.Cmd) (paddock.Process, error) {
	s.starts()
	return s.Attach(ctx, 1, cmd.Output)
}

func TestABodyIsCountedAsLongAsItsStartTakes(t *testing.T) {
	sb := &starter{talker: newTalker(32 << 20)}
	tr := newTrial(t, func(c *Caller) { c.Driver = &shelf{sb: sb} })
	a := tr.s.accountOf("one")
	used := func() int64 {
		a.bodies.mu.Lock()
		defer a.bodies.mu.Unlock()
		return a.bodies.used
	}
	body := `{"args":["true","` + strings.Repeat("x", 1<<20) + `"]}`
	var during atomic.Int64
	sb.starts = func() { during.Store(used()) }
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "POST", tr.web.URL+"/v1/sandboxes/a/processes", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer good")
	res, err := tr.web.Client().Do(req) // and reads nothing
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if n := during.Load(); n < 1<<20 || used() != 0 {
		t.Errorf("%d bytes are counted while the process starts, and %d while it runs; the body has %d", n, used(), len(body))
	}
}

func TestFilesOnTheirWayAreBoundedTogether(t *testing.T) {
	all := budget{max: 4 * fileChunk}
	one, other := &account{files: budget{max: 2 * fileChunk, above: &all}}, &account{files: budget{max: 2 * fileChunk, above: &all}}
	var back []func()
	take := func(a *account) int {
		t.Helper()
		buf, done, err := a.piece()
		if err != nil {
			if !errors.Is(err, paddock.Exhausted) {
				t.Error(err)
			}
			return 0
		}
		back = append(back, done)
		return len(buf)
	}
	if n := take(one); n != fileChunk {
		t.Errorf("the first of few has %d", n)
	}
	many := 0
	for n := take(one); n > 0; n = take(one) {
		if many++; n != smallChunk {
			t.Errorf("one of many has %d", n)
		}
	}
	if many != fileChunk/smallChunk {
		t.Errorf("%d at once", many)
	}
	if n := take(other); n != smallChunk { // because one caller has half of the total
		t.Errorf("another's has %d", n)
	}
	for _, done := range back {
		done()
	}
	if one.files.used != 0 || other.files.used != 0 || all.used != 0 {
		t.Error("what is over is still counted")
	}

	tr := newTrial(t)
	tr.want(201, "POST", "/v1/sandboxes", `{"id":"a"}`)
	tr.want(204, "PUT", "/v1/sandboxes/a/files?path=/tmp/x", "content")
	a := tr.s.accounts["one"]
	a.files.max = smallChunk - 1
	tr.want(429, "GET", "/v1/sandboxes/a/files?path=/tmp/x", "")
	tr.want(429, "PUT", "/v1/sandboxes/a/files?path=/tmp/y", "content")
	tr.want(404, "GET", "/v1/sandboxes/a/files/stat?path=/tmp/y", "")
	a.files.max = maxFiles
	tr.want(200, "GET", "/v1/sandboxes/a/files?path=/tmp/x", "")
	tr.want(404, "GET", "/v1/sandboxes/a/files?path=/tmp/y", "")
	if a.files.used != 0 || tr.s.files.used != 0 {
		t.Error("what is over is still counted")
	}
}
