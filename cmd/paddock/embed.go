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

// What the build put into this program: what stands behind it, each compressed by
// gzip but for the guest, which every first sandbox waits for.
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
	//go:embed tools.bin.gz
	toolsProgram []byte
)

// guestFrom says where the program inside a sandbox is from.
const guestFrom = "embedded"

// part does the part of a sandbox that this program was started for, if it was.
func part() bool {
	return box.Main(jail.Runtime(), gvisor.Runtime(), microvm.Runtime())
}

// embedded gives the programs that sandboxes are made with.
func embedded() tiers.Programs {
	return tiers.Programs{
		Guest:   program.Embedded(tiers.Guest, guestProgram),
		Gateway: program.Embedded(tiers.Gateway, gatewayProgram),
		Keeper:  program.Embedded(tiers.Keeper, keeperProgram),
		GVisor:  program.Embedded(tiers.GVisor, gvisorProgram),
		MicroVM: program.Embedded(tiers.MicroVM, microvmProgram),
		Sim:     program.Embedded(tiers.Sim, simProgram),
	}
}

// A backer is a program behind this one that has some of its commands.
type backer struct {
	program  program.Program
	hand     bool // it is handed the programs that sandboxes are made with
	commands []cobra.Command
}

// backers are the programs that have commands.
func backers() []backer {
	return []backer{
		{program.Embedded("server", serverProgram), true, serverCommands()},
		{program.Embedded("tools", toolsProgram), false, toolCommands()},
	}
}

// commands stand for those that a program behind this one has: they are listed, and
// behind executes them.
func commands(*cli.App) []*cobra.Command {
	var list []*cobra.Command
	for _, b := range backers() {
		for i := range b.commands {
			c := &b.commands[i]
			c.RunE = func(*cobra.Command, []string) error { return b.exec(os.Args[1:]) }
			c.DisableFlagParsing = true
			list = append(list, c)
		}
	}
	return list
}

// behind executes the program that has the command of these arguments, in place of
// this one. It returns nil where the command is this program's own.
func behind(args []string) error {
	at := 0
	if len(args) > 1 && slices.Contains([]string{"help", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd}, args[0]) {
		at = 1
	}
	if len(args) <= at {
		return nil
	}
	for _, b := range backers() {
		for i := range b.commands {
			if b.commands[i].Name() == args[at] {
				return b.exec(args)
			}
		}
	}
	return nil
}

// exec executes the program with these arguments.
func (b backer) exec(args []string) error {
	var others []program.Program
	if b.hand {
		others = embedded().All()
	}
	return b.program.Exec(program.Cache(os.LookupEnv), append([]string{os.Args[0]}, args...), os.Environ(), others...)
}
