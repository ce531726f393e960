package early

import (
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/driver/sim/wall/spawn"
)

func TestWanted(t *testing.T) {
	for line, want := range map[string]bool{
		"paddock run --tier sim -- echo":          true,
		"paddock run --tier=sim echo":             true,
		"paddock run -v --tier sim":               true,
		"paddock run -- --tier=sim":               false,
		"paddock run -- echo --tier sim":          false,
		"paddock run --tier jail -- sim":          false,
		"paddock run sim":                         false,
		"paddock run":                             false,
		"paddock":                                 false,
		"paddock doctor --tier sim":               false,
		spawn.Name + " run --tier sim":            false,
		"paddock run --workspace sim --tier jail": false,
	} {
		if got := wanted(strings.Fields(line)); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
	if Begun() != nil {
		t.Error("a test has begun a computer")
	}
}
