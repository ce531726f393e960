package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/monitor"
)

// begin notes the sandbox, and says which rules cannot work.
func (w *monitoring) begin(p *plan, b *oneShot) {
	if w == nil {
		return
	}
	w.mu.Lock()
	w.box = b
	w.mu.Unlock()
	w.measured.Files = p.steps != nil && b.tier != paddock.Sim
	w.m.Sandbox(string(b.ID()), string(b.tier), w.measured)
	writes := b.tier != paddock.Sim && slices.ContainsFunc(p.spec.Mounts, func(m paddock.Mount) bool { return m.Write && !m.Cache })
	reaches := p.spec.Policy.Network.Mode != paddock.NetworkNone
	// What cannot happen needs no rule.
	needed := monitor.Measured{Files: w.measured.Files || !writes, Network: w.measured.Network || !reaches}
	if off := monitor.OffRules(needed); len(off) > 0 {
		why := "what this run changes is not recorded"
		if !needed.Network {
			why = "the network is this machine's own, where nothing is measured"
		}
		fmt.Fprintf(w.a.Stderr, "paddock: note: rules of the monitor are off, because %s: %s\n", why, Join(off))
	}
}

// A stoppedError is the end of a run by its monitor.
type stoppedError struct{ why string }

func (e *stoppedError) Error() string { return e.why }

func (e *stoppedError) Unwrap() error { return paddock.Denied }

// exec judges the command before it starts.
func (w *monitoring) exec(ctx context.Context, args []string) error {
	if w == nil {
		return nil
	}
	d := w.m.Exec(ctx, args, "")
	ok, why := w.settle(ctx, d, "a command", "it wants to run "+OneLineOf(strings.Join(args, " "), Paragraph))
	if !ok {
		return WithHint(&stoppedError{"the monitor refused the command: " + why}, "docs/use/monitor.md tells about rules and judges; --monitor off runs it without")
	}
	w.m.Begin(args, "")
	return nil
}

// settle does what a decision asks for, and reports whether it goes on.
func (w *monitoring) settle(ctx context.Context, d monitor.Decision, what, about string) (ok bool, why string) {
	if why := w.ended(); why != "" {
		return false, why
	}
	if d.Failed && d.Moment != monitor.Exec { // whose refusal is told at once
		w.mu.Lock()
		w.mute, w.whyMute = w.mute+1, d.Reason
		w.mu.Unlock()
	}
	why = reasonOf(d)
	if d.Moment == monitor.Effect && w.isGranted(d) {
		return w.goesOn(ctx)
	}
	switch d.Verdict {
	case monitor.Allow:
		return w.goesOn(ctx)
	case monitor.Ask:
		if w.asker == nil {
			return false, why + "; a person would be asked, and there is no terminal"
		}
		if w.asks(ctx, answerTime, "paddock: the monitor asks about "+what+": "+OneLineOf(why, Paragraph), about,
			"paddock: allow it (a), or deny it (d)? ", "denied", "allow", "deny") {
			w.answered(d, "allow")
			return true, ""
		}
		w.answered(d, "deny")
		return false, why + "; a person was asked and did not allow it"
	case monitor.Pause:
		return w.pause(ctx, d, why, about)
	}
	return false, why
}

// goesOn waits while a person decides about something else, and reports whether the sandbox is still there.
func (w *monitoring) goesOn(ctx context.Context) (ok bool, why string) {
	select {
	case w.turn <- struct{}{}:
		<-w.turn
	case <-ctx.Done():
		return false, whyStopped
	}
	why = w.ended()
	return why == "", why
}

// whyStopped is why something is refused that nobody waited for.
const whyStopped = "the monitor had stopped the sandbox"

// asks puts a question to the person, and reports whether the answer is yes.
func (w *monitoring) asks(ctx context.Context, patience time.Duration, why, about, question, otherwise, yes, no string) bool {
	release, err := w.asker.hold(ctx)
	if err != nil {
		return false
	}
	defer release()
	w.mu.Lock()
	w.asked++
	many := w.asked > maxQuestions
	w.mu.Unlock()
	if many {
		return false
	}
	said, _ := w.asker.choose(ctx, patience, why+"\r\npaddock: "+OneLineOf(about, Paragraph), question, otherwise, []string{yes, no})
	return said == yes
}

func (w *monitoring) isGranted(d monitor.Decision) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.granted[grant{d.Step, d.Rule}]
}

// answered records what a person answered.
func (w *monitoring) answered(d monitor.Decision, said string) {
	if said == "allow" && d.Rule != "" && d.Moment == monitor.Effect {
		w.mu.Lock()
		w.granted[grant{d.Step, d.Rule}] = true
		w.mu.Unlock()
	}
	if w.record == nil {
		return
	}
	w.record(answer(string(w.id()), d, said))
}

