package usage

import (
	"context"
	"time"
)

// An oldness tells when to look for what is to be forgotten: an hour after the
// last time.
type oldness struct {
	wall time.Time
	mono time.Duration
}

// due gives the time by which records are old, once in an hour. Both clocks have to
// agree on the hour, since a wrong date would forget what is new.
func (o *oldness) due(clock Clock) (now time.Time, ok bool) {
	wall, mono := clock.Now(), clock.Elapsed()
	took := mono - o.mono
	if took < time.Hour {
		return time.Time{}, false
	}
	off := wall.Sub(o.wall) - took
	o.wall, o.mono = wall, mono
	return wall, -slack < off && off < slack
}

// age forgets and folds what is old at a time.
func (m *Meter) age(ctx context.Context, now time.Time) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if m.o.Keep > 0 {
		m.drop(ctx, now.Add(-m.o.Keep))
	}
	if m.o.Hours > 0 {
		m.fold(ctx, now.Add(-m.o.Hours))
	}
}

// drop forgets what ended before a time.
func (m *Meter) drop(ctx context.Context, before time.Time) {
	n, err := m.o.Store.DropRecords(ctx, before)
	switch {
	case err != nil:
		m.o.Log.Warn("old usage could not be forgotten; it is tried again", "err", err)
	case n > 0:
		m.o.Log.Info("old usage is forgotten", "records", n, "before", before)
	}
}

// fold makes days of the hours before a time. What is not done in time is done an
// hour later.
func (m *Meter) fold(ctx context.Context, before time.Time) {
	n := 0
	for {
		some, err := m.o.Store.FoldRecords(ctx, before)
		n += some
		switch {
		case err != nil && ctx.Err() == nil:
			m.o.Log.Warn("old usage could not be kept by days; it is tried again", "err", err)
			return
		case err == nil && some > 0:
			continue
		case n > 0:
			m.o.Log.Info("old usage is kept by days", "records", n, "before", before)
		}
		return
	}
}
