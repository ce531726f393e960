// Command paddock runs commands in sandboxes. It is the only place where
// Paddock's parts are joined: flags and environment are read here, and values
// passed on.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/paddock-sandbox/paddock/cmd/paddock/early"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor"
	"github.com/paddock-sandbox/paddock/internal/driver/jail"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/wall"
)

func main() {
	if box.Main(jail.Runtime(), gvisor.Runtime(), microvm.Runtime()) || gvisorMain() || monitorMain() || gatewayMain() || wall.Main() {
		return // this was a part of a sandbox
	}
	os.Exit(execute(registry(early.Begun())))
}

// execute runs the program on the process's own surroundings.
func execute(tiers []tier) int {
	a := &app{
		args: os.Args[1:], stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		lookup: os.LookupEnv, dir: workingDir, data: func() (string, error) { return dataDir(os.LookupEnv) }, tiers: tiers, notify: notify,
		tty:  func() (*os.File, error) { return os.OpenFile("/dev/tty", os.O_RDWR, 0) },
		dial: dial,
	}
	a.private = a.startPrivate
	return a.execute(context.Background())
}

// workingDir gives the real place of the working directory: what is mounted is
// named by it, and a link on the way could be somebody else's.
func workingDir() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}

// notify listens to signals, but not to those that whoever started us wants
// ignored (nohup): listening would undo that.
func notify(sigs ...os.Signal) (<-chan os.Signal, func()) {
	c := make(chan os.Signal, 16)
	for _, s := range sigs {
		if !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
	return c, func() { signal.Stop(c) }
}
