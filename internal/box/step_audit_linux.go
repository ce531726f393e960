package box

import (
	"context"
	"fmt"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/step"
)

// vouch records the digest of a step's record in the log of events, so that the journal can be compared with it.
func (s *stepping) vouch(r *step.Record, exit *paddock.Exit) error {
	if s.audit == nil {
		return nil
	}
	e := stepEvent(r)
	if exit != nil {
		e.Step.CPU, e.Step.MemoryPeak = max(0, exit.Usage.CPU), max(0, exit.Usage.MemoryPeak)
	}
	if keeper, ok := s.audit.(audit.Keeper); ok { // else a sandbox could hide it among other events
		ctx, cancel := context.WithTimeout(context.Background(), heldTime)
		defer cancel()
		if err := keeper.Keep(ctx, e); err != nil {
			return fmt.Errorf("the event of step %d: %w", r.Number, err)
		}
		return nil
	}
	s.audit.Record(e)
	return nil
}

// stepEvent returns the event of a recorded step.
func stepEvent(r *step.Record) audit.Event {
	e := audit.Event{Time: r.End, Sandbox: r.Sandbox, Kind: audit.Stepped, Step: &audit.Step{
		Number: r.Number, Record: "sha256:" + r.Digest, Kind: r.Kind, Exit: r.Exit, Changed: len(r.Changes), Left: len(r.Left),
		Incomplete: r.Incomplete, Duration: max(0, r.End.Sub(r.Begin)),
	}}
	for i := range r.Changes {
		if !r.Changes[i].After.Exists() {
			e.Step.Removed++
		}
	}
	for _, word := range r.Command {
		e.Args = append(e.Args, string(word))
	}
	return e
}
