package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"strings"

	"github.com/paddock-sandbox/paddock"
)

//go:embed migration/*.sql
var files embed.FS

// migrations returns the steps of the schema; the first makes version 1. A released step
// never changes. A change is another step.
func migrations() []string {
	entries, err := files.ReadDir("migration") // sorted and numbered without gaps, as a test checks
	if err != nil {
		panic(err) // it is embedded
	}
	steps := make([]string, 0, len(entries))
	for _, e := range entries {
		data, err := files.ReadFile("migration/" + e.Name())
		if err != nil {
			panic(err) // it is embedded
		}
		steps = append(steps, string(data))
	}
	return steps
}

// migrate applies the missing steps in one transaction. If two servers do so at once, one
// waits and finds nothing to do.
func (s *Store) migrate(ctx context.Context, steps []string) error {
	return s.write(ctx, func(q query) error {
		if s.engine.alone != "" {
			if _, err := q.exec(s.engine.alone); err != nil {
				return err
			}
		}
		if _, err := q.exec("CREATE TABLE IF NOT EXISTS facts (name TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL, number BIGINT NOT NULL)"); err != nil {
			return err
		}
		var version int
		err := q.row("SELECT number FROM facts WHERE name = 'schema'").Scan(&version)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		switch {
		case version > len(steps):
			return fmt.Errorf("its schema has version %d, of a newer program; this one supports %d: %w", version, len(steps), paddock.Unsupported)
		case version == len(steps):
			return nil
		case version < 0:
			return fmt.Errorf("its schema has version %d, which does not exist: %w", version, paddock.Invalid)
		}
		for i, step := range steps[version:] {
			if err := q.run(step); err != nil {
				return fmt.Errorf("bring the schema to version %d: %w", version+i+1, err)
			}
		}
		_, err = q.exec("INSERT INTO facts (name, value, number) VALUES ('schema', '', ?) ON CONFLICT (name) DO UPDATE SET number = excluded.number", len(steps))
		return err
	})
}

// run executes the statements of a step one by one, as PostgreSQL requires. Each ends with
// a semicolon at the end of a line.
func (q query) run(step string) error {
	for statement := range strings.SplitSeq(step, ";\n") {
		if strings.TrimSpace(statement) == "" {
			continue
		}
		if _, err := q.exec(statement); err != nil {
			return err
		}
	}
	return nil
}

// identify reads the store's ID, which is made at the first use.
func (s *Store) identify(ctx context.Context) error {
	const ask = "SELECT value FROM facts WHERE name = 'id'"
	err := s.read(ctx, func(q query) error { return q.row(ask).Scan(&s.id) })
	if err == nil || !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	return s.write(ctx, func(q query) error {
		if _, err := q.exec("INSERT INTO facts (name, value, number) VALUES ('id', ?, 0) ON CONFLICT (name) DO NOTHING", strings.ToLower(rand.Text())); err != nil {
			return err
		}
		return q.row(ask).Scan(&s.id)
	})
}
