package budget_test

import (
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/budget"
)

func TestABoundFitsWhatIsCounted(t *testing.T) {
	c := budget.NewCounter("heap", 10)
	if err := c.Add(6); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		limit int64
		fits  bool
		is    int64
	}{{5, false, 10}, {6, true, 6}, {20, true, 20}} {
		if fits := c.Fit(row.limit); fits != row.fits || c.Limit() != row.is {
			t.Errorf("a bound of %d: %v, and it is %d", row.limit, fits, c.Limit())
		}
	}
}
