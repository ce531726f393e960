package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/paddock-sandbox/paddock"
)

// readers is the number of concurrent readers besides the writer.
const readers = 4

func openSQLite(ctx context.Context, path string) (*Store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := prepare(path); err != nil {
		return nil, err
	}
	e := engine{name: "SQLite", explain: explainSQLite, again: func(error) bool { return false }, safe: syncSQLite}
	e.claim = func(ctx context.Context, _ string) (func() error, error) { return claimSQLite(ctx, path) }
	s := &Store{engine: e}
	if s.writer, err = sql.Open("sqlite", address(path, false)); err != nil {
		return nil, err
	}
	if s.reader, err = sql.Open("sqlite", address(path, true)); err != nil {
		return nil, errors.Join(err, s.writer.Close())
	}
	s.writer.SetMaxOpenConns(1)
	s.reader.SetMaxOpenConns(readers)
	s.reader.SetMaxIdleConns(readers)
	if err := s.checkOnceFree(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// checkOnceFree checks the store, and tries again while another program holds the file. SQLite does
// not wait for the lock that it needs to set the journal mode of a new file, whatever busy_timeout is.
func (s *Store) checkOnceFree(ctx context.Context) error {
	for end := time.Now().Add(10 * time.Second); ; {
		err := s.check(ctx)
		if !held(err) || time.Now().After(end) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// syncSQLite sets whether transactions wait for the disk. A transaction that waits also
// writes the earlier ones to disk.
func syncSQLite(ctx context.Context, c *sql.Conn, safe bool) error {
	mode := "PRAGMA synchronous = NORMAL"
	if safe {
		mode = "PRAGMA synchronous = FULL"
	}
	_, err := c.ExecContext(ctx, mode)
	return err
}

// prepare makes the directory and the file, or checks who may access them.
func prepare(path string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return reach(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return reach(err)
	}
	defer f.Close()
	if runtime.GOOS == "windows" {
		return nil // modes have no meaning there
	}
	for _, name := range []string{dir, path} {
		info, err := os.Stat(name)
		if err != nil {
			return reach(err)
		}
		if others := info.Mode().Perm() & 0o077; others != 0 {
			return fmt.Errorf("%s has mode %04o: others may not reach it; chmod go= %s: %w", name, info.Mode().Perm(), name, paddock.Denied)
		}
	}
	return nil
}

// reach adds a kind to an error of the file system.
func reach(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: %w", paddock.Denied, err)
	}
	return full(err)
}

// address returns the library's name for the file, with options for each connection.
func address(path string, reading bool) string {
	options := url.Values{"_pragma": {"busy_timeout(10000)", "foreign_keys(1)"}}
	if reading {
		options.Add("_pragma", "query_only(1)")
	} else {
		options.Add("_pragma", "journal_mode(WAL)")
		options.Add("_pragma", "synchronous(FULL)") // until syncSQLite is called
		options.Set("_txlock", "immediate")         // wait for the lock at the beginning
	}
	return located(path, options)
}

// located returns the URL of a file.
func located(path string, options url.Values) string {
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: options.Encode()}).String()
}

// held reports whether another process holds the lock.
func held(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && (e.Code()&0xff == sqlite3.SQLITE_BUSY || e.Code()&0xff == sqlite3.SQLITE_LOCKED)
}

// check reads the whole file once, so that damage is found before it is used.
func (s *Store) check(ctx context.Context) error {
	var found string
	if err := s.writer.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&found); err != nil {
		return s.engine.told(err)
	}
	if found != "ok" {
		return damaged(errors.New(found))
	}
	return nil
}

func damaged(err error) error {
	return fmt.Errorf("the state file is damaged; put a copy in its place, or move it away to begin anew: %w: %w", paddock.Internal, err)
}

func explainSQLite(err error) error {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return full(err)
	}
	switch e.Code() {
	case sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_UNIQUE:
		return fmt.Errorf("%w: %w", paddock.Exists, err)
	case sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY:
		return fmt.Errorf("%w: %w", paddock.Conflict, err)
	case sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_WRITE:
		return fmt.Errorf("the disk of the state is full, or cannot be written: %w: %w", paddock.Exhausted, err)
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_FULL:
		return fmt.Errorf("the disk of the state is full: %w: %w", paddock.Exhausted, err)
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return damaged(err)
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return fmt.Errorf("another program holds the state file: %w: %w", paddock.Unavailable, err)
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		return fmt.Errorf("the state file cannot be written: %w: %w", paddock.Denied, err)
	case sqlite3.SQLITE_CANTOPEN:
		return fmt.Errorf("the state file cannot be opened: %w: %w", paddock.Unavailable, err)
	case sqlite3.SQLITE_INTERRUPT:
		return fmt.Errorf("%w: %w", paddock.Canceled, err)
	}
	return fmt.Errorf("%w: %w", paddock.Internal, err)
}