// answer is the event of what a person answered about a decision.
func answer(sandbox string, d monitor.Decision, said string) audit.Event {
	return audit.Event{Time: time.Now(), Sandbox: sandbox, Kind: audit.Judged, Judgement: &audit.Judgement{
		Moment: "answer", Verdict: string(d.Verdict), Judge: d.Judge, Rule: d.Rule, Score: int(d.Score * 1000), Answered: said,
	}}
}

// reasonOf tells why, and by which rule.
func reasonOf(d monitor.Decision) string {
	if d.Rule == "" {
		return d.Reason
	}
	return d.Reason + " (rule " + d.Rule + ")"
}

func (w *monitoring) id() paddock.ID {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.box == nil {
		return ""
	}
	return w.box.ID()
}

// pause stops the sandbox until a person says how to go on. Without a terminal, it is ended.
func (w *monitoring) pause(ctx context.Context, d monitor.Decision, why, about string) (ok bool, reason string) {
	select {
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
	case <-ctx.Done():
		return false, whyStopped
	}
	if reason := w.ended(); reason != "" {
		return false, reason
	}
	w.mu.Lock()
	gone := w.gone
	w.mu.Unlock()
	if w.asker == nil || gone {
		w.end(why)
		return false, why
	}
	resume, err := w.freeze(ctx, d.Moment)
	if err != nil {
		w.end(why + "; and it could not be paused: " + err.Error())
		return false, why
	}
	if !w.asks(w.ctx, pausedTime, "paddock: the monitor paused the sandbox: "+OneLineOf(why, Paragraph), about,
		"paddock: let it go on (g), or end it (e)? ", "it is ended", "go", "end") {
		w.answered(d, "deny")
		w.end(why)
		return false, why
	}
	if err := resume(); err != nil {
		w.end(why + "; and it could not go on: " + err.Error())
		return false, why
	}
	w.answered(d, "allow")
	return true, ""
}

// freeze stops all processes of a jail, whose pause is a matter of its control group, unless one of them waits for a change:
// the kernel cannot freeze that. The other tiers write a machine to the disk for a pause, which would wait for the very change
// or connection that is held. Where nothing is frozen, what is judged is held, and with it every change of a directory of the
// host and every new connection.
func (w *monitoring) freeze(ctx context.Context, at monitor.Moment) (resume func() error, err error) {
	w.mu.Lock()
	b := w.box
	w.mu.Unlock()
	if b == nil || b.tier != paddock.Jail || at == monitor.Effect || at == monitor.Exec {
		return func() error { return nil }, nil
	}
	asked, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	if err := b.Pause(asked); err != nil {
		return nil, err
	}
	return func() error {
		asked, cancel := context.WithTimeout(w.ctx, Patience)
		defer cancel()
		return b.Resume(asked)
	}, nil
}

// end ends the sandbox.
func (w *monitoring) end(why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped != "" {
		return
	}
	w.stopped = why
	if b := w.box; b != nil && !w.gone {
		w.wg.Go(func() { // whoever told of the reason waits for the answer, and the removal for him
			ctx, cancel := context.WithTimeout(context.Background(), 6*Patience)
			defer cancel()
			_ = b.Remove(ctx) // the removal at the end of the run reports what is left
		})
	}
}

// ended returns why the monitor ended the sandbox, or nothing.
func (w *monitoring) ended() string {
	if w == nil {
		return ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stopped
}

// closing is called when the command has ended. From now on nobody is asked: nothing is left to go on.
func (w *monitoring) closing() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone = true
}

// over is called when the sandbox is gone. It waits for what the monitor still judges: connections tell of their bytes when
// they end.
func (w *monitoring) over(exit paddock.Exit, err error) {
	if w == nil {
		return
	}
	w.wg.Wait()
	code := unknownStatus
	if err == nil {
		code = exit.Code
	}
	w.m.Ended(code)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mute > 0 && w.stopped == "" {
		fmt.Fprintf(w.a.Stderr, "paddock: note: refused %s because of the monitor; the last time: %s\n", times(w.mute), OneLineOf(w.whyMute, Paragraph))
	}
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// unknownStatus is the exit of a command whose end is not known.
const unknownStatus = -1

// close waits for what the monitor still does, when the sandbox is gone.
func (w *monitoring) close() {
	if w == nil {
		return
	}
	w.cancel()
	w.wg.Wait()
}

// failure returns the end of the run by its monitor as an error, if that is what it was.
func (w *monitoring) failure() error {
	why := w.ended()
	if why == "" {
		return nil
	}
	return WithHint(&stoppedError{"the monitor ended the sandbox: " + why}, "`paddock undo` brings back what it changed in directories of yours; docs/use/monitor.md tells about rules and judges")
}
