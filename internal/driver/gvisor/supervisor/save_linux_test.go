package supervisor

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/boxinit"
)

// Package os closes a file that nobody refers to any more.
func TestTheFirstLayerStaysOpen(t *testing.T) {
	var s supervisor
	name, err := s.beginsWith(&boxinit.GuestKernelConfig{ImageFile: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.Readlink(name)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		runtime.GC()
	}
	if now, err := os.Readlink(name); err != nil || now != before || !strings.Contains(now, "memfd:") {
		t.Errorf("it was %s, and is %s: %v", before, now, err)
	}
	runtime.KeepAlive(&s)
}
