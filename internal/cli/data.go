package cli

import (
	"path/filepath"

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

// ImagesDir returns the directory of the caller's images. It is beside the data directory, because no sandbox sees that.
func (a *App) ImagesDir() (string, error) {
	dir, err := a.Data()
	if err != nil {
		return "", err
	}
	return dir + "-images", nil
}
