// Package microvmtest gives tests of machines what they are made of: the programs
// that a box with a machine runs, which a test's own program is too large to be,
// and a kernel.
package microvmtest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/driver/microvm"
	"github.com/paddock-sandbox/paddock/internal/program"
)

const (
	// Variable names the directory of the programs, for processes of tests.
	Variable = "PADDOCK_TEST_MACHINE"

	// KernelVariable names a directory that `paddock vm setup` has put a kernel
	// into. Without it the kernel is the one of this system.
	KernelVariable = "PADDOCK_TEST_KERNEL"
)

const module = "github.com/paddock-sandbox/paddock/cmd/"

// programs are all that a machine needs.
func programs() []string { return []string{"paddock-guest", "paddock-microvm"} }

// Build builds the programs for this process and those that it starts, where a
// machine can be made. A process whose maker has built them builds nothing.
func Build() error {
	if os.Getenv(Variable) != "" || microvm.Lack(options()) != nil { //nolint:forbidigo // of a test
		return nil
	}
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("paddock-microvm-programs-%d", os.Geteuid()))
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	// Its name can be foreseen, and what is in it is executed.
	switch st, err := os.Lstat(dir); {
	case err != nil:
		return err
	case !st.IsDir() || st.Mode().Perm()&0o022 != 0 || !mine(st):
		return fmt.Errorf("%s is not this user's alone; remove it", dir)
	}
	for _, name := range programs() {
		bin := filepath.Join(dir, fmt.Sprintf("%s-%d", name, os.Getpid()))
		cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", bin, module+name)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", name, err, out)
		}
		// The same file for all: a later run replaces it.
		if err := os.Rename(bin, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return os.Setenv(Variable, dir)
}

// mine tells whether a file is this user's.
func mine(st fs.FileInfo) bool {
	sys, ok := st.Sys().(*syscall.Stat_t)
	return ok && int(sys.Uid) == os.Geteuid()
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
	o.Monitor, err = Monitor()
	return o, err
}

// Data is a directory for what drivers of tests save.
func Data() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("paddock-microvm-test-%d", os.Geteuid()))
}

// Guest gives the program that runs in machines. It is the calling one where Build
// has built nothing.
func Guest() (program.Program, error) {
	data, err := built("paddock-guest")
	return program.Embedded("guest", data), err
}

// Monitor gives the program that runs machines, likewise.
func Monitor() (program.Program, error) {
	data, err := built("paddock-microvm")
	return program.Embedded("microvm", data), err
}

func built(name string) ([]byte, error) {
	dir := os.Getenv(Variable) //nolint:forbidigo // Build has set it
	if dir == "" {
		return nil, nil
	}
	return os.ReadFile(filepath.Join(filepath.Clean(dir), name)) //nolint:gosec // Build has set it
}

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
