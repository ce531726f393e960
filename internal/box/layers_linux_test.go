package box

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func TestAReviewIsRefusedWhereTheKernelHasNoOverlay(t *testing.T) {
	const without, with = "nodev\tproc\n\text4\n", "nodev\tproc\nnodev\toverlay\n"
	for name, c := range map[string]struct {
		filesystems string
		modules     map[string]string
		refused     bool
	}{
		"it is there":              {with, nil, false},
		"a module":                 {without, map[string]string{"modules.dep": "kernel/fs/overlayfs/overlay.ko.xz:\n"}, false},
		"built in, not shown":      {without, map[string]string{"modules.dep": "", "modules.builtin": "kernel/fs/overlayfs/overlay.ko\n"}, false},
		"neither":                  {without, map[string]string{"modules.dep": "kernel/fs/fat/fat.ko:\n", "modules.builtin": ""}, true},
		"neither, and no builtins": {without, map[string]string{"modules.dep": "kernel/fs/fat/fat.ko:\n"}, true},
		"modules that are hidden":  {without, nil, false},
		"a name that ends like it": {"nodev\tnotoverlay\n", map[string]string{"modules.dep": ""}, true},
	} {
		dir := t.TempDir()
		list := filepath.Join(dir, "filesystems")
		if err := os.WriteFile(list, []byte(c.filesystems), 0o600); err != nil {
			t.Fatal(err)
		}
		for file, text := range c.modules {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		err := noOverlay(list, dir)
		if (paddock.KindOf(err) == paddock.Unsupported) != c.refused || (err != nil) != c.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}
