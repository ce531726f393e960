package process

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// Statuses of flock, those of sysexits.h.
const (
	flockUsage       = 64
	flockData        = 65
	flockNoInput     = 66
	flockUnavailable = 69
	flockCannotOpen  = 73
)

var flockSpec = &command.Spec{
	Name: "flock", Synopsis: "[options] <file>|<directory> <command> [<argument>...]\n flock [options] <file>|<directory> -c <command>\n flock [options] <file descriptor number>",
	Exit: flockUsage, Ordered: true, About: "Manage file locks from shell scripts.",
	Options: []command.Option{
		{Short: 's', Long: "shared", Help: "get a shared lock"},
		{Short: 'x', Long: "exclusive", Help: "get an exclusive lock (default)"},
		{Short: 'e', Help: "the same"},
		{Short: 'u', Long: "unlock", Help: "remove a lock"},
		{Short: 'n', Long: "nonblock", Help: "fail rather than wait"},
		{Long: "nb", Help: "the same"},
		{Short: 'w', Long: "timeout", Arg: command.Required, Name: "SECS", Help: "wait for a limited amount of time"},
		{Long: "wait", Arg: command.Required, Name: "SECS", Help: "the same"},
		{Short: 'E', Long: "conflict-exit-code", Arg: command.Required, Name: "NUMBER", Help: "exit code after conflict or timeout"},
		{Short: 'o', Long: "close", Help: "close file descriptor before running command"},
		{Short: 'c', Long: "command", Help: "run a single command string through the shell"},
		{Short: 'F', Long: "no-fork", Help: "execute command without forking"},
		{Long: "verbose", Help: "increase verbosity"},
	},
}

func runFlock(t *kernel.Task) int {
	a, status, ok := flockSpec.Parse(t)
	if !ok {
		return status
	}
	conflict := 1
	exclusive, unlock, try := true, false, a.Has("n") || a.Has("nb")
	wait := time.Duration(-1)
	for _, f := range a.Flags {
		switch f.Key {
		case "s":
			exclusive, unlock = false, false
		case "x", "e":
			exclusive, unlock = true, false
		case "u":
			unlock = true
		case "E":
			n, err := command.ParseInt(f.Value, "", 0, 255)
			if err != nil {
				t.Errorf("invalid exit code: '%s'", f.Value)
				return flockUsage
			}
			conflict = int(n)
		case "w", "wait":
			if wait, ok = duration(f.Value); !ok || strings.ContainsAny(f.Value, "smhd") {
				t.Errorf("invalid timeout value: '%s'", f.Value)
				return flockUsage
			}
		}
	}
	args := a.Operands
	if len(args) == 0 {
		t.Errorf("requires file descriptor, file or directory")
		return flockUsage
	}
	fd, run, status := flockTarget(t, args, a.Has("c"))
	if status != 0 {
		return status
	}
	d := t.FD(fd)
	if d == nil {
		t.Errorf("%s: %s", args[0], reason(linux.EBADF))
		return flockData
	}
	if run != nil && a.Has("o") {
		t.SetCloexec(fd, true)
	}
	if unlock {
		t.Unlock(d)
	} else if status, ok := flockTake(t, d, exclusive, try || wait == 0, wait, conflict, a.Has("verbose")); !ok {
		return status
	}
	if run == nil {
		return 0
	}
	if a.Has("verbose") {
		t.Errorf("executing %s", run[0])
	}
	child, err := t.Spawn(kernel.Command{Args: run}, nil)
	if err != nil {
		t.Errorf("failed to execute %s: %s", run[0], reason(err))
		return flockUnavailable
	}
	s, err := t.Wait(child)
	if err != nil {
		return 1
	}
	return s.Shell()
}

// flockTarget finds what is locked and what is run meanwhile.
func flockTarget(t *kernel.Task, args []string, shell bool) (fd int, run []string, status int) {
	if len(args) == 1 {
		n, err := strconv.Atoi(args[0])
		if err != nil || n < 0 {
			t.Errorf("bad file descriptor: '%s'", args[0])
			return 0, nil, flockUsage
		}
		return n, nil, 0
	}
	run = args[1:]
	if shell || run[0] == "-c" || run[0] == "--command" {
		if !shell {
			run = run[1:]
		}
		if len(run) != 1 {
			t.Errorf("-c requires exactly one command argument")
			return 0, nil, flockUsage
		}
		sh := t.Getenv("SHELL")
		if sh == "" {
			sh = "sh"
		}
		run = []string{sh, "-c", run[0]}
	}
	fd, err := t.OpenFD(args[0], linux.O_RDONLY|linux.O_CREAT, 0o666, 3)
	if errors.Is(err, linux.EISDIR) {
		fd, err = t.OpenFD(args[0], linux.O_RDONLY, 0, 3)
	}
	if err != nil {
		t.Errorf("cannot open lock file %s: %s", args[0], reason(err))
		switch {
		case errors.Is(err, linux.ENOMEM):
			return 0, nil, 71
		case errors.Is(err, linux.EROFS), errors.Is(err, linux.ENOSPC):
			return 0, nil, flockCannotOpen
		}
		return 0, nil, flockNoInput
	}
	return fd, run, 0
}

// flockTake takes the lock; false is that it did not get it.
func flockTake(t *kernel.Task, d *kernel.Desc, exclusive, try bool, wait time.Duration, conflict int, verbose bool) (status int, ok bool) {
	begun := time.Now()
	var deadline time.Time
	if wait > 0 {
		deadline = begun.Add(wait)
	}
	err := t.Lock(d, exclusive, try, deadline)
	switch {
	case err == nil:
		if verbose {
			t.Errorf("getting lock took %s seconds", fmt.Sprintf("%.6f", time.Since(begun).Seconds()))
		}
		return 0, true
	case errors.Is(err, linux.EWOULDBLOCK):
		if verbose {
			t.Errorf("failed to get lock")
		}
		return conflict, false
	case errors.Is(err, linux.ETIMEDOUT):
		if verbose {
			t.Errorf("timeout while waiting to get lock")
		}
		return conflict, false
	}
	t.Errorf("%s", reason(err))
	return flockData, false
}
