package date

import (
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
)

func FuzzDate(f *testing.F) {
	f.Add("2024-01-15 +1 day", "%F %-5T%%")
	f.Add("@0", "%N%:z")
	f.Fuzz(func(t *testing.T, date, format string) {
		commandtest.Fuzz(t, Commands(), date, "date", "-f", "-", "+"+format)
		commandtest.Fuzz(t, Commands(), "", "cal", date)
	})
}
