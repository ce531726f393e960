package e2b

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/wrap/lease"
)

// lost gives the error of a sandbox that could not be asked. One that is gone is
// forgotten, and 404.
func (b *box) lost(ctx context.Context, err error) error {
	if !errors.Is(err, paddock.NotFound) {
		return err
	}
	if failed := b.end(ctx); failed != nil {
		b.h.log.Warn("e2b: a sandbox that is gone is not forgotten", "id", b.id, "error", failed)
	}
	return noSandbox(string(b.id))
}

// kill removes a sandbox, also one that is paused: DELETE /sandboxes/{id}.
// Streams are cut first, and nothing answers from then on.
func (c *call) kill() error {
	b, _, err := c.box()
	if err != nil {
		return err
	}
	if err := b.take(c.ctx); err != nil {
		return err
	}
	defer b.leave()
	rec, ok := b.record() // which may be another than before its turn
	if !ok {
		return noSandbox(string(rec.ID))
	}
	b.mu.Lock()
	b.gone = true
	b.mu.Unlock()
	b.cut()
	err = c.removes(rec)
	gone := errors.Is(err, paddock.NotFound)
	if err != nil && !gone {
		b.mu.Lock()
		b.gone = false
		b.mu.Unlock()
		return err
	}
	if err := b.end(context.WithoutCancel(c.ctx)); err != nil {
		return err
	}
	if gone {
		return noSandbox(string(rec.ID))
	}
	return c.nothing()
}

// removes makes an end of what there is of a sandbox.
func (c *call) removes(rec record) error {
	if rec.Cold != "" {
		return errors.Join(c.caller.Driver.RemoveSnapshot(context.WithoutCancel(c.ctx), rec.Cold), left(c.ctx, c.caller.Driver, rec))
	}
	sb, err := c.caller.Driver.Open(c.ctx, rec.name())
	if err != nil {
		return err
	}
	return sb.Remove(context.WithoutCancel(c.ctx))
}

// left removes the sandbox of one that was paused with its files alone, where that went
// wrong after it was written down.
func left(ctx context.Context, d paddock.Driver, rec record) error {
	sb, err := d.Open(ctx, rec.name())
	if err == nil {
		err = sb.Remove(context.WithoutCancel(ctx))
	}
	if errors.Is(err, paddock.NotFound) {
		return nil
	}
	return err
}

// ends gives the sandbox another end, so long from now. The turn is held.
func (c *call) ends(b *box, life time.Duration) error {
	rec, _ := b.record()
	c.h.lasts(&rec, life) // before the terms: what they end is known to end then
	if err := c.caller.Driver.Change(c.ctx, rec.name(), rec.terms()); err != nil {
		return b.lost(c.ctx, err)
	}
	return b.change(c.ctx, func(r *record) { r.end, r.theirs, r.Ends = rec.end, false, rec.Ends })
}

// extends is ends where that is later than it was.
func (c *call) extends(b *box, rec record, life time.Duration) error {
	end := rec.end
	if rec.theirs {
		l, err := c.caller.Driver.Terms(c.ctx, rec.name())
		if err != nil {
			return b.lost(c.ctx, err)
		}
		end = time.Now().Add(l.Ends.Sub(c.h.now()))
	}
	if end.After(time.Now().Add(life)) {
		return nil
	}
	return c.ends(b, life)
}

// with does something in the turn of the sandbox that the path names.
func (c *call) with(f func(b *box, rec record) error) error {
	b, _, err := c.box()
	if err != nil {
		return err
	}
	if err := b.take(c.ctx); err != nil {
		return err
	}
	defer b.leave()
	rec, ok := b.record()
	if !ok {
		return noSandbox(string(b.id))
	}
	return f(b, rec)
}

// timeout sets the end, sooner or later than it was: POST …/timeout.
func (c *call) timeout() error {
	var q struct {
		Timeout *int64 `json:"timeout"`
	}
	if err := c.body(&q, false); err != nil {
		return err
	}
	if q.Timeout == nil || *q.Timeout < 0 || *q.Timeout > maxTimeout {
		return invalid("timeout: a number of seconds from 0 to %d", maxTimeout)
	}
	return c.with(func(b *box, rec record) error {
		if rec.Paused {
			return noSandbox(string(b.id)) // as E2B has it: what is paused has no end
		}
		if err := c.ends(b, time.Duration(max(*q.Timeout, 1))*time.Second); err != nil {
			return err
		}
		return c.nothing()
	})
}

// refresh moves the end away, never nearer: POST …/refreshes.
func (c *call) refresh() error {
	var q struct {
		Duration int64 `json:"duration"`
	}
	if err := c.body(&q, true); err != nil {
		return err
	}
	if q.Duration < 0 || q.Duration > 3600 {
		return invalid("duration: a number of seconds from 0 to 3600")
	}
	return c.with(func(b *box, rec record) error {
		if rec.Paused {
			return noSandbox(string(b.id))
		}
		if err := c.extends(b, rec, time.Duration(max(q.Duration, oldTimeout))*time.Second); err != nil {
			return err
		}
		return c.nothing()
	})
}

