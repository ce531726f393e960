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
	writer *sql.DB // for SQLite one connection, because it allows one writer
	reader *sql.DB // for PostgreSQL the same as writer
	id     string
	failed atomic.Uint64 // calls that failed because of the database

	mu     sync.Mutex
	claims []func() error // guarded by mu; functions that release claims
	closed bool           // guarded by mu
}

// An engine has the differences between databases.
type engine struct {
	name string
	// numbered means that placeholders are $1, $2, and not ?.
	numbered bool
	// lock is the end of a query that locks its rows until the end of the transaction.
	lock string
	// alone is a statement that makes other migrations and folds wait. It is empty if every
	// transaction does.
	alone string
	// explain adds a kind and a description to an error.
	explain func(error) error
	// claim makes the caller the only server of a place.
	claim func(ctx context.Context, place string) (free func() error, err error)
	// again reports whether a transaction failed because of a concurrent one.
	again func(error) bool
	// safe sets whether following transactions of a connection are on disk when they have
	// finished. Nil means that all are.
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
	s.failed.Store(0) // the schema of a new database cannot be read, which is not a failure
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

// A query runs statements, in one transaction or in none.
type query struct {
	ctx    context.Context
	engine engine
	db     interface {
		ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
		QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
		QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	}
}

// exec returns the number of changed rows.
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

// each calls f for every row.
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

// A row is a row of a result.
type row interface{ Scan(to ...any) error }

// spell writes a statement in the engine's form. Question marks occur only as placeholders.
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

// read runs f without changing anything.
func (s *Store) read(ctx context.Context, f func(query) error) error {
	return s.told(f(query{ctx, s.engine, s.reader}))
}

// attempts is how often a transaction is tried that conflicts with others.
const attempts = 10

// write runs f in a transaction, perhaps several times. When it returns without an error,
// this and all earlier writes survive a power failure.
func (s *Store) write(ctx context.Context, f func(query) error) error {
	return s.change(ctx, true, f)
}

// writeLive is write for facts about an existing sandbox, which does not survive a power
// failure. It does not wait for the disk. When it returns without an error, the write
// survives a crash of the process.
func (s *Store) writeLive(ctx context.Context, f func(query) error) error {
	return s.change(ctx, false, f)
}

func (s *Store) change(ctx context.Context, safe bool, f func(query) error) error {
	for n := 1; ; n++ {
		err := s.once(ctx, safe, f)
		if ctx.Err() != nil && errors.Is(err, sql.ErrTxDone) { // rolled back because ctx ended
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
		defer func() { _ = c.Close() }() // returns it to the pool
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

// told adds a kind to an error without one.
func (e engine) told(err error) error {
	var kind paddock.Kind
	switch {
	case err == nil || errors.As(err, &kind):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("the store did not answer in time: %w", paddock.Timeout)
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("ask the store: %w", paddock.Canceled)
	case errors.Is(err, sql.ErrConnDone), strings.Contains(err.Error(), "sql: database is closed"): // this error has no type
		return fmt.Errorf("the store is closed: %w", paddock.Unavailable)
	}
	return e.explain(err)
}

// stamp encodes a time: nanoseconds since 1970, or 0 for the zero time.
func stamp(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// moment decodes a stamp.
func moment(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// text encodes a value.
func text(v any) (string, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("%w: %w", paddock.Invalid, err)
	}
	return string(data), nil
}

// value decodes the output of text.
func value(data string, v any) error {
	if err := json.Unmarshal([]byte(data), v); err != nil {
		return fmt.Errorf("the store holds what this program cannot read: %w", err)
	}
	return nil
}

// some returns NotFound if no row was changed.
func some(changed int64, err error, what, name string) error {
	if err == nil && changed == 0 {
		err = missing(what, name)
	}
	return err
}

// missing is the error for what does not exist or belongs to another tenant.
func missing(what, name string) error { return fmt.Errorf("%s %s: %w", what, name, paddock.NotFound) }

// absent converts an answer without rows to NotFound.
func absent(err error, what, name string) error {
	if errors.Is(err, sql.ErrNoRows) {
		return missing(what, name)
	}
	return err
}

// named refuses an invalid name. Names of tenants have the form of an ID.
func named(what, name string) error {
	if !paddock.ID(name).Valid() {
		return fmt.Errorf("%s %q: a name is 1 to 63 lower-case letters, digits and dashes: %w", what, name, paddock.Invalid)
	}
	return nil
}
