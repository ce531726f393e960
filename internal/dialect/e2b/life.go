package e2b

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
)

// lost returns the error for a sandbox that could not be reached. If it is gone, its record
// is deleted and the answer is 404.
func (b *box) lost(ctx context.Context, err error) error {
	if !errors.Is(err, paddock.NotFound) {
		return err
	}
	if failed := b.end(ctx); failed != nil {
		b.h.log.Warn("e2b: the record of a removed sandbox was not deleted", "id", b.id, "error", failed)
	}
	return noSandbox(string(b.id))
}

// kill handles DELETE /sandboxes/{id}. It removes a sandbox, even a paused one. Streams are
// cut first, and the sandbox answers nothing from then on.
func (c *call) kill() error {
	b, _, err := c.box()
	if err != nil {
		return err
	}
	if err := b.take(c.ctx); err != nil {
		return err
	}
	defer b.leave()
	rec, ok := b.record() // it may have changed before this turn
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

// removes deletes the sandbox or its snapshot.
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

// left removes the sandbox of a record that was paused with only its files, if the removal
// failed after the record was stored.
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

// ends sets the end of the sandbox. The caller holds the turn.
func (c *call) ends(b *box, life time.Duration) error {
	rec, _ := b.record()
	c.h.lasts(&rec, life) // before the terms, so that an end by them is recognised
	if err := c.caller.Driver.Change(c.ctx, rec.name(), rec.terms()); err != nil {
		return b.lost(c.ctx, err)
	}
	return b.change(c.ctx, func(r *record) { r.end, r.theirs, r.Ends = rec.end, false, rec.Ends })
}

// extends calls ends if the new end is later.
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

// with calls f with the sandbox that the path names, holding its turn.
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

// timeout handles POST …/timeout. It sets the end, sooner or later.
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
			return noSandbox(string(b.id)) // as E2B: a paused sandbox has no end
		}
		if err := c.ends(b, time.Duration(max(*q.Timeout, 1))*time.Second); err != nil {
			return err
		}
		return c.nothing()
	})
}

// refresh handles POST …/refreshes. It moves the end later, never sooner.
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

// pause handles POST …/pause. It stops a sandbox and keeps its memory, or only its files.
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
		// A sandbox paused by request stays until somebody resumes it.
		if err := c.caller.Driver.Change(c.ctx, rec.name(), lifetime.Terms{}); err != nil {
			return err
		}
		if err := b.change(c.ctx, func(r *record) { r.Paused = true; r.endless() }); err != nil {
			return err
		}
		b.note("the sandbox was paused")
		return c.nothing()
	})
}

// cool keeps only the files of a sandbox and removes it. When it resumes, its processes
// start again. The caller holds the turn.
func (c *call) cool(b *box, rec record) error {
	b.cut() // writes from now on may be lost
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
		c.h.log.Warn("e2b: a sandbox paused without its memory was not removed, its resume or removal will do it", "id", rec.ID, "error", err)
	}
	return c.nothing()
}

// warm makes a new sandbox from the files of one that cool paused. The caller holds the
// turn.
func (b *box) warm(ctx context.Context, d lifetime.Lessor, life time.Duration) error {
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
		b.h.log.Warn("e2b: the snapshot of a resumed sandbox was not removed", "id", rec.ID, "snapshot", cold, "error", err)
	}
	b.note("the sandbox was started anew from its files")
	_, err = b.open(sb)
	return err
}

// wake resumes a paused sandbox and sets its end. The caller holds the turn.
func (b *box) wake(ctx context.Context, d lifetime.Lessor, life time.Duration) error {
	rec, _ := b.record()
	if rec.Cold != "" {
		return b.warm(ctx, d, life)
	}
	b.h.lasts(&rec, life)
	sb, err := resumed(ctx, d, rec)
	if errors.Is(err, paddock.Conflict) { // its terms paused it meanwhile, shortly after its end
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

// resumed sets the terms of a sandbox and resumes it, whatever paused it.
func resumed(ctx context.Context, d lifetime.Lessor, rec record) (paddock.Sandbox, error) {
	now, err := d.Terms(ctx, rec.name())
	if err == nil && now.Paused == lifetime.ByDeadline {
		err = d.Extend(ctx, rec.name(), rec.life) // this resumes it
	}
	if err == nil {
		err = d.Change(ctx, rec.name(), rec.terms())
	}
	var sb paddock.Sandbox
	if err == nil {
		sb, err = d.Open(ctx, rec.name())
	}
	if err == nil {
		err = sb.Resume(ctx) // does nothing if it runs
	}
	return sb, err
}

// connectOld handles POST /sandboxes/{id}/connect of older clients.
func (c *call) connectOld() error { return c.connects(0) }

// connect handles the same request of newer clients, which may leave the timeout out.
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

// paused reports whether the sandbox is paused, by request or by its terms.
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

// resume handles POST …/resume, the predecessor of connect.
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

// setNetwork handles PUT …/network. It replaces the network rules; missing fields are
// cleared.
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
		if rec.Network != nil { // these can be set only at creation
			n.AllowPublicTraffic, n.MaskRequestHost, n.HTTPSPorts = rec.Network.AllowPublicTraffic, rec.Network.MaskRequestHost, rec.Network.HTTPSPorts
		}
		if err := b.change(c.ctx, func(r *record) { r.Network, r.Internet = &n, q.AllowInternetAccess }); err != nil {
			return err
		}
		return c.nothing()
	})
}