// pause stops a sandbox, with its memory or with its files alone: POST …/pause.
func (c *call) pause() error {
	var q struct {
		Memory *bool `json:"memory"`
	}
	if err := c.body(&q, true); err != nil {
		return err
	}
	return c.with(func(b *box, rec record) error {
		is, err := c.paused(b, rec)
		if err != nil {
			return err
		}
		if is {
			return refuse(409, paddock.Conflict, "Sandbox \"%s\" is already paused", rec.ID)
		}
		if q.Memory != nil && !*q.Memory {
			return c.cool(b, rec)
		}
		sb, err := c.caller.Driver.Open(c.ctx, rec.name())
		if err != nil {
			return b.lost(c.ctx, err)
		}
		if err := sb.Pause(c.ctx); err != nil {
			if errors.Is(err, paddock.Unsupported) {
				return cannot("a sandbox of the tier %s cannot be paused here: %v", rec.Tier, err)
			}
			return err
		}
		b.cut()
		// What a person paused stays until somebody wants it again.
		if err := c.caller.Driver.Change(c.ctx, rec.name(), lease.Terms{}); err != nil {
			return err
		}
		if err := b.change(c.ctx, func(r *record) { r.Paused = true; r.endless() }); err != nil {
			return err
		}
		b.note("the sandbox was paused")
		return c.nothing()
	})
}

// cool keeps a sandbox's files, and lets go of all else: what goes on from them later
// starts anew. The turn is held.
func (c *call) cool(b *box, rec record) error {
	b.cut() // what comes in from now on may not be kept
	id, err := c.keepAs(b, rec, false)
	if err != nil {
		return err
	}
	ctx := context.WithoutCancel(c.ctx)
	was, err := c.caller.Driver.Open(ctx, rec.name())
	if err == nil {
		err = b.change(ctx, func(r *record) { r.Paused, r.Cold = true, id; r.endless() })
	}
	if err != nil {
		return errors.Join(err, c.h.discard(ctx, c.caller.Driver, rec.Tenant, id))
	}
	c.h.settle(ctx, rec.Tenant, id)
	b.cut()
	b.note("the sandbox was paused without its memory")
	if err := was.Remove(ctx); err != nil && !errors.Is(err, paddock.NotFound) {
		c.h.log.Warn("e2b: a sandbox that was paused without its memory is left, until somebody wants it or removes it", "id", rec.ID, "error", err)
	}
	return c.nothing()
}

// warm makes a sandbox anew that was paused with its files alone. The turn is held.
func (b *box) warm(ctx context.Context, d lease.Lessor, life time.Duration) error {
	rec, _ := b.record()
	b.h.lasts(&rec, life)
	if err := left(ctx, d, rec); err != nil {
		return err
	}
	p, err := policy(rec.Network, rec.Internet)
	if err != nil {
		return err
	}
	spec := paddock.Spec{Tier: rec.Tier, Limits: rec.Limits, Policy: paddock.Policy{Network: p}, Labels: labels(rec.Metadata, rec.Template)}
	spec.Labels["e2b.sandbox"] = string(rec.ID)
	root := rooted{root: paddock.Root{Kind: paddock.RootSnapshot, Snapshot: rec.Cold}, sudo: rec.Sudo}
	spec.Root = root.root
	sb, err := createWith(ctx, d, &spec, root, rec.terms())
	if err != nil {
		return err
	}
	cold := rec.Cold
	if err := b.h.loosen(context.WithoutCancel(ctx), rec.Tenant, cold); err != nil {
		return errors.Join(err, sb.Remove(context.WithoutCancel(ctx)))
	}
	err = b.change(context.WithoutCancel(ctx), func(r *record) {
		r.Box, r.Paused, r.Cold = sb.ID(), false, ""
		r.end, r.theirs, r.Ends = rec.end, false, rec.Ends
	})
	if err != nil {
		return errors.Join(err, sb.Remove(context.WithoutCancel(ctx)))
	}
	if err := b.h.discard(context.WithoutCancel(ctx), d, rec.Tenant, cold); err != nil {
		b.h.log.Warn("e2b: a snapshot of a sandbox that goes on is left", "id", rec.ID, "snapshot", cold, "error", err)
	}
	b.note("the sandbox was started anew from its files")
	_, err = b.open(sb)
	return err
}

// wake resumes a sandbox that is paused, and gives it an end. The turn is held.
func (b *box) wake(ctx context.Context, d lease.Lessor, life time.Duration) error {
	rec, _ := b.record()
	if rec.Cold != "" {
		return b.warm(ctx, d, life)
	}
	b.h.lasts(&rec, life)
	sb, err := resumed(ctx, d, rec)
	if errors.Is(err, paddock.Conflict) { // its terms paused it meanwhile, a moment after its end
		sb, err = resumed(ctx, d, rec)
	}
	if err != nil {
		return b.lost(ctx, err)
	}
	b.cut()
	if err := b.change(ctx, func(r *record) {
		r.Paused, r.end, r.theirs, r.Ends = false, rec.end, false, rec.Ends
	}); err != nil {
		return err
	}
	b.note("the sandbox was resumed")
	_, err = b.open(sb)
	return err
}

