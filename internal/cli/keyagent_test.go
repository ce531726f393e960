package cli

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// What a sandbox wrote into a directory of PATH is not run outside to find the caller's agent.
func TestTheGpgconfOfAWorkspaceIsNotRun(t *testing.T) {
	d := newHookHome(t)
	planted := filepath.Join(d.home, "planted")
	Plant(t, filepath.Join(d.project, ".venv/bin/gpgconf"), "#!/bin/sh\ntouch "+planted+"\necho "+d.home+"/sock\n", 0o755)
	path := filepath.Join(d.project, ".venv/bin") + ":" + os.Getenv("PATH")
	t.Setenv("PATH", path)
	env := map[string]string{"HOME": d.home, "GNUPGHOME": filepath.Join(d.home, "none"), "PATH": path}
	v := invoke(d.project, env, nil, "run", "-w", ".", "--forward-agent", "gpg", "--", "true")
	if status := v.Run(t.Context()); status == 0 {
		t.Errorf("there is an agent: %s", v.Stderr.String())
	}
	if _, err := os.Lstat(planted); err == nil {
		t.Error("the workspace's gpgconf ran outside")
	}
}

// A configuration of GnuPG names programs, so one that a sandbox writes is not obeyed.
func TestAConfigurationOfGnuPGInAWorkspaceIsRefused(t *testing.T) {
	if _, err := systemProgram("gpgconf", nil); err != nil {
		t.Skip("there is no GnuPG")
	}
	d := newHookHome(t)
	a := &App{Lookup: func(name string) (string, bool) {
		v, ok := map[string]string{"HOME": d.home, "GNUPGHOME": filepath.Join(d.project, "gnupg")}[name]
		return v, ok
	}}
	_, err := gpgAgent(a, []paddock.Mount{{Source: d.project, Target: d.project, Write: true}})
	if !errors.Is(err, paddock.Denied) {
		t.Errorf("%v", err)
	}
}

// A program of the system that a mount exposes is not run either.
func TestAProgramThatAMountExposesIsRefused(t *testing.T) {
	t.Parallel()
	mounts := []paddock.Mount{{Source: "/usr", Target: "/usr", Write: true}, {Source: "/bin", Target: "/bin", Write: true}}
	if _, err := systemProgram("sh", mounts); !errors.Is(err, paddock.Denied) {
		t.Errorf("%v", err)
	}
}
