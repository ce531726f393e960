package store

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// The database undoes a transaction whose caller has gone, and says then only that it
// is over.
func TestAChangeWhoseCallerHasGoneIsToldSo(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), filepath.Join(dir, "db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	err = s.write(ctx, func(q query) error {
		cancel()
		q.ctx = t.Context()
		for {
			if _, err := q.exec("DELETE FROM tenants WHERE id = ''"); errors.Is(err, sql.ErrTxDone) {
				return nil
			}
		}
	})
	if paddock.KindOf(err) != paddock.Canceled {
		t.Errorf("%v", err)
	}
	if n := s.Failures(); n != 0 {
		t.Errorf("%d failures of the database", n)
	}
}
