package boxinit

import (
	"strings"
	"testing"
)

// The box ends then, and what ends it must not be lost.
func TestAPanicOfTheBrokerIsTold(t *testing.T) {
	said := ""
	b := &broker{fail: func(err error) { said = err.Error() }}
	func() {
		defer b.caught()
		(*call)(nil).send(done)
	}()
	if !strings.Contains(said, "nil pointer") {
		t.Errorf("%q", said)
	}
	said = ""
	func() { defer b.caught() }()
	if said != "" {
		t.Errorf("without a panic: %q", said)
	}
}
