package attack

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/paddock-sandbox/paddock/attack/protocol"
)

func TestARepositoryThatWasMovedIsNotOneThatIsGone(t *testing.T) {
	for name, c := range map[string]struct {
		change func(dir string) error
		want   []string // below the workspace
	}{
		"moved":    {func(dir string) error { return os.Rename(dir+"/nested", dir+"/moved") }, nil},
		"no hooks": {func(dir string) error { return os.RemoveAll(dir + "/nested/.git/hooks") }, []string{"/nested/.git/hooks is gone", "/nested/.git/hooks/post-checkout is gone"}},
		"a new one": {func(dir string) error {
			return errors.Join(os.MkdirAll(dir+"/new/.git/hooks", 0o755), os.WriteFile(dir+"/new/.git/config", []byte("[core]\n\tbare = false\n"), 0o644), os.WriteFile(dir+"/new/.git/hooks/update.sample", nil, 0o755))
		}, nil},
		"a new one with a hook": {func(dir string) error {
			return errors.Join(os.MkdirAll(dir+"/new/.git/hooks", 0o755), os.WriteFile(dir+"/new/.git/hooks/update", nil, 0o755))
		}, []string{"/new/.git/hooks/update is new"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := errors.Join(os.MkdirAll(dir+"/nested/.git/hooks", 0o755), os.WriteFile(dir+"/nested/.git/config", []byte("[core]\n\tpager = x\n"), 0o644), os.WriteFile(dir+"/nested/.git/hooks/post-checkout", []byte("x"), 0o755)); err != nil {
				t.Fatal(err)
			}
			none := filepath.Join(dir, "none")
			w := &world{brief: protocol.Brief{Work: dir, DenyReadDir: none, DenyReadFile: none, DenyWriteDir: none, DenyWrite: none, DenyDeep: none}}
			var err error
			if w.work, err = w.walk(dir, ""); err != nil {
				t.Fatal(err)
			}
			if err := c.change(dir); err != nil {
				t.Fatal(err)
			}
			for i := range c.want {
				c.want[i] = dir + c.want[i]
			}
			if got := w.workChanges(); !slices.Equal(got, c.want) {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}
