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

func TestWhatIsOwedIsCountedOverTheLimit(t *testing.T) {
	c := budget.NewCounter("heap", 10)
	if err := c.Add(8); err != nil {
		t.Fatal(err)
	}
	c.Owe(5)
	if c.Used() != 13 || c.Peak() != 13 {
		t.Errorf("%d are counted, at most %d", c.Used(), c.Peak())
	}
	if c.Add(1) == nil {
		t.Error("more is had above the limit")
	}
	if err := c.Add(-13); err != nil || c.Used() != 0 {
		t.Errorf("%d are counted after all were given back: %v", c.Used(), err)
	}
}
