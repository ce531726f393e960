package auxiliary

import (
	"path/filepath"

	"github.com/paddock-sandbox/paddock/internal/cli"
)

// vmData is where kernels for machines are set up: where the tier looks.
func vmData(a *cli.App) (string, error) {
	dir, err := cli.DataDir(a.Lookup)
	return filepath.Join(dir, "vm"), err
}
