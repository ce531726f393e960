package box

import "testing"

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
