package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// A Port is the sharing state of one port of a sandbox. The zero Port is private.
type Port struct {
	Public bool  // anyone may reach it, because it is public or EveryPort is
	Epoch  int64 // incremented when the port is made private, which invalidates access given out before
	Named  bool  // whether the owner has set or shared the port
}

// mostPorts is the maximum of stored ports of one sandbox.
const mostPorts = 1000

// EveryPort stands for all ports of a sandbox: while it is public, each of them is.
const EveryPort = 0

// Port returns the state of a port of the sandbox with a token.
func (s *Store) Port(ctx context.Context, token string, port int) (Port, error) {
	var p Port
	err := s.read(ctx, func(q query) error {
		var public, named int64
		row := q.row("SELECT COALESCE(MAX(public), 0), COALESCE(MAX(CASE WHEN port = ? THEN epoch ELSE 0 END), 0), COALESCE(MAX(CASE WHEN port = ? THEN 1 ELSE 0 END), 0) FROM ports WHERE token = ? AND (port = ? OR port = ?)",
			port, port, clean(token), port, EveryPort)
		err := row.Scan(&public, &p.Epoch, &named)
		p.Public, p.Named = public == 1, named == 1
		return err
	})
	return p, err
}

// NamePort records that the owner shares a port, and leaves its state unchanged.
func (s *Store) NamePort(ctx context.Context, token string, port int) error {
	return s.setPort(ctx, token, port, "ON CONFLICT (token, port) DO NOTHING", 0)
}

// SetPort makes a port public or private.
func (s *Store) SetPort(ctx context.Context, token string, port int, public bool) error {
	if public {
		return s.setPort(ctx, token, port, "ON CONFLICT (token, port) DO UPDATE SET public = 1", 1)
	}
	return s.setPort(ctx, token, port, "ON CONFLICT (token, port) DO UPDATE SET public = 0, epoch = ports.epoch + 1", 0)
}

// setPort stores a port. A new port begins with epoch 1, to distinguish it from a port that
// is not stored.
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
			return fmt.Errorf("%d ports of sandbox %s are configured already: %w", count, there, paddock.Exhausted)
		}
		_, err := q.exec("INSERT INTO ports (token, port, public, epoch) VALUES (?, ?, ?, 1) "+have, clean(token), port, public)
		return err
	})
}

// mostEndedLinks is the maximum of signed URLs of one sandbox that are stored as ended before their time.
const mostEndedLinks = 1000

// EndLink records that a signed URL of a sandbox, named by a mark, is over before it expires. Marks of URLs that had
// expired by now are forgotten.
func (s *Store) EndLink(ctx context.Context, token, mark string, expires, now time.Time) error {
	return s.write(ctx, func(q query) error {
		var there string
		if err := q.row("SELECT id FROM sandboxes WHERE token = ?"+q.engine.lock, clean(token)).Scan(&there); err != nil {
			return absent(err, "sandbox", "")
		}
		if _, err := q.exec("DELETE FROM ended_links WHERE token = ? AND expires <= ?", clean(token), now.Unix()); err != nil {
			return err
		}
		var count int
		if err := q.row("SELECT COUNT(*) FROM ended_links WHERE token = ? AND mark <> ?", clean(token), clean(mark)).Scan(&count); err != nil {
			return err
		}
		if count >= mostEndedLinks {
			return fmt.Errorf("%d signed URLs of sandbox %s were ended before their time already; make the port private, which ends all of it: %w", count, there, paddock.Exhausted)
		}
		_, err := q.exec("INSERT INTO ended_links (token, mark, expires) VALUES (?, ?, ?) ON CONFLICT (token, mark) DO NOTHING", clean(token), clean(mark), expires.Unix())
		return err
	})
}

// LinkEnded reports whether EndLink ended a signed URL of a sandbox.
func (s *Store) LinkEnded(ctx context.Context, token, mark string) (bool, error) {
	var count int
	err := s.read(ctx, func(q query) error {
		return q.row("SELECT COUNT(*) FROM ended_links WHERE token = ? AND mark = ?", clean(token), clean(mark)).Scan(&count)
	})
	return count > 0, err
}

// Owned returns a sandbox of any tenant.
func (s *Store) Owned(ctx context.Context, id paddock.ID) (Sandbox, error) {
	var b Sandbox
	err := s.read(ctx, func(q query) (err error) {
		b, err = scanSandbox(q.row(sandboxColumns+" WHERE id = ?", clean(string(id))))
		return absent(err, "sandbox", string(id))
	})
	return b, err
}

// secretSize is the size of a secret in bytes.
const secretSize = 32

// Secret returns the secret with a name, 32 bytes, which is created at its first use. All servers on the store share
// it.
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
		return nil, fmt.Errorf("the secret %s in the store is invalid: %w", name, paddock.Internal)
	}
	return secret, nil
}
