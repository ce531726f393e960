package kernel

import (
	"errors"
	"os"
	"testing"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

func TestARuleIsNotMadeThroughALink(t *testing.T) {
	if LandlockABI() < 1 {
		t.Skip("this kernel has no Landlock")
	}
	ruleset, err := ll.LandlockCreateRuleset(&ll.RulesetAttr{HandledAccessFS: ll.AccessFSReadFile}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(ruleset)
	dir := t.TempDir()
	if err := errors.Join(os.MkdirAll(dir+"/real/below", 0o755), os.Symlink("real", dir+"/link")); err != nil {
		t.Fatal(err)
	}
	if err := landlockReal(ruleset, ll.AccessFSReadFile, dir+"/real/below"); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"/link", "/link/below"} {
		if err := landlockReal(ruleset, ll.AccessFSReadFile, dir+name); !errors.Is(err, unix.ELOOP) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
