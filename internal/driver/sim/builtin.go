package sim

import (
	"slices"

	"github.com/paddock-sandbox/paddock/internal/driver/sim/command"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/command/archive"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/command/awk"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/command/calc"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/command/clock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/command/diff"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/command/encode"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/command/fetch"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/command/file"
	finding "github.com/paddock-sandbox/paddock/internal/driver/sim/command/find"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/command/git"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/command/grep"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/command/jq"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/command/layout"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/command/number"
	tasks "github.com/paddock-sandbox/paddock/internal/driver/sim/command/process"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/command/python"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/command/script"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/command/sed"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/command/sort"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/command/sql"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/command/text"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/command/tools"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/command/xan"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/shell"
)

// builtin lists the programs that every computer has.
func builtin(o Options) []command.Command {
	return slices.Concat(
		[]command.Command{{Name: "bash", Aliases: []string{"sh"}, Run: shell.Program}},
		archive.Commands(),
		clock.Commands(),
		diff.Commands(),
		encode.Commands(),
		awk.Commands(),
		file.Commands(),
		fetch.Commands(o.Roots),
		git.Commands(),
		grep.Commands(),
		jq.Commands(),
		number.Commands(),
		sort.Commands(),
		finding.Commands(),
		python.Commands(o.Python),
		script.Commands(o.Tools),
		sed.Commands(),
		tasks.Commands(),
		sql.Commands(),
		calc.Commands(),
		layout.Commands(),
		text.Commands(),
		tools.Commands(o.Tools),
		xan.Commands(),
	)
}
