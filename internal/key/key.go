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

// A Scope is something that a key allows.
type Scope string

const (
	Read  Scope = "read"  // see sandboxes, processes, files and events
	Write Scope = "write" // make, change, use and remove sandboxes and snapshots
	Admin Scope = "admin" // all of it for its tenant, and what is the host's
)

// Scopes lists them all.
func Scopes() []Scope { return []Scope{Read, Write, Admin} }

// A Principal is who a caller turned out to be.
type Principal struct {
	Key    string // its ID
	Tenant string
	Scopes []Scope
}

// May tells whether a scope is there. Admin is all scopes.
func (p Principal) May(s Scope) bool {
	return slices.Contains(p.Scopes, s) || slices.Contains(p.Scopes, Admin)
}

// A Ring is the keys of a store. Make one with [New].
type Ring struct {
	s   *store.Store
	now func() time.Time
}

// New gives the keys of a store; now is the clock, and nil is the machine's.
func New(s *store.Store, now func() time.Time) *Ring {
	if now == nil {
		now = time.Now
	}
	return &Ring{s, now}
}

// A Grant is what a new key is to allow.
type Grant struct {
	Tenant  string
	Name    string // for people
	Scopes  []Scope
	Expires time.Time // zero is never
	E2B     bool      // its text has the grammar of E2B's keys
}

// Make makes a key and gives its text, which cannot be had again.
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

// Verify tells whose key a text is. One that is not valid (any more) is
// [paddock.Denied]; only who has the secret learns why.
func (r *Ring) Verify(ctx context.Context, text string) (Principal, error) {
	p, err := parse(text)
	if err != nil {
		return Principal{}, fmt.Errorf("this is no key: %w: %w", err, paddock.Denied)
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

// Live tells whether a tenant could show the key of an ID now, and it has a scope. It is
// for what was done with a key and lasts: nobody shows the key itself.
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

// ended says why a key is not valid any more.
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

// nobody is a sum that no secret has, as long as one that some secret has.
const nobody = "................................................................"

// useEvery is how exactly the last use of a key is known.
const useEvery = time.Minute

// note keeps when a key was used. It is told nobody if that cannot be kept: a
// full disk must not lock out who would make room.
func (r *Ring) note(ctx context.Context, k store.Key, now time.Time) {
	since := now.Add(-useEvery)
	if k.Used.After(since) && !k.Used.After(now) {
		return
	}
	_ = r.s.UseKey(ctx, k.ID, now, now.Add(-useEvery))
}

// Revoke ends a tenant's key, for good. Revoking twice is fine.
func (r *Ring) Revoke(ctx context.Context, tenant, id string) error {
	return r.s.RevokeKey(ctx, tenant, id, r.now())
}

// List gives a tenant's keys, oldest first, with those that ended.
func (r *Ring) List(ctx context.Context, tenant string) ([]store.Key, error) {
	return r.s.Keys(ctx, tenant)
}

// A Static is one key of any text, for development: it is in no store, and
// never ends. Make one with [NewStatic]; the zero Static lets nobody in.
type Static struct {
	sum [sha256.Size]byte
	who Principal
	set bool
}

// NewStatic gives a key for a principal. An empty text is [paddock.Invalid].
func NewStatic(text string, who Principal) (Static, error) {
	if text == "" {
		return Static{}, fmt.Errorf("an empty key: %w", paddock.Invalid)
	}
	return Static{sha256.Sum256([]byte(text)), who, true}, nil
}

// Verify tells whether a text is the key.
func (s Static) Verify(_ context.Context, text string) (Principal, error) {
	sum := sha256.Sum256([]byte(text))
	if subtle.ConstantTimeCompare(sum[:], s.sum[:]) != 1 || !s.set {
		return Principal{}, fmt.Errorf("this is not the key: %w", paddock.Denied)
	}
	return s.who, nil
}

// Live tells the same of it as [Ring.Live] does of others.
func (s Static) Live(tenant, id string, scope Scope) bool {
	return s.set && s.who.Key == id && s.who.Tenant == tenant && s.who.May(scope)
}
