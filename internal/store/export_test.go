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

// Spec gives the stored spec of a sandbox.
func (s *Store) Spec(ctx context.Context, token string) (spec string, err error) {
	err = s.read(ctx, func(q query) error { return q.row("SELECT spec FROM sandboxes WHERE token = ?", token).Scan(&spec) })
	return spec, err
}

// Synchronous tells how long a transaction of SQLite waits for the disk: 2 until
// it is there, 1 not at all.
func (s *Store) Synchronous(ctx context.Context, safe bool) (mode int, err error) {
	err = s.change(ctx, safe, func(q query) error { return q.row("PRAGMA synchronous").Scan(&mode) })
	return mode, err
}
