package drivertest

import (
	"path/filepath"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// Private tests that no sandbox sees what the caller keeps to itself. The driver that open returns keeps one directory
// so, and shows another one in it.
func Private(t *testing.T, open func(state, private, shown string) (paddock.Driver, error)) {
	dir := hostTree(t, map[string]string{"kept/key": "secret", "kept/deep/down": "secret", "kept/shown/image/file": "content", "beside": "content"})
	kept, shown := filepath.Join(dir, "kept"), filepath.Join(dir, "kept", "shown")
	s := newSuite(t, Harness{New: func(state string) (paddock.Driver, error) { return open(state, kept, shown) }})
	weak := Weak(t, s.h.New)
	for _, write := range []bool{false, true} {
		if write && !s.info.Can(paddock.CanMountWrite) {
			continue
		}
		b := s.own(t, func(spec *paddock.Spec) {
			spec.AllowMissing, spec.Mounts = weak, []paddock.Mount{{Source: dir, Target: "/shown", Write: write}}
		})
		looks := func(when string) {
			if r := b.sh(t, "cat /shown/kept/key /shown/kept/deep/down /shown/kept/shown/image/file; ls -A /shown/kept"); r.out != "" {
				t.Errorf("writable %v, %s: it shows %q", write, when, r.out)
			}
		}
		looks("at first")
		_ = b.Update(t.Context(), paddock.Update{Policy: &paddock.Policy{}}) // or it is refused
		looks("after a change of the policy")
		b.must(t, "cat /shown/beside")
	}
	b := s.own(t, func(spec *paddock.Spec) {
		spec.AllowMissing, spec.Mounts = weak, []paddock.Mount{{Source: filepath.Join(shown, "image"), Target: "/image"}}
	})
	b.must(t, "cat /image/file")
	for _, m := range []paddock.Mount{
		{Source: filepath.Join(kept, "key"), Target: "/key", Write: true, Cache: true}, {Source: filepath.Join(kept, "deep"), Target: "/deep", Write: true, Cache: true},
	} {
		sb, err := s.driver.Create(t.Context(), paddock.Spec{AllowMissing: weak, Mounts: []paddock.Mount{m}})
		if err == nil {
			t.Errorf("%s is shown as a cache", m.Source)
			s.removeAfter(t, sb)
		}
	}
	for _, source := range []string{kept, filepath.Join(kept, "key"), filepath.Join(kept, "deep")} {
		specs := []paddock.Spec{{AllowMissing: weak, Mounts: []paddock.Mount{{Source: source, Target: "/kept"}}}}
		if s.info.Can(paddock.CanRootDir) && source != filepath.Join(kept, "key") {
			specs = append(specs, paddock.Spec{AllowMissing: weak, Root: paddock.Root{Kind: paddock.RootDir, Path: source}})
		}
		for _, spec := range specs {
			_, err := s.driver.Create(t.Context(), spec)
			wantKind(t, source, err, paddock.Denied)
		}
	}
}
