package store

import "context"

// An ImageUse is that a tenant has a sandbox or a snapshot whose files are above an image.
type ImageUse struct{ Tenant, Image string }

// ImageUses returns which tenants need which images at a place, each once.
func (s *Store) ImageUses(ctx context.Context, place string) ([]ImageUse, error) {
	return s.imageUses(ctx, "place = ? AND image <> ''", clean(place))
}

// ImageTenants returns the tenants that need an image at a place.
func (s *Store) ImageTenants(ctx context.Context, place, image string) ([]string, error) {
	uses, err := s.imageUses(ctx, "place = ? AND image = ? AND image <> ''", clean(place), clean(image))
	list := make([]string, len(uses))
	for i, u := range uses {
		list[i] = u.Tenant
	}
	return list, err
}

func (s *Store) imageUses(ctx context.Context, where string, args ...any) ([]ImageUse, error) {
	var list []ImageUse
	err := s.read(ctx, func(q query) error {
		return q.each(func(r row) error {
			var u ImageUse
			err := r.Scan(&u.Tenant, &u.Image)
			list = append(list, u)
			return err
		}, "SELECT tenant, image FROM sandboxes WHERE "+where+" UNION SELECT tenant, image FROM snapshots WHERE "+where, append(args[:len(args):len(args)], args...)...)
	})
	return list, err
}
