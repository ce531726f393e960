package daytona

import (
	"errors"
	"net/http"
	"strconv"
	"syscall"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect"
)

// number reads a number of a query or a path.
func number(name, text string, usual, least, most int) (int, error) {
	if text == "" {
		return usual, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, invalid("%s: %q is not a number from %d to %d", name, dialect.Printable(text), least, most)
	}
	return n, nil
}

// remove handles DELETE /api/sandbox/{id}.
func (c *call) remove() error {
	b, rec, err := c.box()
	if err != nil {
		return err
	}
	sb, err := c.caller.Driver.Open(c.ctx, rec.ID)
	if err == nil {
		err = sb.Remove(c.ctx)
	}
	if err != nil && !errors.Is(err, paddock.NotFound) {
		return err
	}
	c.h.forget(b, rec)
	a := c.answerOf(rec, "")
	a.State, a.DesiredState = "destroyed", "destroyed"
	return c.json(http.StatusOK, a)
}

// start handles POST …/start: a stopped or paused sandbox goes on.
func (c *call) start() error {
	rec, err := c.change(func(rec *record) error {
		sb, err := c.caller.Driver.Open(c.ctx, rec.ID)
		if err != nil {
			return err
		}
		if err := sb.Resume(c.ctx); err != nil {
			return err
		}
		rec.Stopped, rec.Paused = false, false
		return nil
	})
	return c.told(rec, err)
}

// stop handles POST …/stop: the processes end, and the files stay.
func (c *call) stop() error {
	b, _, err := c.box()
	if err != nil {
		return err
	}
	rec, err := c.change(func(rec *record) error {
		if rec.Stopped {
			return nil
		}
		sb, err := c.caller.Driver.Open(c.ctx, rec.ID)
		if err != nil {
			return err
		}
		if rec.Paused {
			if err := sb.Resume(c.ctx); err != nil {
				return err
			}
			rec.Paused = false
		}
		if err := b.leave(); err != nil {
			return err
		}
		if err := c.endProcesses(sb); err != nil {
			return err
		}
		if err := sb.Pause(c.ctx); err != nil {
			return c.cannotPause(*rec, err)
		}
		rec.Stopped = true
		return nil
	})
	return c.told(rec, err)
}

// endProcesses kills every command of a sandbox with its process group.
func (c *call) endProcesses(sb paddock.Sandbox) error {
	list, err := sb.Processes(c.ctx)
	if err != nil {
		return err
	}
	for _, i := range list {
		if i.Exit != nil {
			continue
		}
		p, err := sb.Attach(c.ctx, i.PID, paddock.Output{Detached: true})
		if errors.Is(err, paddock.NotFound) {
			continue
		}
		if err != nil {
			return err
		}
		err = p.Signal(c.ctx, syscall.SIGKILL)
		p.Release()
		if err != nil && !errors.Is(err, paddock.NotFound) {
			return err
		}
	}
	return nil
}

func (c *call) cannotPause(rec record, err error) error {
	if errors.Is(err, paddock.Unsupported) {
		return cannot("sandboxes of the tier %s cannot be stopped here: %v", rec.Tier, err)
	}
	return err
}

// pause handles POST …/pause: memory and processes stay.
func (c *call) pause() error {
	rec, err := c.change(func(rec *record) error {
		if rec.Stopped {
			return refuse(http.StatusConflict, paddock.Conflict, "Sandbox %s is stopped", rec.ID)
		}
		sb, err := c.caller.Driver.Open(c.ctx, rec.ID)
		if err != nil {
			return err
		}
		if err := sb.Pause(c.ctx); err != nil {
			return c.cannotPause(*rec, err)
		}
		rec.Paused = true
		return nil
	})
	return c.told(rec, err)
}

// setLabels handles PUT …/labels.
func (c *call) setLabels() error {
	var q struct {
		Labels map[string]string `json:"labels"`
	}
	if err := c.body(&q, false); err != nil {
		return err
	}
	if err := checkTexts(q.Labels, nil); err != nil {
		return err
	}
	rec, err := c.change(func(rec *record) error {
		rec.Labels = q.Labels
		return nil
	})
	if err != nil {
		return err
	}
	if rec.Labels == nil {
		rec.Labels = map[string]string{}
	}
	return c.json(http.StatusOK, map[string]any{"labels": rec.Labels})
}

