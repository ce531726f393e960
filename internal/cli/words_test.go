package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cli/fake"
)

// A teller answers Open with an error.
type teller struct {
	fake.Fake
	err error
}

func (t *teller) Open(context.Context, paddock.ID) (paddock.Sandbox, error) { return nil, t.err }

func TestASandboxThatIsNotThereIsToldOnce(t *testing.T) {
	for _, row := range []struct{ err, want string }{
		{"open sandbox x: status: open sandbox x", "there is no sandbox x"},
		{`open sandbox x: status: open sandbox "x"`, "there is no sandbox x"},
		{"open sandbox x: status: sandbox x was removed as its deadline was over", "sandbox x was removed as its deadline was over"},
	} {
		r := &Remote{Driver: &teller{err: fmt.Errorf("%s: %w", row.err, paddock.NotFound)}}
		_, err := r.Open(t.Context(), "x")
		if message, hint := words(err); message != row.want || hint != "paddock ls lists those that are there" || !errors.Is(err, paddock.NotFound) {
			t.Errorf("%s: %q, hint %q", row.err, message, hint)
		}
	}
	if message, _ := words(fmt.Errorf(`stat "/f": stat "/f": %w`, paddock.NotFound)); message != `stat "/f": not found` {
		t.Errorf("%q", message)
	}
	if _, hint := words(fmt.Errorf("list sandboxes: the key is missing: %w", paddock.Denied)); !strings.Contains(hint, "PADDOCK_KEY") {
		t.Errorf("%q", hint)
	}
	if _, hint := words(fmt.Errorf("sandbox x is paused: %w", paddock.Conflict)); hint != "paddock resume ID lets it go on" {
		t.Errorf("%q", hint)
	}
}
