package e2b

import (
	"fmt"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func TestErrorsOfTheControlPlaneHaveShortTexts(t *testing.T) {
	long := strings.Repeat("\x7f", 1<<20)
	for _, err := range []error{invalid("%q", long), fmt.Errorf("%q: %w", long, paddock.Exists)} {
		if f := faultOf(err); len(f.Message) > 4<<10 {
			t.Errorf("%d: %d bytes", f.Code, len(f.Message))
		}
	}
}
