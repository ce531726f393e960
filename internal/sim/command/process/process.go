// Package process has the tools that start, watch and end programs, and those
// that describe users and the computer.
package process

import (
	"errors"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// Commands lists the tools of this package.
func Commands() []command.Command {
	return []command.Command{
		{Name: "[", Run: runTest},
		{Name: "arch", Run: runArch},
		{Name: "chroot", Dir: "/usr/sbin", Run: runChroot},
		{Name: "clear", Run: runClear},
		{Name: "env", Run: runEnv},
		{Name: "flock", Run: runFlock},
		{Name: "free", Run: runFree},
		{Name: "chronic", Run: runChronic},
		{Name: "getconf", Run: runGetconf},
		{Name: "getopt", Run: runGetopt},
		{Name: "hostid", Run: runHostid},
		{Name: "ifne", Run: runIfne},
		{Name: "stdbuf", Run: runStdbuf},
		{Name: "ts", Run: runTS},
		{Name: "uuidgen", Run: runUUIDGen},
		{Name: "getent", Run: runGetent},
		{Name: "groups", Run: runGroups},
		{Name: "hostname", Run: runHostname},
		{Name: "id", Run: runID},
		{Name: "kill", Run: runKill},
		{Name: "killall", Run: runKillall},
		{Name: "locale", Run: runLocale},
		{Name: "logname", Run: runLogname},
		{Name: "mountpoint", Run: runMountpoint},
		{Name: "nice", Run: runNice},
		{Name: "nohup", Run: runNohup},
		{Name: "nproc", Run: runNproc},
		{Name: "parallel", Run: runParallel},
		{Name: "pgrep", Aliases: []string{"pkill"}, Run: runPgrep},
		{Name: "pidof", Run: runPidof},
		{Name: "printenv", Run: runPrintenv},
		{Name: "ps", Run: runPs},
		{Name: "reset", Run: runReset},
		{Name: "setsid", Run: runSetsid},
		{Name: "stty", Run: runStty},
		{Name: "test", Run: runTest},
		{Name: "time", Run: runTime},
		{Name: "timeout", Run: runTimeout},
		{Name: "top", Run: runTop},
		{Name: "tput", Run: runTput},
		{Name: "tty", Run: runTTY},
		{Name: "uname", Run: runUname},
		{Name: "uptime", Run: runUptime},
		{Name: "users", Run: runUsers},
		{Name: "w", Run: runW},
		{Name: "watch", Run: runWatch},
		{Name: "whereis", Run: runWhereis},
		{Name: "which", Run: runWhich},
		{Name: "who", Run: runUsers},
		{Name: "whoami", Run: runWhoami},
	}
}

func reason(err error) string { return vfs.Message(err) }

// say writes a line to standard output.
func say(t *kernel.Task, parts ...string) {
	w := t.Out()
	for _, p := range parts {
		_, _ = w.WriteString(p) // the end of the program tells of an error
	}
	_ = w.WriteByte('\n')
}

// become turns the task into another program, as execvp does, and gives the
// status.
func become(t *kernel.Task, c kernel.Command) int {
	if err := t.Flush(); err != nil {
		return 125
	}
	code, err := t.Exec(c)
	if err == nil {
		return code
	}
	t.Errorf("%s: %s", command.Quote(c.Args[0]), reason(err))
	return unstarted(err)
}

// unstarted is the status for a program that cannot be started.
func unstarted(err error) int {
	if errors.Is(err, linux.ENOENT) {
		return 127
	}
	return 126
}
