package gvisor_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// Removing a snapshot frees its disk space. RemoveSnapshot does not remove the saved state
// of a paused sandbox.
func TestRemovingASnapshotTakesThatAlone(t *testing.T) {
	d, _ := driver(t)
	kept := saved(t)
	sb := create(t, d, paddock.Spec{ID: "source"})
	var ids []paddock.SnapshotID
	for _, memory := range []bool{true, false} {
		id, err := sb.Snapshot(t.Context(), paddock.SnapshotOptions{Memory: memory})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if err := sb.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	if now := saved(t); now != kept+2 { // with memory, and paused
		t.Fatalf("%d more", now-kept)
	}
	entries, err := os.ReadDir(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "im-") {
			continue
		}
		id := paddock.SnapshotID(e.Name())
		if err := d.RemoveSnapshot(t.Context(), id); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(filepath.Join(data, e.Name())); err != nil {
			t.Error(err)
		}
		_, err := d.Create(t.Context(), paddock.Spec{Root: paddock.Root{Kind: paddock.RootSnapshot, Snapshot: id}})
		if paddock.KindOf(err) != paddock.NotFound {
			t.Errorf("what it was paused to is a snapshot: %v", err)
		}
	}
	for _, id := range ids {
		if err := d.RemoveSnapshot(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
	if now := saved(t); now != kept+1 {
		t.Errorf("%d are left", now-kept)
	}
	if err := sb.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	run(t, sb, "true")
	if now := saved(t); now != kept {
		t.Errorf("%d are left", now-kept)
	}
}
