//go:build !linux

package auxiliary

import (
	"fmt"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cli"
)

// vmData is nowhere: the tier needs Linux.
func vmData(*cli.App) (string, error) {
	return "", cli.WithHint(fmt.Errorf("the tier microvm runs on Linux only: %w", paddock.Unsupported), "on this system there is the tier sim")
}
