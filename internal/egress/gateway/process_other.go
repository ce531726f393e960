//go:build !linux

package gateway

import (
	"fmt"

	"github.com/paddock-sandbox/paddock"
)

func run() error { return fmt.Errorf("a gateway needs Linux: %w", paddock.Unsupported) }
