//go:build !unix

package store

import (
	"fmt"

	"github.com/paddock-sandbox/paddock"
)

// full knows no full disk here.
func full(err error) error { return fmt.Errorf("%w: %w", paddock.Internal, err) }
