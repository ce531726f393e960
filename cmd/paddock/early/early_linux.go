// Package early starts the process of a simulated computer before the program
// is initialised, where its arguments ask for one: initialising all packages
// takes longer than anything else that `paddock run --tier sim` does, and has
// to happen in both processes; so it happens in both at once. It imports next
// to nothing, so that Go initialises it among the first. docs/why/sim.md has
// the reasons.
package early

import (
	"os"

	"github.com/paddock-sandbox/paddock/internal/driver/sim/wall/spawn"
)

//nolint:gochecknoglobals // a variable's initialisation is all that comes before main; it never changes
var begun = begin(os.Args)

// Begun gives the process that was started, or nil. Whoever calls it owns it,
// so it is called once.
func Begun() *spawn.Process { return begun }

// begin guesses from the arguments, without knowing all flags: a process that
// is not wanted after all is ended, and one that is missing is started later.
// One that cannot be started is tried again later as well, and the error told.
func begin(args []string) *spawn.Process {
	if !wanted(args) {
		return nil
	}
	p, err := spawn.Start()
	if err != nil {
		return nil
	}
	return &p
}

func wanted(args []string) bool {
	if len(args) < 3 || args[0] == spawn.Name || args[1] != "run" {
		return false
	}
	for i, a := range args[2:] {
		switch {
		case a == "--":
			return false
		case a == "--tier=sim", a == "sim" && args[i+1] == "--tier":
			return true
		}
	}
	return false
}
