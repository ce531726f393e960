package box

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// sealedSnapshots takes a directory "paused-…" for a saved box, and one with a seal for a complete one.
type sealedSnapshots struct{ Snapshots }

func (sealedSnapshots) Paused(dir string) (paused, whole bool) {
	_, err := os.Stat(filepath.Join(dir, SealName))
	return strings.HasPrefix(filepath.Base(dir), "paused-"), err == nil
}

// keeperAt returns the keeper of the sandbox whose directory is dir.
func keeperAt(t *testing.T, dir string, a about) *keeper {
	t.Helper()
	held, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = held.Close() })
	return &keeper{dir: dir, directory: newDirectory(dir, held), about: a}
}

// cutOff is a sandbox whose keeper was killed during a pause.
type cutOff struct {
	owner      remoteOwner
	dir, saved string
}

// cutOffPause returns a sandbox whose keeper was killed after it had noted where it saves the box, and whose saved
// box has these files.
func cutOffPause(t *testing.T, files map[string]string) cutOff {
	t.Helper()
	d := &Driver{site: &Site{state: t.TempDir(), Data: t.TempDir()}}
	d.tier.Snapshots = sealedSnapshots{}
	dir, saved := filepath.Join(d.site.state, "sandbox"), filepath.Join(d.site.Data, "paused-x")
	for _, dir := range []string{dir, saved} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := MarkBoot(saved); err != nil {
		t.Fatal(err)
	}
	k := keeperAt(t, dir, about{Created: time.Now()})
	if err := k.saving(saved); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if content == "" {
			data, err := json.Marshal(record{ID: "sandbox", Dir: dir, About: about{Saved: saved}})
			if err != nil {
				t.Fatal(err)
			}
			content = string(data)
		}
		if err := os.WriteFile(filepath.Join(saved, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cutOff{remoteOwner{dir: dir, driver: d, group: noGroup}, dir, saved}
}

func TestAPauseThatWasCutOffLeavesNothingThatReappears(t *testing.T) {
	for name, row := range map[string]struct {
		files map[string]string
		want  paddock.State
	}{
		"nothing was saved":                    {nil, paddock.Dead},
		"a part was saved":                     {map[string]string{"pages": "x"}, paddock.Dead},
		"all was saved":                        {map[string]string{"pages": "x", SealName: "{}"}, paddock.Paused},
		"all was saved, and says for whom":     {map[string]string{"pages": "x", SealName: "{}", recordName: ""}, paddock.Paused},
		"the record alone was written somehow": {map[string]string{recordName: ""}, paddock.Dead},
	} {
		t.Run(name, func(t *testing.T) {
			c := cutOffPause(t, row.files)
			if st, err := c.owner.Standing(t.Context()); err != nil || st.State != row.want {
				t.Errorf("it is %+v, %v", st, err)
			}
			if err := c.owner.remove(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Lstat(c.saved); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("what was saved is left: %v", err)
			}
			if ids, lost, err := c.owner.driver.keptIDs(t.Context()); err != nil || len(ids)+len(lost) != 0 {
				t.Errorf("it reappears: %v, %+v, %v", ids, lost, err)
			}
		})
	}
}

func TestWhatAnotherDriverSavedIsNotRemoved(t *testing.T) {
	c := cutOffPause(t, map[string]string{"pages": "x"})
	c.owner.driver.site.Data = t.TempDir()
	if err := c.owner.remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(c.saved); err != nil {
		t.Error(err)
	}
}

func TestWhatASandboxWasResumedFromIsOfNoUseToOthers(t *testing.T) {
	c := cutOffPause(t, map[string]string{"pages": "x", SealName: "{}", recordName: ""})
	k := keeperAt(t, c.dir, about{Saved: c.saved})
	k.discard() // and the maker was killed
	if _, err := os.Lstat(c.saved); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was saved is left: %v", err)
	}
	if a, err := c.owner.read(); err != nil || a.Saved != "" {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestAKeeperHoldsTheLockOfWhatItResumes(t *testing.T) {
	var p Plan
	var files []*os.File
	dirs := []string{t.TempDir(), t.TempDir()}
	for _, dir := range dirs {
		lock, err := sys.LockDir(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, lock)
	}
	locks, err := (&Tables{Found: true}).fill(&p, files)
	if err != nil || len(locks) != 2 {
		t.Fatalf("%v, %v", locks, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, dir := range dirs {
		if other, err := sys.LockDir(ended, dir); err == nil {
			other.Close()
			t.Error("somebody else gets the lock")
		}
	}
	CloseAll(locks)
	for _, dir := range dirs {
		other, err := sys.LockDir(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		other.Close()
	}
	if _, err := (&Tables{Found: true}).fill(&p, nil); err == nil {
		t.Error("locks that are missing are not missed")
	}
}
