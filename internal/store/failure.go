package store

import (
	"context"
	"errors"

	"github.com/paddock-sandbox/paddock"
)

// told adds a kind to an error of the database and counts it. An error with a kind comes
// from the arguments of the call.
func (s *Store) told(err error) error {
	var kind paddock.Kind
	if err != nil && !errors.As(err, &kind) && !errors.Is(err, context.Canceled) {
		err = s.engine.told(err)
		switch paddock.KindOf(err) {
		case paddock.Exists, paddock.Conflict, paddock.NotFound, paddock.Invalid: // from constraints of the schema
		default:
			s.failed.Add(1)
		}
		return err
	}
	return s.engine.told(err)
}

// Failures returns the number of calls that failed because the database was gone, full, too slow or broken, and not
// because of their arguments.
func (s *Store) Failures() uint64 { return s.failed.Load() }
