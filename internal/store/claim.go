package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// Claim makes the caller the only server of a place until release, Close, or the end of the program. If another server
// has the place, the error is [paddock.Conflict]. A SQLite file belongs to one server, whatever the place. On
// PostgreSQL a claim also ends when its connection is lost. A second release does nothing.
func (s *Store) Claim(ctx context.Context, place string) (release func() error, err error) {
	free, err := s.engine.claim(ctx, place)
	if err != nil {
		return nil, fmt.Errorf("claim the place %s: %w", place, s.engine.told(err))
	}
	release = sync.OnceValue(func() error { return s.engine.told(free()) })
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.Join(fmt.Errorf("the store is closed: %w", paddock.Unavailable), release())
	}
	s.claims = append(s.claims, release)
	return release, nil
}

// unclaim releases every claim, and prevents new ones.
func (s *Store) unclaim() error {
	s.mu.Lock()
	claims := s.claims
	s.claims, s.closed = nil, true
	s.mu.Unlock()
	var errs []error
	for _, release := range claims {
		errs = append(errs, release())
	}
	return errors.Join(errs...)
}

// releaseTime bounds the wait for PostgreSQL to release a claim.
const releaseTime = 10 * time.Second

// claimPostgres holds a lock of a session. Keepalive settings make the database end the
// claim of a crashed machine soon.
func claimPostgres(ctx context.Context, db *sql.DB, place string) (free func() error, err error) {
	place = clean(place)
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	var idle, between, count string
	var got bool
	err = conn.QueryRowContext(ctx, "SELECT set_config('tcp_keepalives_idle', '20', false), set_config('tcp_keepalives_interval', '5', false), set_config('tcp_keepalives_count', '4', false), pg_try_advisory_lock(hashtextextended($1, 7237101))", place).
		Scan(&idle, &between, &count, &got)
	if err == nil && !got {
		err = fmt.Errorf("another server is there already; end that one, or give this one a name of its own: %w", paddock.Conflict)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), releaseTime)
		defer cancel()
		_, err := conn.ExecContext(ctx, "SELECT pg_advisory_unlock(hashtextextended($1, 7237101))", place)
		return errors.Join(err, conn.Close())
	}, nil
}

// claimSQLite locks a file beside the state, as SQLite locks its own.
func claimSQLite(ctx context.Context, path string) (free func() error, err error) {
	name := path + ".lock"
	// Open only a new file, because closing a file releases all locks that this program has
	// on it.
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case err == nil:
		err = f.Close()
	case errors.Is(err, fs.ErrExist):
		err = nil
	}
	if err != nil {
		return nil, reach(err)
	}
	db, err := sql.Open("sqlite", located(name, url.Values{"_pragma": {"busy_timeout(0)"}}))
	if err != nil {
		return nil, err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if _, err := conn.ExecContext(ctx, "BEGIN EXCLUSIVE"); err != nil {
		if held(err) {
			err = fmt.Errorf("another server uses the state file %s; end that one: %w", path, paddock.Conflict)
		}
		return nil, errors.Join(err, conn.Close(), db.Close())
	}
	return func() error { return errors.Join(conn.Close(), db.Close()) }, nil
}
