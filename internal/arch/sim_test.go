package arch_test

import (
	"slices"
	"testing"
)

// hosts lists the packages of the simulated tier that may import what reaches
// the machine, and why. All others have a task and nothing else.
func hosts() map[string]map[string]string {
	const names = "names of types and errors alone"
	return map[string]map[string]string{
		"internal/driver/sim":      {"os": "sources of mounts are opened here", "path/filepath": "as os", "net": "a way to the network is handed on"},
		"internal/sim/vfs":         {"os": "what was opened is read here, through os.Root"},
		"internal/driver/sim/wall": {"os": "the process", "os/exec": "the process", "net": "sockets to it", "path/filepath": "as os"},
		"internal/sim/proc":        {"net": names}, "internal/sim/shell": {"net": names},
		"internal/sim/command/fetch":       {"net": names, "net/http": "over the dialer that it is handed"},
		"internal/sim/command/git":         {"os": names},
		"internal/sim/command/python":      {"os": "the interpreter's package is read, and installed", "path/filepath": "as os"},
		"internal/sim/command/commandtest": {"os": "tests", "os/exec": "tests", "path/filepath": "tests"},
	}
}

func TestOnlyAFewPackagesOfTheSimulatedTierReachTheMachine(t *testing.T) {
	packages := list(t)
	for _, name := range packages.own() {
		if !within(name, "internal/driver/sim") && !within(name, "internal/sim") {
			continue
		}
		for _, path := range packages.get(name).Imports {
			if !slices.Contains([]string{"os", "os/exec", "os/user", "os/signal", "net", "net/http", "path/filepath", "io/ioutil", "plugin"}, path) {
				continue
			}
			if _, ok := hosts()[name][path]; !ok {
				t.Errorf("%s imports %s: what a script can reach is what a task gives", name, path)
			}
		}
	}
}
