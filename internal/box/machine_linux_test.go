package box

import (
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
)

// The host bounds a machine's box when it begins, which is before its layout is
// whole, and again when it goes on, where nothing is left but the layout.
func TestAMachineHasItsOwnMemoryBesideTheLimit(t *testing.T) {
	for what, row := range map[string]struct {
		layout layout
		want   int64
	}{
		"the host's kernel":        {layout{}, 100},
		"a kernel without machine": {layout{config: boxinit.Config{Kernel: &boxinit.KernelConfig{}}}, 100},
		"a machine that begins":    {layout{supply: &Supply{Overhead: 7}}, 107},
		"a machine that is made":   {layout{supply: &Supply{Overhead: 7}, config: boxinit.Config{Kernel: &boxinit.KernelConfig{Overhead: 7}}}, 107},
		"a machine that is kept":   {layout{config: boxinit.Config{Kernel: &boxinit.KernelConfig{Overhead: 7}}}, 107},
	} {
		if got := row.layout.hosted(paddock.Limits{Memory: 100}).Memory; got != row.want {
			t.Errorf("%s: %d, not %d", what, got, row.want)
		}
		if got := row.layout.hosted(paddock.Limits{}).Memory; got != 0 {
			t.Errorf("%s: a limit that is not changed becomes %d", what, got)
		}
	}
}
