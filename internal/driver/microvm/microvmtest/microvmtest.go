// Package microvmtest gives tests what machines are made of: the guest program,
// which a test's own program is too large to be, and a kernel.
package microvmtest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/driver/microvm"
)

// Variable names the file of the guest program, for processes of tests.
const Variable = "PADDOCK_TEST_GUEST"

// Build builds the guest program for this process and those that it starts. A
// process whose maker has built it builds nothing.
func Build() error {
	if os.Getenv(Variable) != "" { //nolint:forbidigo // of a test
		return nil
	}
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("paddock-test-guest-%d", os.Geteuid()))
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	bin := filepath.Join(dir, fmt.Sprintf("guest-%d", os.Getpid()))
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", bin, "github.com/paddock-sandbox/paddock/cmd/paddock-guest")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the guest program: %w\n%s", err, out)
	}
	// The same file for all: a later run replaces it.
	name := filepath.Join(dir, "guest")
	return errors.Join(os.Rename(bin, name), os.Setenv(Variable, name))
}

// Data is a directory for what drivers of tests save, where templates stay from
// one driver to the next.
func Data() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("paddock-microvm-test-%d", os.Geteuid()))
}

// Guest gives the program that Build has built.
func Guest() ([]byte, error) {
	return os.ReadFile(filepath.Clean(os.Getenv(Variable))) //nolint:gosec,forbidigo // Build has set it
}

// Need skips a test where no machine can be made, which is where QEMU or a kernel
// is missing.
func Need(tb testing.TB) {
	tb.Helper()
	if f := microvm.Lack(microvm.Options{Environ: os.Environ()}); f != nil {
		tb.Skipf("no machine can be made: %s; %s", f.Cause, f.Remedy)
	}
}
