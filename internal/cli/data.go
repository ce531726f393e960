package cli

import (
	"path/filepath"

	"github.com/paddock-sandbox/paddock/internal/program"
)

// PythonDir names the directory of the interpreter, or is empty where the
// caller has no place for it.
func PythonDir(lookup func(string) (string, bool)) string {
	cache := program.Cache(lookup)
	if cache == "" {
		return ""
	}
	return filepath.Join(cache, "python")
}
