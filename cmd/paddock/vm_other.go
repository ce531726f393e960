//go:build !linux

package main

import (
	"fmt"

	"github.com/paddock-sandbox/paddock"
)

// vmData is nowhere: the tier needs Linux.
func (a *app) vmData() (string, error) {
	return "", withHint(fmt.Errorf("the tier microvm runs on Linux only: %w", paddock.Unsupported), "on this system there is the tier sim")
}
