package file

import (
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

func pwdSpec() *command.Spec {
	return &command.Spec{
		Name: "pwd", Synopsis: "[OPTION]...", About: "Print the full filename of the current working directory.",
		Options: []command.Option{
			{Short: 'L', Long: "logical", Help: "use PWD from environment, even if it contains symlinks"},
			{Short: 'P', Long: "physical", Help: "avoid all symlinks"},
		},
	}
}

func runPwd(t *kernel.Task) int {
	a, status, ok := pwdSpec().Parse(t)
	if !ok {
		return status
	}
	if len(a.Operands) > 0 {
		t.Errorf("ignoring non-option arguments")
	}
	logical := t.Getenv("POSIXLY_CORRECT") != ""
	for _, f := range a.Flags {
		logical = f.Key == "L"
	}
	dir, err := t.View.Getwd()
	if err != nil {
		t.Errorf("couldn't find directory entry in '..' with matching i-node: %s", vfs.Message(err))
		return 1
	}
	if logical {
		if named := t.Getenv("PWD"); names(t, named, dir) {
			dir = named
		}
	}
	_, _ = t.Out().WriteString(dir + "\n") // what goes wrong is told at the end
	return 0
}

// names reports whether an absolute path without "." and ".." leads to dir.
func names(t *kernel.Task, path, dir string) bool {
	if !strings.HasPrefix(path, "/") {
		return false
	}
	for part := range strings.SplitSeq(path, "/") {
		if part == "." || part == ".." {
			return false
		}
	}
	actual, err := t.View.Realpath(path)
	return err == nil && actual == dir
}
