package guestkernel

import (
	"errors"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
)

// Such a failure must not make the sandbox's terms remove it.
func TestAPauseForWhichTheHostHasNoPlaceFailsByTheHost(t *testing.T) {
	_, err := Saver{}.save(t.Context(), &box.Life{}, nil, boxinit.OpStop) // it has no directory
	var says interface{ OfHost() bool }
	if !errors.As(err, &says) || !says.OfHost() {
		t.Error(err)
	}
}
