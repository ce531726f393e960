// Package microvmtest gives tests of virtual machines a kernel and the programs that a box with a
// machine runs. A test's own program is too large to serve as one of them.
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

// KernelVariable names a directory that `paddock vm setup` has put a kernel
// into. Without it the kernel is the one of this system.
const KernelVariable = "PADDOCK_TEST_KERNEL"

// Build makes the programs ready for this process and those that it starts, where a
// machine can be made.
func Build() error {
	if microvm.Lack(options()) != nil {
		return nil
	}
	return programtest.Build("paddock-guest", "paddock-microvm")
}

// Options are what a driver of tests begins with: programs, a kernel, and a
// directory where templates stay from one driver to the next.
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

// Data is a directory for what drivers of tests save.
func Data() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("paddock-microvm-test-%d", os.Geteuid()))
}

// Guest gives the program that runs in machines. It is the calling one where Build
// has built nothing.
func Guest() (program.Program, error) { return programtest.Program("paddock-guest") }

// Monitor gives the program that runs machines, likewise.
func Monitor() (program.Program, error) { return programtest.Program("paddock-microvm") }

func options() microvm.Options {
	return microvm.Options{Environ: os.Environ(), Kernels: os.Getenv(KernelVariable)} //nolint:forbidigo // of a test
}

// Need skips a test where no machine can be made, which is where QEMU or a kernel
// is missing.
func Need(tb testing.TB) {
	tb.Helper()
	if f := microvm.Lack(options()); f != nil {
		tb.Skipf("no machine can be made: %s; %s", f.Cause, f.Remedy)
	}
}
