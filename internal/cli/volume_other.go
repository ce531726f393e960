//go:build !linux

package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock"
)

type volumes struct{}

func (a *App) openVolumes(_ *plan, texts []string) (*volumes, error) {
	if len(texts) > 0 {
		return nil, fmt.Errorf("--volume on this system: %w", paddock.Unsupported)
	}
	return nil, nil
}

func (a *App) closeVolumes(*volumes) {}

func (a *App) volumeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "volume",
		Short: "Make, list and remove volumes: named directories that outlive sandboxes",
		RunE: func(*cobra.Command, []string) error {
			return fmt.Errorf("volumes on this system: %w", paddock.Unsupported)
		},
	}
}
