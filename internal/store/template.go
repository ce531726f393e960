package store

import (
	"context"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// A Template is a spec with a name, from which a tenant's sandboxes are made.
type Template struct {
	Tenant  string       `json:"tenant"`
	Name    string       `json:"name"` // of the form of a paddock.ID
	Spec    paddock.Spec `json:"spec"`
	Created time.Time    `json:"created"`
}

// PutTemplate keeps a template, in place of one of the same name. Nothing that
// is a credential by its nature can be in it: no value of a secret, no header
// that a rule sets, no password of a proxy. Whoever makes a sandbox adds them.
// The environment is kept, and is no place for credentials.
func (s *Store) PutTemplate(ctx context.Context, t Template) error {
	if err := named("template", t.Name); err != nil {
		return err
	}
	if err := harmless(t.Spec.Policy.Network); err != nil {
		return err
	}
	spec, err := text(t.Spec)
	if err != nil {
		return err
	}
	return s.write(ctx, func(q query) error {
		if _, err := q.total(t.Tenant); err != nil {
			return err
		}
		_, err := q.exec("INSERT INTO templates (tenant, name, spec, created) VALUES (?, ?, ?, ?) ON CONFLICT (tenant, name) DO UPDATE SET spec = excluded.spec, created = excluded.created",
			t.Tenant, t.Name, spec, stamp(t.Created))
		return err
	})
}

const templateColumns = "SELECT tenant, name, spec, created FROM templates"

func scanTemplate(r row) (Template, error) {
	var t Template
	var spec string
	var created int64
	if err := r.Scan(&t.Tenant, &t.Name, &spec, &created); err != nil {
		return t, err
	}
	t.Created = moment(created)
	return t, value(spec, &t.Spec)
}

// Template finds a tenant's.
func (s *Store) Template(ctx context.Context, tenant, name string) (Template, error) {
	var t Template
	err := s.read(ctx, func(q query) (err error) {
		t, err = scanTemplate(q.row(templateColumns+" WHERE tenant = ? AND name = ?", clean(tenant), clean(name)))
		return absent(err, "template", name)
	})
	return t, err
}

// Templates gives a tenant's, by name.
func (s *Store) Templates(ctx context.Context, tenant string) ([]Template, error) {
	var list []Template
	err := s.read(ctx, func(q query) error {
		return q.each(func(r row) error {
			t, err := scanTemplate(r)
			list = append(list, t)
			return err
		}, templateColumns+" WHERE tenant = ? ORDER BY name", clean(tenant))
	})
	return list, err
}

// RemoveTemplate forgets a template. Removing one that is gone is fine.
func (s *Store) RemoveTemplate(ctx context.Context, tenant, name string) error {
	return s.write(ctx, func(q query) error {
		_, err := q.exec("DELETE FROM templates WHERE tenant = ? AND name = ?", clean(tenant), clean(name))
		return err
	})
}
