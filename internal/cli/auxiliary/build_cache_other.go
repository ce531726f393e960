//go:build !linux

package auxiliary

import (
	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cli"
)

// buildCaches has none here, where no sandbox builds.
func buildCaches(*cli.App) func(id, target string, write bool) (paddock.Mount, func() error, error) {
	return nil
}
