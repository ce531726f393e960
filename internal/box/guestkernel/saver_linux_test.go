package guestkernel

import (
	"errors"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/box"
)

// Such a failure must not make the sandbox's terms remove it.
func TestAPauseForWhichTheHostHasNoPlaceFailsByTheHost(t *testing.T) {
	err := Saver{}.Pause(t.Context(), &box.Life{}) // it has no directory
	var says interface{ OfHost() bool }
	if !errors.As(err, &says) || !says.OfHost() {
		t.Error(err)
	}
}
