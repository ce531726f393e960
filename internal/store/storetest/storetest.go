// Package storetest runs tests over every database that a store supports.
package storetest

import (
	"path/filepath"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/store"
)

// An Engine is a database for tests.
type Engine struct {
	Name string
	// Place returns the place of a new, empty store.
	Place func(t testing.TB) string
}

// Each runs a test for every engine. It skips an engine that is not installed, with a
// message.
func Each(t *testing.T, f func(t *testing.T, e Engine)) {
	t.Helper()
	t.Run("SQLite", func(t *testing.T) { f(t, SQLite()) })
	t.Run("PostgreSQL", func(t *testing.T) { f(t, StartPostgres(t).Engine()) })
}

// SQLite returns the engine SQLite, which is always available.
func SQLite() Engine {
	return Engine{"SQLite", func(t testing.TB) string { return filepath.Join(t.TempDir(), "state", "paddock.db") }}
}

// Open opens a store until the end of the test.
func Open(t testing.TB, place string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	return s
}

// New opens a new store.
func (e Engine) New(t testing.TB) *store.Store {
	t.Helper()
	return Open(t, e.Place(t))
}
