package step

import (
	"context"
	"fmt"

	"github.com/paddock-sandbox/paddock"
)

// Bounds of what one undo, or one diff, takes together. The sandbox chooses how large its records are; one alone is
// bounded by Options.Changes.
const (
	togetherChanges = 1_000_000
	togetherBytes   = 512 << 20 // of records on the disk
)

// A load is how much records are together.
type load struct {
	steps, changes int
	bytes          int64
}

// add adds a record, of which the head is enough. One record is always possible.
func (l *load) add(j *Journal, rec *Record) error {
	l.steps++
	l.changes += rec.Changed + rec.Missed
	if i, err := j.root.Lstat(recordPath(rec.Number)); err == nil {
		l.bytes += i.Size()
	}
	most := j.opts.together
	if l.steps > 1 && (l.changes > most.changes || l.bytes > most.bytes) {
		return fmt.Errorf("these steps changed too many paths to be taken together, more than %d or %d MiB of records: take fewer steps at once: %w",
			most.changes, most.bytes>>20, paddock.Exhausted)
	}
	return nil
}

// Head is Read without Changes and Left, and without what a lean [Filter] leaves out.
func (j *Journal) Head(ctx context.Context, number int64) (*Record, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	rec, err := j.read(number, false)
	if err == nil {
		rec.lean()
	}
	return rec, err
}

// lean drops what may be large in the head of a record.
func (r *Record) lean() { r.Refused, r.Hosts, r.Secrets = nil, nil, nil }
