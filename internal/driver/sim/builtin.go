package sim

import (
	"slices"

	"github.com/paddock-sandbox/paddock/internal/driver/sim/toolcommand"
	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/command/archive"
	"github.com/paddock-sandbox/paddock/internal/sim/command/awk"
	"github.com/paddock-sandbox/paddock/internal/sim/command/calc"
	"github.com/paddock-sandbox/paddock/internal/sim/command/column"
	"github.com/paddock-sandbox/paddock/internal/sim/command/date"
	"github.com/paddock-sandbox/paddock/internal/sim/command/diff"
	"github.com/paddock-sandbox/paddock/internal/sim/command/encode"
	"github.com/paddock-sandbox/paddock/internal/sim/command/fetch"
	"github.com/paddock-sandbox/paddock/internal/sim/command/file"
	finding "github.com/paddock-sandbox/paddock/internal/sim/command/find"
	"github.com/paddock-sandbox/paddock/internal/sim/command/git"
	"github.com/paddock-sandbox/paddock/internal/sim/command/grep"
	"github.com/paddock-sandbox/paddock/internal/sim/command/javascript"
	"github.com/paddock-sandbox/paddock/internal/sim/command/jq"
	"github.com/paddock-sandbox/paddock/internal/sim/command/number"
	tasks "github.com/paddock-sandbox/paddock/internal/sim/command/process"
	"github.com/paddock-sandbox/paddock/internal/sim/command/python"
	"github.com/paddock-sandbox/paddock/internal/sim/command/sed"
	"github.com/paddock-sandbox/paddock/internal/sim/command/sort"
	"github.com/paddock-sandbox/paddock/internal/sim/command/sqlite"
	"github.com/paddock-sandbox/paddock/internal/sim/command/text"
	"github.com/paddock-sandbox/paddock/internal/sim/command/xan"
	"github.com/paddock-sandbox/paddock/internal/sim/shell"
)

// builtin lists the programs that every computer has.
func builtin(o Options) []command.Command {
	return slices.Concat(
		[]command.Command{{Name: "bash", Aliases: []string{"sh"}, Run: shell.Program}},
		archive.Commands(),
		date.Commands(),
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
		javascript.Commands(toolcommand.Caller(o.Tools)),
		sed.Commands(),
		tasks.Commands(),
		sqlite.Commands(),
		calc.Commands(),
		column.Commands(),
		text.Commands(),
		toolcommand.Commands(o.Tools),
		xan.Commands(),
	)
}
