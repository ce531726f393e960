package file

import (
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/strftime"
)

// zone gives the task's time zone.
func zone(t *kernel.Task) *time.Location { return strftime.Zone(t.Getenv("TZ")) }

// moment writes a time by a format of date(1). One that is too long is cut.
func moment(m time.Time, format string) string {
	b, err := strftime.Append(nil, format, m, strftime.Date)
	if err != nil {
		return ""
	}
	return string(b)
}
