package store_test

import (
	"reflect"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/store"
	"github.com/paddock-sandbox/paddock/internal/store/storetest"
)

func notesOfADialect(t *testing.T, e storetest.Engine) {
	s, ctx := world(t, e), t.Context()
	n := store.NotesOf(s, "here", "e2b")
	must(t, n.Keep(ctx, "sandbox", "acme", "b", "old"))
	must(t, n.Keep(ctx, "sandbox", "acme", "b", "new"))
	must(t, n.Keep(ctx, "sandbox", "acme", "a", "\x00{}"))
	must(t, n.Keep(ctx, "sandbox", "other", "b", "theirs"))
	must(t, n.Keep(ctx, "template", "acme", "b", "of another kind"))
	must(t, store.NotesOf(s, "there", "e2b").Keep(ctx, "sandbox", "acme", "b", "elsewhere"))
	must(t, store.NotesOf(s, "here", "another").Keep(ctx, "sandbox", "acme", "b", "of another dialect"))

	all := func() (list []string) {
		must(t, n.Each(ctx, "sandbox", func(tenant, id, data string) error {
			list = append(list, tenant+" "+id+" "+data)
			return nil
		}))
		return list
	}
	if got, want := all(), []string{"acme a \ufffd{}", "acme b new", "other b theirs"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q", got)
	}
	for range 2 {
		must(t, n.Forget(ctx, "sandbox", "acme", "b"))
	}
	must(t, s.RemoveTenant(ctx, "other"))
	if got, want := all(), []string{"acme a \ufffd{}"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q", got)
	}
	if err := n.Keep(ctx, "sandbox", "nobody", "b", ""); err == nil {
		t.Error("a note of a tenant that is not there")
	}
}
