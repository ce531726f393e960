// Package file has the tools of GNU coreutils that create, move, describe and
// remove files.
package file

import "github.com/paddock-sandbox/paddock/internal/sim/command"

// Commands lists the tools of this package.
func Commands() []command.Command {
	return []command.Command{
		{Name: "basename", Run: runBasename},
		{Name: "chgrp", Run: runChgrp},
		{Name: "chmod", Run: runChmod},
		{Name: "chown", Run: runChown},
		{Name: "cp", Run: runCp},
		{Name: "dd", Run: runDd},
		{Name: "df", Run: runDf},
		{Name: "dirname", Run: runDirname},
		{Name: "du", Run: runDu},
		{Name: "file", Run: runFile},
		{Name: "install", Run: runInstall},
		{Name: "link", Run: runLink},
		{Name: "ln", Run: runLn},
		{Name: "ls", Aliases: []string{"dir", "vdir"}, Run: runLs},
		{Name: "mkdir", Run: runMkdir},
		{Name: "mkfifo", Run: runMkfifo},
		{Name: "mknod", Run: runMknod},
		{Name: "mktemp", Run: runMktemp},
		{Name: "mv", Run: runMv},
		{Name: "pathchk", Run: runPathchk},
		{Name: "pwd", Run: runPwd},
		{Name: "readlink", Run: runReadlink},
		{Name: "realpath", Run: runRealpath},
		{Name: "rename", Run: runRename},
		{Name: "rm", Run: runRm},
		{Name: "rmdir", Run: runRmdir},
		{Name: "shred", Run: runShred},
		{Name: "stat", Run: runStat},
		{Name: "sync", Run: runSync},
		{Name: "touch", Run: runTouch},
		{Name: "tree", Run: runTree},
		{Name: "truncate", Run: runTruncate},
		{Name: "unlink", Run: runUnlink},
	}
}
