package cli

import (
	"context"
	"fmt"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
	"github.com/paddock-sandbox/paddock/internal/monitor"
	"github.com/paddock-sandbox/paddock/internal/monitor/measure"
	"github.com/paddock-sandbox/paddock/internal/step"
)

// A judged answers the gateway of a monitored sandbox.
type judged struct{ w *monitoring }

// Judge implements gatewayclient.Judge.
func (j *judged) Judge(ctx context.Context, q gatewayclient.Question) gatewayclient.Judgement {
	w := j.w
	to := monitor.Destination{Port: q.Port, UDP: q.UDP, Rule: q.Rule, Guest: monitor.DestinationGuest{Host: q.Host}}
	var d monitor.Decision
	about := "it wants to connect to " + OneLineOf(q.Host, 255)
	if q.Secret == "" {
		d = w.m.Host(ctx, to)
	} else {
		d = w.m.Secret(ctx, q.Secret, to)
		about = "it wants to use the secret " + OneLine(q.Secret) + " for " + OneLineOf(q.Host, 255)
	}
	ok, why := w.settle(ctx, d, "a connection", about)
	if ok {
		return gatewayclient.Judgement{Allow: true}
	}
	return gatewayclient.Judgement{Reason: "the monitor denied it: " + w.inside(d, why)}
}

// inside returns why something was refused, for the eyes of the sandbox. What a judge that failed said is for the owner: it may
// name programs and addresses of this machine, and what a traceback quotes.
func (w *monitoring) inside(d monitor.Decision, why string) string {
	switch {
	case w.ended() != "":
		return "it ended the sandbox"
	case d.Failed:
		return "it gave no verdict"
	}
	return why
}

// Told implements gatewayclient.Judge.
func (j *judged) Told(e gatewayclient.Event) {
	if e.Kind == gatewayclient.KindDNS || e.Kind == gatewayclient.KindRules {
		return
	}
	w := j.w
	refused := e.Verdict == gatewayclient.VerdictDeny
	d := w.m.Flow(monitor.Flow{Host: e.Host, Port: e.Port, Refused: refused, Sent: e.Sent, Received: e.Received, Secrets: e.Secrets})
	if d == nil {
		return
	}
	w.wg.Go(func() { w.after(d(w.ctx)) })
}

// after does what a decision about something asks for that has happened already.
func (w *monitoring) after(d monitor.Decision) (ok bool, why string) {
	if w.ctx.Err() != nil {
		return false, whyStopped
	}
	if d.Verdict != monitor.Allow {
		d.Verdict = monitor.Pause
	}
	return w.settle(w.ctx, d, "what it did", "it has done that already") // a refusal changes nothing any more
}

// A watcher is told of the changes of a monitored sandbox.
type watcher struct{ w *monitoring }

// Change implements step.Watcher.
func (t *watcher) Change(c step.Watched) error {
	w := t.w
	if why := w.ended(); why != "" {
		return fmt.Errorf("the monitor ended the sandbox: %w", paddock.Denied)
	}
	change := measure.Change(c)
	d := w.m.Change(w.ctx, change)
	if c.Done { // an error would not refuse it
		ok, why := w.after(d)
		w.m.Settled(change, d, ok, why)
		return nil
	}
	ok, why := w.settle(w.ctx, d, "a change", "it changes "+OneLineOf(string(c.Path), Paragraph))
	w.m.Settled(change, d, ok, why)
	if !ok {
		return fmt.Errorf("the monitor refused it: %s: %w", why, paddock.Denied)
	}
	return nil
}

// Ended implements step.Watcher.
func (t *watcher) Ended(r *step.Record) {
	if len(r.Undoes) > 0 {
		return
	}
	t.w.after(t.w.m.End(t.w.ctx, measure.Summary(r)))
}
