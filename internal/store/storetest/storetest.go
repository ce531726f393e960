// Package storetest runs tests over every database that a store can be in.
package storetest

import (
	"path/filepath"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/store"
)

// An Engine is a database to test with.
type Engine struct {
	Name string
	// Place gives a new place for a store, which is empty.
	Place func(t testing.TB) string
}

// Each runs a test over every engine. One that is not installed is skipped, in
// words.
func Each(t *testing.T, f func(t *testing.T, e Engine)) {
	t.Helper()
	t.Run("SQLite", func(t *testing.T) { f(t, SQLite()) })
	t.Run("PostgreSQL", func(t *testing.T) { f(t, StartPostgres(t).Engine()) })
}

// SQLite needs nothing.
func SQLite() Engine {
	return Engine{"SQLite", func(t testing.TB) string { return filepath.Join(t.TempDir(), "state", "paddock.db") }}
}

// Open opens a store that is closed with the test.
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
