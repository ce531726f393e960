//go:build !unix

package storetest

import "testing"

// A Postgres is a server, which is not started here.
type Postgres struct{}

// StartPostgres skips the test.
func StartPostgres(t *testing.T) *Postgres {
	t.Helper()
	t.Skip("PostgreSQL is started on Unix only")
	return nil
}

// Engine is none.
func (*Postgres) Engine() Engine { return Engine{} }
