package box

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// unlayered returns why no mount can have a layer here. Nil means that the kernel has overlayfs, or can load it. Whether a
// directory is on a file system that may be below one, or above, is known when a sandbox is made.
func unlayered() error { return noOverlay("/proc/filesystems", "/lib/modules/"+sys.Release()) }

// noOverlay looks for overlayfs among the kernel's file systems and in its modules. Files that cannot be read, as where the
// modules of another system are hidden, tell nothing, and then the sandbox itself finds out.
func noOverlay(filesystems, modules string) error {
	list, err := os.ReadFile(filesystems)
	if err != nil || bytes.Contains(list, []byte("\toverlay\n")) {
		return nil //nolint:nilerr // as above
	}
	for _, name := range []string{"modules.dep", "modules.builtin"} {
		list, err := os.ReadFile(filepath.Join(modules, name))
		if errors.Is(err, os.ErrNotExist) && name == "modules.builtin" {
			continue
		}
		if err != nil || bytes.Contains(list, []byte("/overlay.ko")) {
			return nil //nolint:nilerr // as above
		}
	}
	return fmt.Errorf("a layer over it needs overlayfs, which this kernel (%s) has neither built in nor as a module; use --undo on in place of --review, or a kernel with CONFIG_OVERLAY_FS: %w", sys.Release(), paddock.Unsupported)
}
