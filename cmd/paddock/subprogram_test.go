//go:build !embedguest

package main

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/cli/auxiliary"
	"github.com/paddock-sandbox/paddock/internal/cli/serve"
)

func TestHelpListsTheCommandsOfSubprogramsAsTheyListThemselves(t *testing.T) {
	for _, row := range []struct {
		listed []cobra.Command
		have   func(*cli.App) []*cobra.Command
	}{{serverCommands(), serve.Commands}, {auxiliaryCommands(), auxiliary.Commands}} {
		have := row.have(invoke(t.TempDir(), nil, nil).App)
		if len(row.listed) != len(have) {
			t.Errorf("%d are listed of %d", len(row.listed), len(have))
		}
		for i, c := range have {
			if l := row.listed[min(i, len(row.listed)-1)]; l.Use != c.Use || l.Short != c.Short {
				t.Errorf("listed as {Use: %q, Short: %q}, and is {Use: %q, Short: %q},", l.Use, l.Short, c.Use, c.Short)
			}
		}
	}
}
