package store

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/paddock-sandbox/paddock"
)

// connections is the maximum of a server's connections to PostgreSQL. PostgreSQL allows 100
// in all by default.
const connections = 16

func openPostgres(ctx context.Context, place string) (*Store, error) {
	config, err := pgx.ParseConfig(place)
	if err != nil {
		return nil, fmt.Errorf("read the URL of PostgreSQL: %w: %w", paddock.Invalid, err) // the error has no password
	}
	// A finished commit must be on disk, whatever the database's own setting.
	config.RuntimeParams["synchronous_commit"] = "on"
	e := engine{
		name: "PostgreSQL", numbered: true, lock: " FOR UPDATE",
		alone:   "SELECT pg_advisory_xact_lock(7237101)", // an arbitrary number
		explain: explainPostgres,
		again: func(err error) bool {
			code := codeOf(err)
			return code == "40001" || code == "40P01" // serialization, deadlock
		},
	}
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections / 2)
	db.SetConnMaxIdleTime(5 * time.Minute)
	e.claim = func(ctx context.Context, place string) (func() error, error) { return claimPostgres(ctx, db, place) }
	s := &Store{engine: e, writer: db, reader: db}
	if err := s.Ping(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

// codeOf returns the code of an error of PostgreSQL, or "".
func codeOf(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

func explainPostgres(err error) error {
	code := codeOf(err)
	switch {
	case code == "23505":
		return fmt.Errorf("%w: %w", paddock.Exists, err)
	case code == "23503":
		return fmt.Errorf("%w: %w", paddock.Conflict, err)
	case code == "53100":
		return fmt.Errorf("the disk of the database is full: %w: %w", paddock.Exhausted, err)
	case strings.HasPrefix(code, "53"):
		return fmt.Errorf("the database has no more room: %w: %w", paddock.Exhausted, err)
	case strings.HasPrefix(code, "XX00") && code != "XX000":
		return fmt.Errorf("the database is damaged; restore it from a copy: %w: %w", paddock.Internal, err)
	case strings.HasPrefix(code, "28"), code == "42501", code == "25006":
		return fmt.Errorf("the database refuses this user: %w: %w", paddock.Denied, err)
	case strings.HasPrefix(code, "57P"), strings.HasPrefix(code, "08"), unreachable(err):
		return fmt.Errorf("the database cannot be reached: %w: %w", paddock.Unavailable, err)
	case code == "57014":
		return fmt.Errorf("%w: %w", paddock.Canceled, err)
	}
	return fmt.Errorf("%w: %w", paddock.Internal, err)
}

// unreachable reports whether an error concerns the connection, not the database.
func unreachable(err error) bool {
	var refused *pgconn.ConnectError
	var broken net.Error
	return errors.As(err, &refused) || errors.As(err, &broken) || pgconn.SafeToRetry(err) ||
		strings.Contains(err.Error(), "unexpected EOF") || strings.Contains(err.Error(), "bad connection") ||
		strings.Contains(err.Error(), "conn closed")
}
