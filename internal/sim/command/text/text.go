// Package text has the tools of GNU coreutils that print, cut, join and
// translate text by lines and bytes.
package text

import (
	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// Commands lists the tools of this package.
func Commands() []command.Command {
	return []command.Command{
		{Name: "cat", Run: runCat},
		{Name: "head", Run: runHead},
		{Name: "tail", Run: runTail},
		{Name: "wc", Run: runWC},
		{Name: "cut", Run: runCut},
		{Name: "paste", Run: runPaste},
		{Name: "tr", Run: runTr},
		{Name: "tee", Run: runTee},
		{Name: "tac", Run: runTac},
		{Name: "combine", Run: runCombine},
		{Name: "isutf8", Run: runIsUTF8},
		{Name: "less", Aliases: []string{"more"}, Run: runPager},
		{Name: "rev", Run: runRev},
		{Name: "nl", Run: runNl},
		{Name: "fold", Run: runFold},
		{Name: "fmt", Run: runFmt},
		{Name: "expand", Run: runExpand},
		{Name: "unexpand", Run: runUnexpand},
		{Name: "true", Run: runTrue},
		{Name: "false", Run: runFalse},
		{Name: "yes", Run: runYes},
		{Name: "echo", Run: runEcho},
		{Name: "printf", Run: runPrintf},
		{Name: "sleep", Run: runSleep},
		{Name: "split", Run: runSplit},
		{Name: "csplit", Run: runCsplit},
		{Name: "envsubst", Run: runEnvsubst},
		{Name: "sponge", Run: runSponge},
	}
}

// reason gives the words for an error.
func reason(err error) string { return vfs.Message(err) }
