package main

import (
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/paddock-sandbox/paddock/internal/testrun/sample"
)

// TestPackagesInAnImage makes an image of real packages, and installs more in it. It takes minutes.
func TestPackagesInAnImage(t *testing.T) {
	sample.Turn(t, "packages", 3)
	if os.Geteuid() != 0 {
		t.Skip("only root makes a file tree with the owners of a distribution")
	}
	if _, err := exec.LookPath("mmdebstrap"); err != nil || !online() {
		t.Skip("mmdebstrap is not installed, or no registry can be reached")
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/package",
		Setup: func(e *testscript.Env) error {
			e.Setenv("NAME", "packages-"+strconv.Itoa(os.Getpid())) // the store is root's, and others may use it now
			return nil
		},
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"reach": reach},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}
