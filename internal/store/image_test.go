package store_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/store"
	"github.com/paddock-sandbox/paddock/internal/store/storetest"
)

func imagesNeeded(t *testing.T, e storetest.Engine) {
	s, ctx := world(t, e), t.Context()
	needs := func(image string, want ...string) {
		t.Helper()
		who, err := s.ImageTenants(ctx, "here", image)
		slices.Sort(who)
		if err != nil || !slices.Equal(who, want) {
			t.Errorf("%s is needed by %q, want %q: %v", image, who, want, err)
		}
	}
	of := func(b store.Sandbox, image, place string) store.Sandbox {
		b.Image, b.Place = image, place
		return b
	}
	add(t, s, of(box("ours", "acme"), "i", "here"))
	add(t, s, of(box("ours-too", "acme"), "i", "here"))
	add(t, s, of(box("theirs", "other"), "i", "here"))
	add(t, s, of(box("away", "other"), "j", "there"))
	add(t, s, box("none", "acme"))
	needs("i", "acme", "other")
	needs("j")
	needs("")
	if b, err := s.Sandbox(ctx, "acme", "ours"); err != nil || b.Image != "i" {
		t.Errorf("%+v, %v", b, err)
	}
	must(t, s.AddSnapshot(ctx, store.Snapshot{ID: "s", Place: "here", Tenant: "other", Image: "i", Created: then}, welcome))
	must(t, s.ForgetSandbox(ctx, "token-theirs"))
	must(t, s.ForgetSandbox(ctx, "token-ours"))
	needs("i", "acme", "other")
	must(t, s.ForgetSandbox(ctx, "token-ours-too"))
	needs("i", "other")
	if uses, err := s.ImageUses(ctx, "here"); err != nil || !reflect.DeepEqual(uses, []store.ImageUse{{Tenant: "other", Image: "i"}}) {
		t.Errorf("%+v, %v", uses, err)
	}
	must(t, s.ForgetSnapshot(ctx, "other", "here", "s"))
	needs("i")
}
