//go:build !linux

package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock"
)

type caches struct{}

// caches are none: no tier of this system has mounts that can be written.
func (a *App) caches(*plan) *caches { return nil }

func (a *App) closeCaches(*caches) {}

func (a *App) cacheCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cache",
		Short: "List and remove the caches that build tools keep between runs",
		RunE: func(*cobra.Command, []string) error {
			return fmt.Errorf("caches of build tools on this system: %w", paddock.Unsupported)
		},
	}
}
