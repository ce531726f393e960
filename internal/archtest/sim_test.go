package archtest_test

import (
	"slices"
	"testing"
)

// hosts lists the packages of the simulated tier that may import what reaches
// the machine, and why. All others have a task and nothing else.
func hosts() map[string]map[string]string {
	const names = "names of types and errors alone"
	return map[string]map[string]string{
		"internal/driver/sim":                 {"os": "sources of mounts are opened here", "path/filepath": "as os", "net": "a way to the network is handed on"},
		"internal/sim/vfs":                    {"os": "what was opened is read here, through os.Root"},
		"internal/driver/sim/parent":          {"os": "the process", "net": "sockets to it"},
		"internal/driver/sim/parent/protocol": {"os": "errors of deadlines", "net": "the socket"},
		"internal/driver/sim/child":           {"os": "the process", "net": "sockets to the host", "path/filepath": "as os"},
		"internal/sim/kernel":                 {"net": names}, "internal/sim/shell": {"net": names},
		"internal/sim/command/fetch":       {"net": names, "net/http": "over the dialer that it is handed"},
		"internal/sim/command/git":         {"os": names + ", and of flags"},
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

// The engine can become a module of its own: it imports nothing of this module
// outside of its tree, not even the vocabulary.
func TestTheSimulatedEngineStandsAlone(t *testing.T) {
	packages := list(t)
	for _, name := range packages.own() {
		if !within(name, "internal/sim") {
			continue
		}
		for _, path := range packages.get(name).Imports {
			if other, ours := below(path); ours && !within(other, "internal/sim") {
				t.Errorf("%s imports %s, which is not of the engine", name, other)
			}
		}
	}
}

// The programs of a simulated computer see Linux's numbers on every host, so
// the engine has its own. Those of the host belong to the border alone.
func TestTheSimulatedEngineHasNumbersOfItsOwn(t *testing.T) {
	border := []string{
		"internal/sim/linux",               // translates the host's errors
		"internal/sim/vfs",                 // reads mounts of the host
		"internal/sim/command/python",      // asks who owns the files of the interpreter
		"internal/sim/command/commandtest", // starts the real tools, for tests
	}
	packages := list(t)
	for _, name := range packages.own() {
		if within(name, "internal/sim") && slices.Contains(packages.get(name).Imports, "syscall") && !slices.Contains(border, name) {
			t.Errorf("%s imports syscall: take the numbers of internal/sim/linux", name)
		}
	}
}
