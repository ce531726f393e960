//go:build !unix

package cli

import (
	"fmt"
	"os"

	"github.com/paddock-sandbox/paddock"
)

// holdImage is of systems with tiers.
func holdImage(ImageRoot) (*os.File, error) {
	return nil, fmt.Errorf("no tier begins with an image here: %w", paddock.Unsupported)
}
