//go:build !linux

package netstack

import (
	"fmt"
	"os"

	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"github.com/paddock-sandbox/paddock"
)

func newEndpoint(*os.File, uint32, func()) (stack.LinkEndpoint, error) {
	return nil, fmt.Errorf("packets of a descriptor: only on Linux: %w", paddock.Unsupported)
}

func keep(*os.File) error { return nil }
