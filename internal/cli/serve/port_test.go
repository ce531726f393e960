package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/server"
	"github.com/paddock-sandbox/paddock/internal/server/api"
	"github.com/paddock-sandbox/paddock/internal/wrap/actionlog"
)

// An openPorts does what it is told.
type openPorts struct{ calls int }

func (p *openPorts) Port(context.Context, string, paddock.ID, int) (api.Port, error) {
	return api.Port{}, nil
}

func (p *openPorts) SetPublic(_ context.Context, _ string, _ paddock.ID, port int, public bool) (api.Port, error) {
	p.calls++
	return api.Port{Port: port, Public: public}, nil
}

func (p *openPorts) Link(context.Context, string, string, paddock.ID, int, api.Link) (api.Linked, error) {
	p.calls++
	return api.Linked{URL: "x"}, nil
}

func (p *openPorts) Sign(context.Context, string, string, paddock.ID, int, api.Link) (string, time.Time, error) {
	p.calls++
	return "signed", time.Time{}, nil
}

func (p *openPorts) End(context.Context, string, paddock.ID, int, string) error {
	p.calls++
	return nil
}

func (p *openPorts) Through(http.ResponseWriter, *http.Request, paddock.ID, int) {}

// What Daytona's clients open is recorded as well.
func TestWhatDaytonasClientsOpenIsRecordedOrNotDone(t *testing.T) {
	var lines recorded
	failed := make(chan struct{})
	d, err := actionlog.New(&house{}, actionlog.Options{Sink: &lines, Failed: failed})
	if err != nil {
		t.Fatal(err)
	}
	in := &openPorts{}
	c := &accounts{drivers: map[string]paddock.Driver{"acme": d}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	if err != nil {
		t.Fatal(err)
	}
	p, ctx := daytonaPorts{in}, c.mark(t.Context(), r, "acme", "k1")
	if text, err := p.Sign(ctx, "acme", "k1", "box", 81, time.Minute); err != nil || text != "signed" {
		t.Errorf("%q, %v", text, err)
	}
	if err := p.Public(ctx, "acme", "box", true); err != nil {
		t.Error(err)
	}
	close(failed)
	if _, err := p.Sign(ctx, "acme", "k1", "box", 81, time.Minute); !errors.Is(err, paddock.Unavailable) {
		t.Errorf("a token is signed without a record: %v", err)
	}
	if err := p.Public(ctx, "acme", "box", true); !errors.Is(err, paddock.Unavailable) {
		t.Errorf("all ports are opened without a record: %v", err)
	}
	if err := errors.Join(p.End(ctx, "acme", "box", 81, "signed"), p.Public(ctx, "acme", "box", false)); err != nil || in.calls != 4 {
		t.Errorf("what closes is not done: %v, %d calls", err, in.calls)
	}
	if want := []string{"box port.url 81 ok", "box port.public 0 ok", "box port.url-end 81 ok", "box port.private 0 ok"}; !slices.Equal(lines, want) {
		t.Errorf("recorded %q, not %q", lines, want)
	}
}

// recorded are the actions that were recorded.
type recorded []string

func (l *recorded) Record(e audit.Event) {
	*l = append(*l, fmt.Sprint(e.Sandbox, " ", e.Action.What, " ", e.Action.Target, " ", e.Action.Result))
}

func TestWhatOpensASandboxToOthersIsRecordedOrNotDone(t *testing.T) {
	var lines recorded
	failed := make(chan struct{})
	d, err := actionlog.New(&house{}, actionlog.Options{Sink: &lines, Failed: failed})
	if err != nil {
		t.Fatal(err)
	}
	in := &openPorts{}
	p := recordedPorts{in}
	ctx := server.MarkRequest(t.Context(), server.Request{Caller: server.Caller{Driver: d}})
	if answer, err := p.SetPublic(ctx, "acme", "box", 80, true); err != nil || !answer.Public {
		t.Errorf("%+v, %v", answer, err)
	}
	if answer, err := p.Link(ctx, "acme", "k1", "box", 81, api.Link{Path: "/a"}); err != nil || answer.URL != "x" {
		t.Errorf("%+v, %v", answer, err)
	}
	close(failed)
	if _, err := p.SetPublic(ctx, "acme", "box", 80, true); !errors.Is(err, paddock.Unavailable) {
		t.Errorf("a port is opened without a record: %v", err)
	}
	if _, err := p.Link(ctx, "acme", "k1", "box", 80, api.Link{}); !errors.Is(err, paddock.Unavailable) {
		t.Errorf("a URL is signed without a record: %v", err)
	}
	if _, err := p.SetPublic(ctx, "acme", "box", 80, false); err != nil || in.calls != 3 {
		t.Errorf("a port stays open: %v, %d calls", err, in.calls)
	}
	if want := []string{"box port.public 80 ok", "box port.url 81/a ok", "box port.private 80 ok"}; !slices.Equal(lines, want) {
		t.Errorf("recorded %q, not %q", lines, want)
	}
	ctx = server.MarkRequest(t.Context(), server.Request{Caller: server.Caller{Driver: &house{}}})
	if _, err := p.SetPublic(ctx, "acme", "box", 80, true); err != nil || in.calls != 4 {
		t.Errorf("without a record: %v, %d calls", err, in.calls)
	}
}

func TestWhatLetSomebodyInIsTold(t *testing.T) {
	for who, want := range map[string]string{"k1": "key", "": "key", "sandbox-token": "sandbox-token", "public": "public", "signed URL": "signed URL"} {
		if got := ruleOf(who); got != want {
			t.Errorf("%q: %q", who, got)
		}
	}
}
