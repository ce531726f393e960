package cli

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"

	"github.com/spf13/cobra"
)

// Main runs the command line of the calling process and returns its exit status. The process can
// make sandboxes of the given tiers, strongest first. The argument guest says where the program
// inside a sandbox comes from ("embedded" or "self"), for paddock version. The path installed leads to the file of the
// program that was installed; empty is that of the calling process. The function commands returns commands in addition
// to those of this package.
func Main(tiers []Tier, guest, installed string, commands func(*App) []*cobra.Command) int {
	a := &App{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Lookup: os.LookupEnv, Dir: workingDir, Data: func() (string, error) { return DataDir(os.LookupEnv) }, Tiers: tiers, Notify: notify,
		Tty:  func() (*os.File, error) { return os.OpenFile("/dev/tty", os.O_RDWR, 0) },
		Dial: dial, Commands: commands, Guest: guest, Installed: installed, Self: self,
	}
	a.Private = a.startPrivate
	return a.Execute(context.Background())
}

// self returns another invocation of this program.
func self(ctx context.Context, args ...string) (*exec.Cmd, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return exec.CommandContext(ctx, exe, args...), nil
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
