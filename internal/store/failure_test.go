package store_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/store"
)

func TestFailuresAreThoseOfTheDatabaseAndNotWhatWasAsked(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o700))
	s, err := store.Open(t.Context(), filepath.Join(dir, "db"))
	must(t, err)
	tenant := store.Tenant{ID: "acme"}
	must(t, s.AddTenant(t.Context(), tenant))
	wantKind(t, s.AddTenant(t.Context(), tenant), paddock.Exists)
	if _, err := s.Sandbox(t.Context(), "acme", "nobody"); paddock.KindOf(err) != paddock.NotFound {
		t.Errorf("%v", err)
	}
	if n := s.Failures(); n != 0 {
		t.Errorf("%d failures for what was asked", n)
	}
	must(t, s.Close())
	if _, err := s.Tenants(t.Context()); paddock.KindOf(err) != paddock.Unavailable {
		t.Errorf("%v", err)
	}
	if n := s.Failures(); n != 1 {
		t.Errorf("%d failures of a database that is closed", n)
	}
}
