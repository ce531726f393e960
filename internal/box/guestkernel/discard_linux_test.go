package guestkernel

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func TestASnapshotThatNobodyTakesIsRemoved(t *testing.T) {
	data := t.TempDir()
	for _, name := range []string{snapshotPrefix + "a", snapshotPrefix + "b", pausedPrefix + "a"} {
		dir := filepath.Join(data, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{checkpointFile, "memory"} {
			if err := os.WriteFile(filepath.Join(dir, file), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := discard(data, snapshotPrefix+"a"); err != nil {
		t.Error(err)
	}
	for _, id := range []paddock.SnapshotID{"", ".", "..", pausedPrefix + "a", snapshotPrefix + "b/../" + snapshotPrefix + "b"} {
		if err := discard(data, id); err == nil {
			t.Errorf("%q was taken for a snapshot", id)
		}
	}
	entries, err := os.ReadDir(data)
	if err != nil || len(entries) != 2 {
		t.Errorf("left are %v, %v", entries, err)
	}
}
