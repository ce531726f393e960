//go:build embedguest && linux

package main

import (
	_ "embed"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock/cmd/internal/tiers"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor"
	"github.com/paddock-sandbox/paddock/internal/driver/jail"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm"
	"github.com/paddock-sandbox/paddock/internal/program"
)

// The programs that the build embeds in this one. All but the guest are compressed by gzip. The first
// sandbox after an installation waits for the guest, so the guest needs no decompression.
var (
	//go:embed guest.bin
	guestProgram []byte
	//go:embed gvisor.bin.gz
	gvisorProgram []byte
	//go:embed gateway.bin.gz
	gatewayProgram []byte
	//go:embed keeper.bin.gz
	keeperProgram []byte
	//go:embed microvm.bin.gz
	microvmProgram []byte
	//go:embed server.bin.gz
	serverProgram []byte
	//go:embed sim.bin.gz
	simProgram []byte
	//go:embed auxiliary.bin.gz
	auxiliaryProgram []byte
)

// guestFrom is where this build has the guest program from, for `paddock version`.
const guestFrom = "embedded"

// runPart runs the part of a sandbox that this process was started as. It returns false if the process was
// started as the command line.
func runPart() bool {
	return program.Renew(program.Cache(os.LookupEnv), func() []program.Program { return embedded().All() }) || box.Main(jail.Runtime(), gvisor.Runtime(), microvm.Runtime())
}

// embedded returns the programs that sandboxes are made with.
func embedded() tiers.Programs {
	return tiers.Programs{
		Guest:   program.Embedded(tiers.Guest, guestProgram),
		Agent:   program.Embedded(tiers.Agent, guestProgram),
		Gateway: program.Embedded(tiers.Gateway, gatewayProgram),
		Keeper:  program.Embedded(tiers.Keeper, keeperProgram),
		GVisor:  program.Embedded(tiers.GVisor, gvisorProgram),
		MicroVM: program.Embedded(tiers.MicroVM, microvmProgram),
		Sim:     program.Embedded(tiers.Sim, simProgram),
	}
}

// A subprogram is an embedded program that implements some of paddock's commands.
type subprogram struct {
	program  program.Program
	hand     func(command string, all tiers.Programs) []program.Program // the programs that it receives for a command
	commands []cobra.Command
}

// subprograms lists all of them.
func subprograms() []subprogram {
	return []subprogram{
		{program.Embedded("server", serverProgram), func(_ string, all tiers.Programs) []program.Program { return all.All() }, serverCommands()},
		{program.Embedded("auxiliary", auxiliaryProgram), auxiliaryPrograms, auxiliaryCommands()},
	}
}

// commands returns a command for each command of a subprogram. `paddock help` lists it, and it executes the
// subprogram.
func commands(*cli.App) []*cobra.Command {
	var list []*cobra.Command
	for _, b := range subprograms() {
		for i := range b.commands {
			c := &b.commands[i]
			c.RunE = func(c *cobra.Command, _ []string) error { return b.exec(c.Name(), os.Args[1:]) }
			c.DisableFlagParsing = true
			list = append(list, c)
		}
	}
	return list
}

// execSubprogram replaces this process by the subprogram that implements the command in args. It returns nil if
// the command is implemented here, and an error if the subprogram cannot be executed.
func execSubprogram(args []string) error {
	at := 0
	if len(args) > 1 && slices.Contains([]string{"help", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd}, args[0]) {
		at = 1
	}
	if len(args) <= at {
		return nil
	}
	for _, b := range subprograms() {
		for i := range b.commands {
			if b.commands[i].Name() == args[at] {
				return b.exec(args[at], args)
			}
		}
	}
	return nil
}

// auxiliaryPrograms are those that sandboxes are made with for build. With any of them it knows the file of this program,
// which it starts as the caller's own server.
func auxiliaryPrograms(command string, all tiers.Programs) []program.Program {
	if command == "build" {
		return all.All()
	}
	return []program.Program{all.Guest}
}

// exec replaces this process by the subprogram, with args, which have the name of one of its commands.
func (b subprogram) exec(name string, args []string) error {
	return b.program.Exec(program.Cache(os.LookupEnv), append([]string{os.Args[0]}, args...), os.Environ(), b.hand(name, embedded())...)
}
