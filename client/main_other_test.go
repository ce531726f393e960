//go:build !linux

package client_test

import (
	"testing"

	"github.com/paddock-sandbox/paddock/drivertest"
)

func TestMain(m *testing.M) { drivertest.Main(m, (&host{driver: simulated}).open) }
