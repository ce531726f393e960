// Package microvmtest provides tests of virtual machines with a kernel and the programs of
// a box with a machine. A test's own program is too large for that.
package microvmtest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/driver/microvm"
	"github.com/paddock-sandbox/paddock/internal/program"
	"github.com/paddock-sandbox/paddock/internal/program/programtest"
)

// KernelVariable names a directory into which `paddock vm setup` has put a kernel. Without
// it, tests use a kernel of this system.
const KernelVariable = "PADDOCK_TEST_KERNEL"

// Build builds the programs for this process and its children, if a machine can be made on
// this host.
func Build() error {
	if microvm.Lack(options()) != nil {
		return nil
	}
	return programtest.Build("paddock-guest", "paddock-microvm")
}

// Options returns the basic options of a test's driver: programs, a kernel, and a directory
// in which templates are kept for later drivers.
func Options() (microvm.Options, error) {
	o := options()
	o.Data, o.Cache = Data(), Data()+"-cache"
	var err error
	if o.Guest, err = Guest(); err != nil {
		return o, err
	}
	o.Init, err = Monitor()
	return o, err
}

// Data is a directory for saved state of test drivers.
func Data() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("paddock-microvm-test-%d", os.Geteuid()))
}

// Guest returns the program that runs in machines. Without Build it is the calling program.
func Guest() (program.Program, error) { return programtest.Program("paddock-guest") }

// Monitor returns the program that runs machines. Without Build it is the calling program.
func Monitor() (program.Program, error) { return programtest.Program("paddock-microvm") }

func options() microvm.Options {
	return microvm.Options{Environ: os.Environ(), Kernels: os.Getenv(KernelVariable)} //nolint:forbidigo // of a test
}

// Need skips a test if no machine can be made, because QEMU or a kernel is missing.
func Need(tb testing.TB) {
	tb.Helper()
	if f := microvm.Lack(options()); f != nil {
		tb.Skipf("no machine can be made: %s; %s", f.Cause, f.Remedy)
	}
}