// interval sets one of the intervals, which the path has.
func (c *call) interval(name string, least int, set func(*record, int)) error {
	n, err := number(name, c.PathValue("n"), 0, least, maxMinutes)
	if err != nil {
		return err
	}
	rec, err := c.change(func(rec *record) error {
		set(rec, n)
		return c.caller.Driver.Change(c.ctx, rec.ID, rec.terms())
	})
	return c.told(rec, err)
}

func (c *call) autoStop() error {
	return c.interval("autostop", 0, func(r *record, n int) { r.AutoStop = n })
}

func (c *call) autoPause() error {
	return c.interval("autopause", 0, func(r *record, n int) { r.AutoPause = n })
}

func (c *call) autoArchive() error {
	return c.interval("autoarchive", 0, func(r *record, n int) { r.AutoArchive = n })
}

func (c *call) autoDelete() error {
	return c.interval("autodelete", -1, func(r *record, n int) { r.AutoDelete = n })
}

func (c *call) ttl() error { return c.interval("ttl", 0, func(r *record, n int) { r.TTL = n }) }

// public handles POST …/public/{is}.
func (c *call) public() error {
	is, err := strconv.ParseBool(c.PathValue("is"))
	if err != nil {
		return invalid("public is true or false")
	}
	rec, err := c.change(func(rec *record) error {
		if err := c.share(*rec, is); err != nil {
			return err
		}
		rec.Public = is
		return nil
	})
	return c.told(rec, err)
}

// activity handles POST …/last-activity: it counts as use.
func (c *call) activity() error {
	_, rec, err := c.opened(false)
	if err != nil {
		return err
	}
	if err := c.caller.Driver.Change(c.ctx, rec.ID, rec.terms()); err != nil {
		return err
	}
	return c.nothing(http.StatusOK)
}

// setNetwork handles POST …/network-settings, live.
func (c *call) setNetwork() error {
	var q struct {
		BlockAll *bool   `json:"networkBlockAll"`
		Ranges   *string `json:"networkAllowList"`
		Domains  *string `json:"domainAllowList"`
	}
	if err := c.body(&q, false); err != nil {
		return err
	}
	rec, err := c.change(func(rec *record) error {
		n := rec.Network
		if q.BlockAll != nil {
			n.BlockAll = *q.BlockAll
		}
		if q.Ranges != nil {
			n.Ranges = *q.Ranges
		}
		if q.Domains != nil {
			n.Domains = *q.Domains
		}
		p, err := n.policy()
		if err != nil {
			return err
		}
		sb, err := c.caller.Driver.Open(c.ctx, rec.ID)
		if err != nil {
			return err
		}
		if err := sb.Update(c.ctx, paddock.Update{Policy: &paddock.Policy{Network: p}}); err != nil {
			return err
		}
		rec.Network = n
		return nil
	})
	return c.told(rec, err)
}

// resize handles POST …/resize, live.
func (c *call) resize() error {
	var q struct {
		CPU    float64 `json:"cpu"`
		Memory float64 `json:"memory"`
		Disk   float64 `json:"disk"`
	}
	if err := c.body(&q, false); err != nil {
		return err
	}
	l, err := limits(q.CPU, q.Memory, q.Disk)
	if err != nil {
		return err
	}
	rec, err := c.change(func(rec *record) error {
		sb, err := c.caller.Driver.Open(c.ctx, rec.ID)
		if err != nil {
			return err
		}
		if err := sb.Update(c.ctx, paddock.Update{Limits: &l}); err != nil {
			return err
		}
		st, err := sb.Status(c.ctx)
		rec.Limits = st.Limits
		return err
	})
	return c.told(rec, err)
}

func (c *call) toolboxURL() error {
	return c.json(http.StatusOK, map[string]string{"url": c.toolboxBase()})
}
