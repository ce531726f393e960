package store

import (
	"context"
	"time"
)

// A Key authenticates its bearer as a tenant. Hash is the hash of the secret, which is stored nowhere.
type Key struct {
	ID      string    `json:"id"`
	Tenant  string    `json:"tenant"`
	Name    string    `json:"name,omitempty"`
	Hash    string    `json:"-"`
	Scopes  []string  `json:"scopes"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"` // zero is never
	Revoked time.Time `json:"revoked,omitzero"` // zero is not revoked
	Used    time.Time `json:"used,omitzero"`    // last, to a minute; zero is never
}

// AddKey stores a key of an existing tenant.
func (s *Store) AddKey(ctx context.Context, k Key) error {
	scopes, err := text(k.Scopes)
	if err != nil {
		return err
	}
	return s.write(ctx, func(q query) error {
		if _, err := q.total(k.Tenant); err != nil {
			return err
		}
		_, err := q.exec("INSERT INTO keys (id, tenant, name, hash, scopes, created, expires, revoked, used) VALUES (?, ?, ?, ?, ?, ?, ?, 0, 0)",
			k.ID, k.Tenant, clean(k.Name), k.Hash, scopes, stamp(k.Created), stamp(k.Expires))
		return err
	})
}

const keyColumns = "SELECT id, tenant, name, hash, scopes, created, expires, revoked, used FROM keys"

func scanKey(r row) (Key, error) {
	var k Key
	var scopes string
	var created, expires, revoked, used int64
	if err := r.Scan(&k.ID, &k.Tenant, &k.Name, &k.Hash, &scopes, &created, &expires, &revoked, &used); err != nil {
		return k, err
	}
	k.Created, k.Expires, k.Revoked, k.Used = moment(created), moment(expires), moment(revoked), moment(used)
	return k, value(scopes, &k.Scopes)
}

// Key returns the key with an ID, of any tenant.
func (s *Store) Key(ctx context.Context, id string) (Key, error) {
	var k Key
	err := s.read(ctx, func(q query) (err error) {
		k, err = scanKey(q.row(keyColumns+" WHERE id = ?", clean(id)))
		return absent(err, "key", id)
	})
	return k, err
}

// Keys returns a tenant's keys, oldest first, including revoked ones.
func (s *Store) Keys(ctx context.Context, tenant string) ([]Key, error) {
	var list []Key
	err := s.read(ctx, func(q query) error {
		return q.each(func(r row) error {
			k, err := scanKey(r)
			list = append(list, k)
			return err
		}, keyColumns+" WHERE tenant = ? ORDER BY created, id", clean(tenant))
	})
	return list, err
}

// RevokeKey revokes a tenant's key for good. A second call keeps the first time.
func (s *Store) RevokeKey(ctx context.Context, tenant, id string, now time.Time) error {
	return s.write(ctx, func(q query) error {
		n, err := q.exec("UPDATE keys SET revoked = CASE WHEN revoked = 0 THEN ? ELSE revoked END WHERE id = ? AND tenant = ?", stamp(now), clean(id), clean(tenant))
		return some(n, err, "key", id)
	})
}

// UseKey records the use of a key, unless a use was recorded after since.
func (s *Store) UseKey(ctx context.Context, id string, now, since time.Time) error {
	return s.writeLive(ctx, func(q query) error {
		_, err := q.exec("UPDATE keys SET used = ? WHERE id = ? AND used <= ?", stamp(now), clean(id), stamp(since))
		return err
	})
}
