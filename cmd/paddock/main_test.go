package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	if runPart() {
		os.Exit(0) // this was a part of a sandbox of a test
	}
	testscript.Main(m, map[string]func(){"paddock": main})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(e *testscript.Env) error {
			// Everyone may enter: the scripts also run as someone else.
			return os.Chmod(e.WorkDir, 0o755)
		},
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"registry": serveRegistry},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}
