package jail

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
)

// docs/security/threat-model.md says which of the two goes on.
func TestAJournalThatCannotBeWrittenStopsACommandOnlyWhereThatIsAskedFor(t *testing.T) {
	for name, strict := range map[paddock.UndoMode]bool{paddock.UndoOn: false, paddock.UndoStrict: true} {
		t.Run(string(name), func(t *testing.T) {
			dir, work := filepath.Join(t.TempDir(), "steps"), t.TempDir()
			file := filepath.Join(work, "file")
			if err := os.WriteFile(file, []byte("kept"), 0o644); err != nil {
				t.Fatal(err)
			}
			d, err := openRecorded(t.TempDir(), dir)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			sb, err := d.Create(t.Context(), paddock.Spec{
				Ephemeral: true, Undo: name, AllowMissing: drivertest.Weak(t, open), Dir: work, Mounts: []paddock.Mount{{Source: work, Write: true}},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := sb.Remove(t.Context()); err != nil {
					t.Error(err)
				}
			}()
			// As on a full disk, no step can begin any more, for root neither.
			if err := os.RemoveAll(filepath.Join(dir, "log")); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "log"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if p, err := sb.Start(t.Context(), paddock.Cmd{Args: []string{"rm", "file"}}); err == nil {
				if exit, err := p.Wait(t.Context()); err != nil || (exit.Code != 0) != strict {
					t.Errorf("%+v, %v", exit, err)
				}
			} else if !strict {
				t.Errorf("start: %v", err)
			}
			if _, err := os.Lstat(file); (err == nil) != strict {
				t.Errorf("the file: %v", err)
			}
			says, ok := sb.(interface{ Unrecorded() error })
			if !ok || says.Unrecorded() == nil {
				t.Error("nobody is told that it was not recorded")
			}
		})
	}
}