// resumed gives a sandbox its terms, and resumes it, whatever paused it.
func resumed(ctx context.Context, d lease.Lessor, rec record) (paddock.Sandbox, error) {
	now, err := d.Terms(ctx, rec.name())
	if err == nil && now.Paused == lease.ByDeadline {
		err = d.Extend(ctx, rec.name(), rec.life) // which resumes it
	}
	if err == nil {
		err = d.Change(ctx, rec.name(), rec.terms())
	}
	var sb paddock.Sandbox
	if err == nil {
		sb, err = d.Open(ctx, rec.name())
	}
	if err == nil {
		err = sb.Resume(ctx) // which is fine where it runs
	}
	return sb, err
}

// connectOld is POST /sandboxes/{id}/connect of older clients.
func (c *call) connectOld() error { return c.connects(0) }

// connect is that of newer ones, which may leave the timeout out.
func (c *call) connect() error { return c.connects(newTimeout) }

func (c *call) connects(usual int64) error {
	q := struct {
		Timeout *int64 `json:"timeout"`
		Memory  *bool  `json:"memory"`
	}{Timeout: &usual}
	if err := c.body(&q, usual > 0); err != nil {
		return err
	}
	if q.Timeout == nil {
		q.Timeout = &usual
	}
	life, err := timeout(*q.Timeout)
	if err != nil {
		return err
	}
	return c.with(func(b *box, rec record) error {
		is, err := c.paused(b, rec)
		if err != nil {
			return err
		}
		code := http.StatusCreated
		if is && rec.Cold == "" && q.Memory != nil && !*q.Memory {
			return cannot("memory false: a sandbox that was paused with its memory goes on with it; a pause with memory false keeps files alone")
		}
		if is {
			err = b.wake(c.ctx, c.caller.Driver, life)
		} else {
			code = http.StatusOK
			err = c.extends(b, rec, life)
		}
		if err != nil {
			return err
		}
		return c.json(code, b.answer())
	})
}

// paused tells how the sandbox is, whoever paused it.
func (c *call) paused(b *box, rec record) (bool, error) {
	if rec.Cold != "" {
		return true, nil
	}
	sb, err := c.caller.Driver.Open(c.ctx, rec.name())
	var st paddock.Status
	if err == nil {
		st, err = sb.Status(c.ctx)
	}
	if err != nil {
		return false, b.lost(c.ctx, err)
	}
	name, ok := state(rec, st)
	if !ok {
		return false, noSandbox(string(rec.ID))
	}
	return name == paused, nil
}

// resume is what connect was before: POST …/resume.
func (c *call) resume() error {
	usual := int64(oldTimeout)
	q := struct {
		Timeout *int64 `json:"timeout"`
	}{}
	if err := c.body(&q, true); err != nil {
		return err
	}
	if q.Timeout != nil {
		usual = *q.Timeout
	}
	life, err := timeout(usual)
	if err != nil {
		return err
	}
	return c.with(func(b *box, rec record) error {
		is, err := c.paused(b, rec)
		if err != nil {
			return err
		}
		if !is {
			return refuse(409, paddock.Conflict, "Sandbox \"%s\" is already running", rec.ID)
		}
		if err := b.wake(c.ctx, c.caller.Driver, life); err != nil {
			return err
		}
		return c.json(http.StatusCreated, b.answer())
	})
}

// setNetwork replaces what the sandbox may reach: PUT …/network. What is left out
// is cleared.
func (c *call) setNetwork() error {
	var q struct {
		network
		AllowInternetAccess *bool `json:"allow_internet_access"`
	}
	if err := c.body(&q, true); err != nil {
		return err
	}
	p, err := policy(&q.network, q.AllowInternetAccess)
	if err != nil {
		return err
	}
	all := paddock.Policy{Network: p}
	if c.caller.Check != nil {
		if err := c.caller.Check(paddock.Spec{Policy: all}); err != nil {
			return err
		}
	}
	return c.with(func(b *box, rec record) error {
		if rec.Paused {
			return refuse(409, paddock.Conflict, "Sandbox \"%s\" is paused", rec.ID)
		}
		sb, err := c.caller.Driver.Open(c.ctx, rec.name())
		if err != nil {
			return b.lost(c.ctx, err)
		}
		if err := sb.Update(c.ctx, paddock.Update{Policy: &all}); err != nil {
			return err
		}
		n := q.network
		if rec.Network != nil { // these are of the creation alone
			n.AllowPublicTraffic, n.MaskRequestHost, n.HTTPSPorts = rec.Network.AllowPublicTraffic, rec.Network.MaskRequestHost, rec.Network.HTTPSPorts
		}
		if err := b.change(c.ctx, func(r *record) { r.Network, r.Internet = &n, q.AllowInternetAccess }); err != nil {
			return err
		}
		return c.nothing()
	})
}
