package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/paddock-sandbox/paddock"
)

// A Port is what the owner of a sandbox said of one of its ports. Zero is private.
type Port struct {
	Public bool  // anyone may reach it
	Epoch  int64 // raised each time that it is made private: what was given out before ends
	Named  bool  // the owner said something of it
}

// mostPorts is how many ports of one sandbox something may be said of.
const mostPorts = 1000

// Port tells what was said of a port of the sandbox with this token.
func (s *Store) Port(ctx context.Context, token string, port int) (Port, error) {
	p := Port{Named: true}
	err := s.read(ctx, func(q query) error {
		var public int64
		err := q.row("SELECT public, epoch FROM ports WHERE token = ? AND port = ?", clean(token), port).Scan(&public, &p.Epoch)
		p.Public = public == 1
		if errors.Is(err, sql.ErrNoRows) {
			p, err = Port{}, nil
		}
		return err
	})
	return p, err
}

// NamePort notes that the owner gives a port out, and leaves it as it is.
func (s *Store) NamePort(ctx context.Context, token string, port int) error {
	return s.setPort(ctx, token, port, "ON CONFLICT (token, port) DO NOTHING", 0)
}

// SetPort makes a port public, or private.
func (s *Store) SetPort(ctx context.Context, token string, port int, public bool) error {
	if public {
		return s.setPort(ctx, token, port, "ON CONFLICT (token, port) DO UPDATE SET public = 1", 1)
	}
	return s.setPort(ctx, token, port, "ON CONFLICT (token, port) DO UPDATE SET public = 0, epoch = ports.epoch + 1", 0)
}

// setPort writes a port down. One that was not known begins with the epoch 1, so
// that what is not written down and what is are told apart.
func (s *Store) setPort(ctx context.Context, token string, port int, have string, public int) error {
	return s.write(ctx, func(q query) error {
		var there string
		if err := q.row("SELECT id FROM sandboxes WHERE token = ?"+q.engine.lock, clean(token)).Scan(&there); err != nil {
			return absent(err, "sandbox", "")
		}
		var count int
		if err := q.row("SELECT COUNT(*) FROM ports WHERE token = ? AND port <> ?", clean(token), port).Scan(&count); err != nil {
			return err
		}
		if count >= mostPorts {
			return fmt.Errorf("something is said of %d ports of sandbox %s already: %w", count, there, paddock.Exhausted)
		}
		_, err := q.exec("INSERT INTO ports (token, port, public, epoch) VALUES (?, ?, ?, 1) "+have, clean(token), port, public)
		return err
	})
}

// Owned finds a sandbox, whoever's it is.
func (s *Store) Owned(ctx context.Context, id paddock.ID) (Sandbox, error) {
	var b Sandbox
	err := s.read(ctx, func(q query) (err error) {
		b, err = scanSandbox(q.row(sandboxColumns+" WHERE id = ?", clean(string(id))))
		return absent(err, "sandbox", string(id))
	})
	return b, err
}

// secretSize is that of a secret, in bytes.
const secretSize = 32

// Secret gives the secret of this name, of 32 bytes, which is made when it is first
// asked for. All servers on the store have the same.
func (s *Store) Secret(ctx context.Context, name string) ([]byte, error) {
	if err := named("secret", name); err != nil {
		return nil, err
	}
	fresh := make([]byte, secretSize)
	_, _ = rand.Read(fresh) // it never fails
	var text string
	err := s.write(ctx, func(q query) error {
		if _, err := q.exec("INSERT INTO facts (name, value, number) VALUES (?, ?, 0) ON CONFLICT (name) DO NOTHING", "secret "+name, hex.EncodeToString(fresh)); err != nil {
			return err
		}
		return q.row("SELECT value FROM facts WHERE name = ?", "secret "+name).Scan(&text)
	})
	if err != nil {
		return nil, err
	}
	secret, err := hex.DecodeString(text)
	if err != nil || len(secret) != secretSize {
		return nil, fmt.Errorf("the secret %s in the store is none: %w", name, paddock.Internal)
	}
	return secret, nil
}
