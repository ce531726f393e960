package sys

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
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

// An older kernel refuses a ruleset with a right that it does not know. So what is restricted on it
// is what its version knows.
func TestEveryVersionOfLandlockRestrictsAProcess(t *testing.T) {
	const version, place = "PADDOCK_TEST_LANDLOCK", "PADDOCK_TEST_PLACE"
	if text := os.Getenv(version); text != "" {
		abi, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		dir := os.Getenv(place)
		if err := landlockVersion(abi, []string{dir + "/shown"}, 0); err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(dir + "/shown/file"); err != nil || string(data) != "x" {
			t.Errorf("%q, %v", data, err)
		}
		if f, err := os.Open(dir + "/hidden"); !errors.Is(err, os.ErrPermission) {
			t.Errorf("%v, %v", f, err)
		}
		for what, err := range map[string]error{
			"write": os.WriteFile(dir+"/shown/file", nil, 0o600), "make": os.Mkdir(dir+"/shown/new", 0o700), "remove": os.Remove(dir + "/shown/file"),
			"move": os.Rename(dir+"/shown/file", dir+"/shown/below/file"), "execute": exec.Command("/bin/true").Run(),
		} {
			if err == nil {
				t.Errorf("%s: no error", what)
			}
		}
		return
	}
	have := LandlockABI()
	if have < 1 {
		t.Skip("this kernel has no Landlock")
	}
	dir := t.TempDir()
	err := errors.Join(os.MkdirAll(dir+"/shown/below", 0o755), os.WriteFile(dir+"/shown/file", []byte("x"), 0o644), os.WriteFile(dir+"/hidden", nil, 0o644))
	if err != nil {
		t.Fatal(err)
	}
	for abi := 1; abi <= have; abi++ {
		cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", version, abi), place+"="+dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("version %d: %v\n%s", abi, err, out)
		}
	}
	if err := landlockVersion(0, nil, 0); !errors.Is(err, unix.ENOSYS) {
		t.Errorf("without Landlock: %v", err)
	}
}
