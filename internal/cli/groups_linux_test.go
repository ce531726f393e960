package cli

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A command in a sandbox may have left it in the workspace.
func TestAFIFOInTheProjectDoesNotStopTheListOfGroups(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, ".npmrc"), 0o666); err != nil {
		t.Fatal(err)
	}
	v := invoke(dir, map[string]string{"npm_config_registry": "https://npm.example.com/"}, nil, "policy", "groups")
	if code := v.Run(t.Context()); code != 0 || !strings.Contains(v.Stdout.String(), "npm.example.com") {
		t.Errorf("status %d, %q, %q", code, v.Stdout.String(), v.Stderr.String())
	}
}
