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

// slice is how many parts of what is old are done between two samples: a first time,
// with a year of records, would else hold them up for as long as it takes.
const slice = 5

// age forgets and folds a slice of what is old at a time, and tells whether that was
// all. What could not be done is tried an hour later.
func (m *Meter) age(ctx context.Context, now time.Time) (done bool) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	left := slice
	if m.o.Keep > 0 {
		before := now.Add(-m.o.Keep)
		n, err := some(&left, func() (int, error) { return m.o.Store.DropRecords(ctx, before) })
		if n > 0 {
			m.o.Log.Info("old usage is forgotten", "records", n, "before", before)
		}
		if err != nil {
			m.o.Log.Warn("old usage could not be forgotten; it is tried again", "err", err)
		}
	}
	if m.o.Hours > 0 {
		before := now.Add(-m.o.Hours)
		n, err := some(&left, func() (int, error) { return m.o.Store.FoldRecords(ctx, before) })
		if n > 0 {
			m.o.Log.Info("old usage is kept by days", "records", n, "before", before)
		}
		if err != nil {
			m.o.Log.Warn("old usage could not be kept by days; it is tried again", "err", err)
		}
	}
	return left > 0
}

// some does parts of a work until nothing is left of it, it fails, or left is used up.
func some(left *int, part func() (int, error)) (all int, err error) {
	for ; *left > 0; *left-- {
		n, err := part()
		all += n
		if n == 0 || err != nil {
			return all, err
		}
	}
	return all, nil
}
