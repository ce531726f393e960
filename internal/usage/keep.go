package usage

import (
	"context"
	"time"
)

// An oldness determines when to look for old records: hourly.
type oldness struct {
	wall time.Time
	mono time.Duration
}

// due returns the present time once an hour. Both clocks must agree that an hour has
// passed, because a wrong date would delete new records.
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

// slice bounds the work on old records between two samples. Otherwise the first run, with a
// year of records, would delay samples.
const slice = 5

// age deletes and merges a part of the old records, and reports whether it is done. After
// an error it tries again an hour later.
func (m *Meter) age(ctx context.Context, now time.Time) (done bool) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	left := slice
	if m.o.Keep > 0 {
		before := now.Add(-m.o.Keep)
		n, err := some(&left, func() (int, error) { return m.o.Store.DropRecords(ctx, before) })
		if n > 0 {
			m.o.Log.Info("old usage was deleted", "records", n, "before", before)
		}
		if err != nil {
			m.o.Log.Warn("old usage could not be deleted; retrying", "err", err)
		}
	}
	if m.o.Hours > 0 {
		before := now.Add(-m.o.Hours)
		n, err := some(&left, func() (int, error) { return m.o.Store.FoldRecords(ctx, before) })
		if n > 0 {
			m.o.Log.Info("old usage was summed up by days", "records", n, "before", before)
		}
		if err != nil {
			m.o.Log.Warn("old usage could not be summed up by days; retrying", "err", err)
		}
	}
	return left > 0
}

// some runs parts of a work until nothing is left, an error, or left parts were run.
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
