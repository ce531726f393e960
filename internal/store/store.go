package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// A Store is an open database. Make one with [Open]. It is safe for concurrent use.
type Store struct {
	engine engine
	writer *sql.DB // of SQLite: one connection, since it has one writer
	reader *sql.DB // of PostgreSQL the same as writer
	id     string
	failed atomic.Uint64 // calls that failed for reasons of the database

	mu     sync.Mutex
	claims []func() error // guarded by mu; what releases each
	closed bool           // guarded by mu
}

// An engine is what differs between databases.
type engine struct {
	name string
	// numbered says that places of values are $1, $2, and not ?.
	numbered bool
	// lock ends a query whose rows nobody may change before the transaction ends.
	lock string
	// alone is a statement that lets one migration, or one fold of records, run at a time; empty where
	// any transaction does.
	alone string
	// explain gives an error a kind and words.
	explain func(error) error
	// claim makes a place its caller's own.
	claim func(ctx context.Context, place string) (free func() error, err error)
	// again tells errors of transactions that others got in the way of.
	again func(error) bool
	// safe says of what comes next on a connection whether it is on disk when it
	// is told as done; nil where all is.
	safe func(ctx context.Context, c *sql.Conn, safe bool) error
}

// Open opens the store at a place: the path of a file, which is created if it is missing, or a URL postgres://…. It
// upgrades an older schema. A newer schema, of a newer program, is [paddock.Unsupported].
func Open(ctx context.Context, place string) (*Store, error) {
	open := openSQLite
	if strings.HasPrefix(place, "postgres://") || strings.HasPrefix(place, "postgresql://") {
		open = openPostgres
	}
	s, err := open(ctx, place)
	if err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	if err := s.migrate(ctx, migrations()); err != nil {
		return nil, errors.Join(fmt.Errorf("open the store: %w", err), s.Close())
	}
	if err := s.identify(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open the store: %w", err), s.Close())
	}
	s.failed.Store(0) // a new database has no schema to read, which is no failure
	return s, nil
}

// Close closes the database and releases all claims. A second call does nothing.
func (s *Store) Close() error {
	err := s.unclaim()
	if s.reader == s.writer {
		return errors.Join(err, s.writer.Close())
	}
	return errors.Join(err, s.reader.Close(), s.writer.Close())
}

// ID returns the permanent identity of this store: the same for all servers that share it, and different from that of
// any other store.
func (s *Store) ID() string { return s.id }

// Ping checks that the store answers.
func (s *Store) Ping(ctx context.Context) error {
	return s.read(ctx, func(q query) error {
		var one int
		return q.row("SELECT 1").Scan(&one)
	})
}

// A query asks within one transaction, or within none.
type query struct {
	ctx    context.Context
	engine engine
	db     interface {
		ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
		QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
		QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	}
}

// exec tells how many rows it changed.
func (q query) exec(text string, args ...any) (int64, error) {
	res, err := q.db.ExecContext(q.ctx, q.engine.spell(text), args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func (q query) row(text string, args ...any) *sql.Row {
	return q.db.QueryRowContext(q.ctx, q.engine.spell(text), args...)
}

// each calls f with every row.
func (q query) each(f func(row) error, text string, args ...any) (err error) {
	rows, err := q.db.QueryContext(q.ctx, q.engine.spell(text), args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// A row is one that was found.
type row interface{ Scan(to ...any) error }

// spell writes a statement as the engine reads it. No text of ours has a
// question mark but for values.
func (e engine) spell(text string) string {
	if !e.numbered {
		return text
	}
	var b strings.Builder
	for n := 1; ; n++ {
		head, tail, found := strings.Cut(text, "?")
		b.WriteString(head)
		if !found {
			return b.String()
		}
		b.WriteString("$" + strconv.Itoa(n))
		text = tail
	}
}

// read asks without changing anything.
func (s *Store) read(ctx context.Context, f func(query) error) error {
	return s.told(f(query{ctx, s.engine, s.reader}))
}

// attempts is how often a transaction is tried that others get in the way of.
const attempts = 10

// write changes all that f changes, or nothing. f may be called many times. What
// is told as done outlives the power, and so does all that was written before.
func (s *Store) write(ctx context.Context, f func(query) error) error {
	return s.change(ctx, true, f)
}

// writeLive is write for what is true of a living sandbox, which does not outlive
// the power: it is not waited for the disk. What is told as done outlives every
// end of the process.
func (s *Store) writeLive(ctx context.Context, f func(query) error) error {
	return s.change(ctx, false, f)
}

func (s *Store) change(ctx context.Context, safe bool, f func(query) error) error {
	for n := 1; ; n++ {
		err := s.once(ctx, safe, f)
		if ctx.Err() != nil && errors.Is(err, sql.ErrTxDone) { // it was undone since ctx ended
			err = ctx.Err()
		}
		if err == nil || n == attempts || !s.engine.again(err) {
			return s.told(err)
		}
	}
}

func (s *Store) once(ctx context.Context, safe bool, f func(query) error) error {
	begin := s.writer.BeginTx
	if s.engine.safe != nil {
		c, err := s.writer.Conn(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }() // gives it back
		if err := s.engine.safe(ctx, c, safe); err != nil {
			return err
		}
		begin = c.BeginTx
	}
	tx, err := begin(ctx, nil)
	if err != nil {
		return err
	}
	if err := f(query{ctx, s.engine, tx}); err != nil {
		if undone := tx.Rollback(); undone != nil && !errors.Is(undone, sql.ErrTxDone) {
			return errors.Join(err, undone)
		}
		return err
	}
	return tx.Commit()
}

// told gives an error a kind, if it has none yet.
func (e engine) told(err error) error {
	var kind paddock.Kind
	switch {
	case err == nil || errors.As(err, &kind):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("the store did not answer in time: %w", paddock.Timeout)
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("ask the store: %w", paddock.Canceled)
	case errors.Is(err, sql.ErrConnDone), strings.Contains(err.Error(), "sql: database is closed"): // it has no type
		return fmt.Errorf("the store is closed: %w", paddock.Unavailable)
	}
	return e.explain(err)
}

// stamp is a time as it is kept: nanoseconds since 1970, zero for none.
func stamp(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// moment is the opposite of stamp.
func moment(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// text is a value as it is kept.
func text(v any) (string, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("%w: %w", paddock.Invalid, err)
	}
	return string(data), nil
}

// value reads what text wrote.
func value(data string, v any) error {
	if err := json.Unmarshal([]byte(data), v); err != nil {
		return fmt.Errorf("the store holds what this program cannot read: %w", err)
	}
	return nil
}

// some fails with NotFound if nothing was changed.
func some(changed int64, err error, what, name string) error {
	if err == nil && changed == 0 {
		err = missing(what, name)
	}
	return err
}

// missing is the one answer for what does not exist and what is another's.
func missing(what, name string) error { return fmt.Errorf("%s %s: %w", what, name, paddock.NotFound) }

// absent turns an answer without rows into NotFound.
func absent(err error, what, name string) error {
	if errors.Is(err, sql.ErrNoRows) {
		return missing(what, name)
	}
	return err
}

// named refuses what is no name: tenants have names of the form of an ID.
func named(what, name string) error {
	if !paddock.ID(name).Valid() {
		return fmt.Errorf("%s %q: a name is 1 to 63 lower-case letters, digits and dashes: %w", what, name, paddock.Invalid)
	}
	return nil
}
