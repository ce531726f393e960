package box

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
)

// Everything else in the data directory is shown to no sandbox.
func TestOfTheDataDirectoryOnlyHomesOfAgentsAreShown(t *testing.T) {
	for source, want := range map[string]bool{
		"/d/agents/x-1/home/.x": true, "/d/agents/x-1/home/.config/x": true,
		"/d/agents/x-1/home": false, "/d/agents/x-1/base/.x": false, "/d/agents/x-1": false, "/d/agents": false,
		"/d/steps/1/home/x": false, "/d/agents/login/x": false, "/d": false,
	} {
		if got := isAgentHome("/d", source); got != want {
			t.Errorf("%s: %v", source, got)
		}
	}
}

// A driver that keeps its own things elsewhere, as a server does, shows no sandbox the files of agents either.
func TestFilesOfAgentsAreHiddenWhereverADriverKeepsItsOwn(t *testing.T) {
	home := t.TempDir()
	env := environ{"HOME": home, "XDG_DATA_HOME": filepath.Join(home, "data")}
	agents := filepath.Join(defaultData(env, home), "agents")
	if os.Geteuid() == 0 && agents != "/var/lib/paddock/agents" {
		t.Fatal(agents)
	}
	s, err := NewSite(paddock.Jail, Options{State: filepath.Join(home, "state"), Data: filepath.Join(home, "saved"), Environ: []string{"HOME=" + home, "XDG_DATA_HOME=" + filepath.Join(home, "data")}})
	if err != nil {
		t.Fatal(err)
	}
	if s.agents != agents {
		t.Fatalf("hidden are %q and %q, not %q", s.Hidden, s.agents, agents)
	}
	for source, want := range map[string]error{agents: paddock.Denied, agents + "/x/home/.x": paddock.Denied, home + "/work": nil} {
		l := &Layout{data: s.Hidden, agents: s.agents}
		l.Add(boxinit.Mount{Kind: boxinit.MountBind, Source: source, Target: "/m", Cache: true})
		if err := l.ownFiles(); !errors.Is(err, want) {
			t.Errorf("%s: %v", source, err)
		}
	}
	l := &Layout{data: s.Hidden, agents: filepath.Join(home, "data/paddock/agents")}
	l.Add(boxinit.Mount{Kind: boxinit.MountBind, Source: home, Target: "/m"})
	if err := l.ownFiles(); err != nil || !slices.Contains(l.Config.Deny, "/m/data/paddock/agents") {
		t.Errorf("hidden are %q: %v", l.Config.Deny, err)
	}
}
