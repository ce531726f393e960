//go:build !unix

package storetest

import "testing"

// A Postgres is not available on this system.
type Postgres struct{}

// StartPostgres skips the test.
func StartPostgres(t *testing.T) *Postgres {
	t.Helper()
	t.Skip("PostgreSQL is started on Unix only")
	return nil
}

// Engine returns the zero Engine.
func (*Postgres) Engine() Engine { return Engine{} }
