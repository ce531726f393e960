package store_test

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/image"
	"github.com/paddock-sandbox/paddock/internal/image/store"
)

// What is kept outlives the process that keeps it, and each way to remove an image.
func TestAnImageThatIsKeptIsRemovedByNobody(t *testing.T) {
	hub, dir := newShop(t), t.TempDir()
	ref := hub.push(t, "a/b:1", build(t, runtime.GOARCH, archive(t, file{"a", "one", 0})))
	s := open(t, dir, nil)
	img, err := s.Pull(t.Context(), store.Request{Tenant: "acme", Reference: ref, Owner: "templates"})
	if err != nil {
		t.Fatal(err)
	}
	one, two := store.Keeper{Mark: "one", Words: "the server one"}, store.Keeper{Mark: "two", Words: "the server two"}
	ours := store.Kept{Tenant: "acme", Digest: img.Digest}
	for range 2 {
		if err := errors.Join(s.Keep(t.Context(), one, ours), s.Keep(t.Context(), two, ours)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Keep(t.Context(), one, store.Kept{Tenant: "other", Digest: img.Digest}); !errors.Is(err, paddock.NotFound) {
		t.Errorf("of a tenant that has not got it: %v", err)
	}
	s = open(t, dir, nil) // another process
	there := func() bool {
		t.Helper()
		_, err := s.Resolve(t.Context(), "acme", img.Digest)
		return err == nil
	}
	removed := func() {
		t.Helper()
		if err := s.Sweep("acme", "templates", image.FormDir, func(string) bool { return false }); err != nil {
			t.Error(err)
		}
		if _, err := s.Prune(t.Context(), store.Prune{Tenant: "acme", Keep: 1, Now: time.Now()}); err != nil {
			t.Error(err)
		}
	}
	if removed(); !there() {
		t.Fatal("it was removed")
	}
	// Nobody's templates have it any more, and it is named.
	if _, err := s.Pull(t.Context(), store.Request{Tenant: "acme", Reference: ref, Always: true}); err != nil {
		t.Fatal(err)
	}
	if removed(); !there() {
		t.Fatal("it was removed")
	}
	if _, err := s.Remove(t.Context(), "acme", ref); !errors.Is(err, paddock.Conflict) || !strings.Contains(err.Error(), "the server one") || !strings.Contains(err.Error(), "paddock rm") {
		t.Errorf("remove: %v", err)
	}
	if err := s.Free(one, ours); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Remove(t.Context(), "acme", ref); !errors.Is(err, paddock.Conflict) || strings.Contains(err.Error(), "the server one") || !strings.Contains(err.Error(), "the server two") {
		t.Errorf("remove: %v", err)
	}
	// Each keeper settles its own alone.
	if err := errors.Join(s.Free(one, ours), s.Settle(one, nil), s.Settle(two, []store.Kept{ours})); err != nil {
		t.Fatal(err)
	}
	if removed(); !there() {
		t.Fatal("it was removed")
	}
	if err := s.Settle(two, []store.Kept{{Tenant: "other", Digest: img.Digest}}); err != nil {
		t.Fatal(err)
	}
	if removed(); there() {
		t.Error("it is kept by nobody, and stays")
	}
}

func TestATenantThatIsGoneLeavesNoImages(t *testing.T) {
	hub, dir := newShop(t), t.TempDir()
	ref := hub.push(t, "a/b:1", build(t, runtime.GOARCH, archive(t, file{"a", "one", 0})))
	s := open(t, dir, nil)
	for _, who := range []string{"acme", "other"} {
		if _, err := s.Pull(t.Context(), store.Request{Tenant: who, Reference: ref}); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := errors.Join(s.Empty(t.Context(), "acme"), s.Empty(t.Context(), "")); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := s.Images("acme"); err != nil || len(list) > 0 {
		t.Errorf("%+v, %v", list, err)
	}
	if list, err := s.Images("other"); err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("%v, %v", names, err)
	}
	if _, err := s.Pull(t.Context(), store.Request{Tenant: "acme", Reference: ref}); err != nil {
		t.Error(err)
	}
}
