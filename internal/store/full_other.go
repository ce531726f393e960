//go:build !unix

package store

import (
	"fmt"

	"github.com/paddock-sandbox/paddock"
)

// full does not recognise a full disk on this system.
func full(err error) error { return fmt.Errorf("%w: %w", paddock.Internal, err) }
