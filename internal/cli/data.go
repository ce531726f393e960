package cli

import (
	"path/filepath"

	"github.com/paddock-sandbox/paddock/internal/private"
	"github.com/paddock-sandbox/paddock/internal/program"
)

// PythonDir returns the directory of the Python interpreter of the tier sim. It is empty if the
// caller has no cache directory.
func PythonDir(lookup func(string) (string, bool)) string {
	cache := program.Cache(lookup)
	if cache == "" {
		return ""
	}
	return filepath.Join(cache, "python")
}

// volumesDir returns the directory of the caller's volumes. Internal/box, which hides it, knows this place, too.
func (a *App) volumesDir() (string, error) {
	dir, err := a.Data()
	if err != nil {
		return "", err
	}
	return private.RealPath(dir) + "-volumes", nil
}

// VolumesDir is volumesDir for commands of other packages.
func (a *App) VolumesDir() (string, error) { return a.volumesDir() }

// ImagesDir returns the directory of the caller's images. It is beside the data directory, because no sandbox sees that.
// Internal/box, which hides it, knows this place, too.
func (a *App) ImagesDir() (string, error) {
	dir, err := a.Data()
	if err != nil {
		return "", err
	}
	return private.Images(dir), nil
}
