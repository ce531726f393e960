package supervisor

import (
	"slices"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/boxinit"
)

func TestTheSentryGetsTheSizesOfTheBox(t *testing.T) {
	args := []string{"runsc-sandbox", "boot", "--total-host-memory", "1000", "--total-memory", "1000", "box"}
	for _, row := range []struct {
		sizes boxinit.Sizes
		want  []string
	}{
		{boxinit.Sizes{}, args},
		{boxinit.Sizes{Memory: 2000, Processors: 4}, args},
		{boxinit.Sizes{Memory: 500, Processors: 3}, []string{"runsc-sandbox", "boot", "--total-host-memory", "1000", "--cpu-num", "3", "--total-memory", "500", "box"}},
	} {
		got, err := sizedTo(args, row.sizes, 4)
		if err != nil || !slices.Equal(got, row.want) {
			t.Errorf("%+v: %q, %v", row.sizes, got, err)
		}
	}
	for _, bad := range [][]string{{"boot"}, {"boot", "--total-memory"}, {"boot", "--total-memory", "much"}} {
		if got, err := sizedTo(bad, boxinit.Sizes{Memory: 1}, 4); err == nil {
			t.Errorf("%q is taken: %q", bad, got)
		}
	}
}
