package store_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/store"
	"github.com/paddock-sandbox/paddock/internal/store/storetest"
)

func newerSchema(t *testing.T, e storetest.Engine) {
	place, ctx := e.Place(t), t.Context()
	s := storetest.Open(t, place)
	steps := store.Steps()
	next := slices.Concat(steps, []string{"CREATE TABLE later (id TEXT);\n\nCREATE TABLE latest (id TEXT);\n"})
	broken := slices.Concat(next, []string{"CREATE TABLE lost (id TEXT);\n\nCREATE NONSENSE;\n"})
	if err := s.Migrate(ctx, broken); err == nil || !strings.Contains(err.Error(), fmt.Sprint("version ", len(broken))) {
		t.Errorf("got %v", err)
	}
	if err := s.Migrate(ctx, next); err != nil {
		t.Fatalf("a step that failed left something: %v", err)
	}
	must(t, s.Migrate(ctx, next))
	must(t, s.Exec(ctx, "INSERT INTO latest (id) VALUES ('x')"))
	_, err := store.Open(ctx, place)
	wantKind(t, err, paddock.Unsupported)
	if err == nil || !strings.Contains(err.Error(), "newer program") {
		t.Errorf("got %v", err)
	}
}

func TestMigrationsAreNumberedWithoutAGap(t *testing.T) {
	entries, err := os.ReadDir("migration")
	must(t, err)
	for i, e := range entries {
		if want := fmt.Sprintf("%04d.sql", i+1); e.Name() != want {
			t.Errorf("%s stands where %s would", e.Name(), want)
		}
	}
	if len(entries) != len(store.Steps()) {
		t.Errorf("%d files, %d steps", len(entries), len(store.Steps()))
	}
}
