package box

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/step"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// The commands of a kept sandbox are started by other processes than its keeper, which records their changes. So they
// tell the keeper when a step begins and ends, on a connection of its own. When that ends, so does the step: what the
// command changes later is a step of the background.

// A stepOrder is a step that begins.
type stepOrder struct {
	Kind    string      `json:"kind"`
	Command []step.Text `json:"command,omitempty"`
	Cut     bool        `json:"cut,omitempty"` // the command is longer
}

// Bounds of what is told about a command: a journal keeps less, but a monitor looks at all of it.
const (
	maxStepText  = 100 << 10 // as JSON
	maxStepWords = 4096
)

// stepOrderOf bounds a command to what fits into one packet.
func stepOrderOf(kind string, command []string) *stepOrder {
	o := &stepOrder{Kind: kind}
	left := maxStepText
	for _, word := range command {
		if len(o.Command) == maxStepWords || left <= 0 {
			o.Cut = true
			break
		}
		text := step.Text(word[:min(len(word), left)])
		for size := sizeAsJSON(text); size > left && text != ""; size = sizeAsJSON(text) { // each round leaves at most the share that fits
			text = text[:min(len(text)-1, len(text)*left/size)]
		}
		o.Cut = o.Cut || len(text) < len(word)
		o.Command = append(o.Command, text)
		left -= sizeAsJSON(text) + 1
	}
	return o
}

func sizeAsJSON(t step.Text) int {
	data, err := json.Marshal(t)
	if err != nil {
		return maxStepText + 1
	}
	return len(data)
}

// stepTime bounds the end of a step: what the box has open is looked at, and what was changed is read once more.
const stepTime = 10 * time.Minute

// An endStep ends a step. It returns when the step is in the journal, or when ctx ends: then the step ends without this process.
type endStep func(ctx context.Context, exit *paddock.Exit)

// step implements boxOwner.
func (r remoteOwner) step(ctx context.Context, kind string, command []string) (end endStep, err error) {
	ch, err := r.dial()
	if err != nil {
		return nil, err
	}
	stop := ch.Until(ctx)
	_, files, err := r.exchange(ctx, ch, request{Op: "step", Step: stepOrderOf(kind, command)})
	CloseAll(files)
	if err == nil && !stop() {
		err = fmt.Errorf("%w: %w", ctx.Err(), EndKind(ctx.Err()))
	}
	if err != nil {
		stop()
		_ = ch.Close() // which ends the step
		return nil, err
	}
	return func(ctx context.Context, exit *paddock.Exit) {
		defer func() { _ = ch.Close() }() // which ends a step of which no end was told
		late, cancel := context.WithTimeout(ctx, stepTime)
		defer cancel()
		if r.driver != nil { // the keeper needs nobody who waits for it
			defer context.AfterFunc(r.driver.site.running, cancel)()
		}
		_ = ch.Within(stepTime)
		if r.send(late, ch, request{Op: "ended", Exit: exit}) != nil {
			return // the keeper has ended, and so has the step
		}
		defer ch.Until(late)()
		_, files, _ := ch.Receive()
		CloseAll(files)
	}, nil
}

// follow implements boxOwner.
func (r remoteOwner) follow(f func(context.Context)) bool { return r.driver.site.Go(f) }

// converseStep answers the beginning of a step, waits for its end, and answers that.
func (k *keeper) converseStep(serving, answering context.Context, ch *sys.Channel, q request) error {
	end, err := k.beginStep(answering, ch, q)
	if err != nil {
		return tell(ch, failed(err))
	}
	var e request
	err = tell(ch, response{})
	if err == nil {
		stop := ch.Until(serving)
		data, files, lost := ch.Receive()
		stop()
		CloseAll(files)
		if err = lost; err == nil {
			err = json.Unmarshal(data, &e)
		}
	}
	if err != nil || e.Op != "ended" {
		e.Exit = nil // the caller is gone, and how the command ends is not known
	}
	end(context.WithoutCancel(serving), e.Exit)
	if err != nil {
		return err
	}
	return tell(ch, response{})
}

// beginStep begins a step, unless the caller leaves before.
func (k *keeper) beginStep(ctx context.Context, ch *sys.Channel, q request) (end endStep, err error) {
	if err := k.meant(q); err != nil {
		return nil, err
	}
	if q.Step == nil {
		return nil, fmt.Errorf("a step without its command: %w", paddock.Invalid)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer ch.OnHangUp(cancel)()
	command := make([]string, len(q.Step.Command))
	for i, word := range q.Step.Command {
		command[i] = string(word)
	}
	if k.life.steps == nil {
		return k.life.step(ctx, q.Step.Kind, command) // which says so
	}
	return k.life.judged(ctx, q.Step.Kind, command, q.Step.Cut)
}

// meant returns an error if a request is about an earlier sandbox of the same name.
func (k *keeper) meant(q request) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !q.Made.IsZero() && !q.Made.Equal(k.about.Created) {
		return fmt.Errorf("the sandbox that is meant is gone, and another one has its name: %w", paddock.NotFound)
	}
	return nil
}
