//go:build !linux

package microvm

import "github.com/paddock-sandbox/paddock/internal/container"

func newSupplier(Options) container.Machine { return nil }
