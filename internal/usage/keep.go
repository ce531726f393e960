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

// due gives the time before which records are to be forgotten. Both clocks have
// to agree on the hour, since a wrong date would forget what is new.
func (o *oldness) due(options Options) (before time.Time, ok bool) {
	wall, mono := options.Clock.Now(), options.Clock.Elapsed()
	took := mono - o.mono
	if options.Keep <= 0 || took < time.Hour {
		return time.Time{}, false
	}
	off := wall.Sub(o.wall) - took
	o.wall, o.mono = wall, mono
	return wall.Add(-options.Keep), -slack < off && off < slack
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
