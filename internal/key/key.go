package key

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/store"
)

// A Scope is a permission of a key.
type Scope string

const (
	Read  Scope = "read"  // see sandboxes, processes, files and events
	Write Scope = "write" // make, change, use and remove sandboxes and snapshots
	Admin Scope = "admin" // everything for its tenant, and administration of the host
)

// Scopes lists all scopes.
func Scopes() []Scope { return []Scope{Read, Write, Admin} }

// A Principal is an authenticated caller.
type Principal struct {
	Key    string // its ID
	Tenant string
	Scopes []Scope
}

// May reports whether the principal has a scope. Admin includes all scopes.
func (p Principal) May(s Scope) bool {
	return slices.Contains(p.Scopes, s) || slices.Contains(p.Scopes, Admin)
}

// A Ring is the keys of a store. Make one with [New].
type Ring struct {
	s   *store.Store
	now func() time.Time
}

// New makes a Ring of the keys of a store. now is the clock; nil uses the machine's.
func New(s *store.Store, now func() time.Time) *Ring {
	if now == nil {
		now = time.Now
	}
	return &Ring{s, now}
}

// A Grant describes a new key.
type Grant struct {
	Tenant  string
	Name    string // for people
	Scopes  []Scope
	Expires time.Time // zero is never
	E2B     bool      // write its text in the form of E2B's keys
}

// Make creates a key and returns its text, which cannot be read again.
func (r *Ring) Make(ctx context.Context, g Grant) (string, store.Key, error) {
	scopes := make([]string, 0, len(g.Scopes))
	for _, s := range g.Scopes {
		if !slices.Contains(Scopes(), s) {
			return "", store.Key{}, fmt.Errorf("scope %q: there are %v: %w", s, Scopes(), paddock.Invalid)
		}
		scopes = append(scopes, string(s))
	}
	slices.Sort(scopes)
	now := r.now()
	if !g.Expires.IsZero() && !g.Expires.After(now) {
		return "", store.Key{}, fmt.Errorf("a key that expired at %s already: %w", g.Expires.Format(time.RFC3339), paddock.Invalid)
	}
	p := fresh()
	k := store.Key{
		ID: p.id, Tenant: g.Tenant, Name: g.Name, Hash: p.sum(), Scopes: slices.Compact(scopes),
		Created: now.Round(0).UTC(), Expires: g.Expires,
	}
	if err := r.s.AddKey(ctx, k); err != nil {
		return "", store.Key{}, fmt.Errorf("keep the key: %w", err)
	}
	if g.E2B {
		return p.hexText(), k, nil
	}
	return p.text(), k, nil
}

// Verify returns the principal of a key's text. A key that is not valid, or no longer, is [paddock.Denied]. Only a
// caller with the secret learns why.
func (r *Ring) Verify(ctx context.Context, text string) (Principal, error) {
	p, err := parse(text)
	if err != nil {
		return Principal{}, fmt.Errorf("this is not a key: %w: %w", err, paddock.Denied)
	}
	k, err := r.s.Key(ctx, p.id)
	unknown := errors.Is(err, paddock.NotFound)
	if err != nil && !unknown {
		return Principal{}, fmt.Errorf("look for the key: %w", err)
	}
	same := subtle.ConstantTimeCompare([]byte(cmp.Or(k.Hash, nobody)), []byte(p.sum())) == 1
	if unknown || !same {
		return Principal{}, fmt.Errorf("key %s is not valid: %w", p.id, paddock.Denied)
	}
	now := r.now()
	if err := ended(k, now); err != nil {
		return Principal{}, err
	}
	r.note(ctx, k, now)
	return principal(k), nil
}

// Live reports whether the key with an ID is still valid for a tenant and has a scope. It is for effects of a key that
// last longer than the request, for which no caller presents the key again.
func (r *Ring) Live(ctx context.Context, tenant, id string, s Scope) (bool, error) {
	k, err := r.s.Key(ctx, id)
	switch {
	case errors.Is(err, paddock.NotFound):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look for the key: %w", err)
	}
	return k.Tenant == tenant && ended(k, r.now()) == nil && principal(k).May(s), nil
}

// ended returns why a key is no longer valid.
func ended(k store.Key, now time.Time) error {
	switch {
	case !k.Revoked.IsZero():
		return fmt.Errorf("key %s was revoked at %s: %w", k.ID, k.Revoked.Format(time.RFC3339), paddock.Denied)
	case !k.Expires.IsZero() && !k.Expires.After(now):
		return fmt.Errorf("key %s expired at %s: %w", k.ID, k.Expires.Format(time.RFC3339), paddock.Denied)
	}
	return nil
}

func principal(k store.Key) Principal {
	who := Principal{Key: k.ID, Tenant: k.Tenant}
	for _, s := range k.Scopes {
		who.Scopes = append(who.Scopes, Scope(s))
	}
	return who
}

// nobody is a hash that no secret has, of the usual length.
const nobody = "................................................................"

// useEvery is the precision of the time of a key's last use.
const useEvery = time.Minute

// note records the use of a key. It ignores an error, because a full disk must not lock out
// somebody who would free space.
func (r *Ring) note(ctx context.Context, k store.Key, now time.Time) {
	since := now.Add(-useEvery)
	if k.Used.After(since) && !k.Used.After(now) {
		return
	}
	_ = r.s.UseKey(ctx, k.ID, now, now.Add(-useEvery))
}

// Revoke revokes a tenant's key for good. A second call does nothing.
func (r *Ring) Revoke(ctx context.Context, tenant, id string) error {
	return r.s.RevokeKey(ctx, tenant, id, r.now())
}

// List returns a tenant's keys, oldest first, including expired and revoked ones.
func (r *Ring) List(ctx context.Context, tenant string) ([]store.Key, error) {
	return r.s.Keys(ctx, tenant)
}

// A Static is one key with any text, for development. It is in no store and never expires. Make one with [NewStatic];
// the zero Static admits no caller.
type Static struct {
	sum [sha256.Size]byte
	who Principal
	set bool
}

// NewStatic makes a key for a principal. An empty text is [paddock.Invalid].
func NewStatic(text string, who Principal) (Static, error) {
	if text == "" {
		return Static{}, fmt.Errorf("an empty key: %w", paddock.Invalid)
	}
	return Static{sha256.Sum256([]byte(text)), who, true}, nil
}

// Verify returns the principal if text is the key.
func (s Static) Verify(_ context.Context, text string) (Principal, error) {
	sum := sha256.Sum256([]byte(text))
	if subtle.ConstantTimeCompare(sum[:], s.sum[:]) != 1 || !s.set {
		return Principal{}, fmt.Errorf("this is not the key: %w", paddock.Denied)
	}
	return s.who, nil
}

// Live does for this key what [Ring.Live] does for stored ones.
func (s Static) Live(tenant, id string, scope Scope) bool {
	return s.set && s.who.Key == id && s.who.Tenant == tenant && s.who.May(scope)
}
