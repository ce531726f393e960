package store

import "context"

// Steps gives the steps of the schema.
func Steps() []string { return migrations() }

// Migrate brings a store to a schema of a test's.
func (s *Store) Migrate(ctx context.Context, steps []string) error { return s.migrate(ctx, steps) }

// Exec changes what no call changes.
func (s *Store) Exec(ctx context.Context, statement string) error {
	return s.write(ctx, func(q query) error {
		_, err := q.exec(statement)
		return err
	})
}
