package box

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock/internal/cgroup"
)

// An Unowned is a part of a sandbox, of the calling user, that no state directory leads to.
type Unowned struct {
	// What names it in words. It contains a path of the host.
	What string

	remove func(ctx context.Context) error
}

// Remove removes it. What has found an owner meanwhile, or is gone, stays as it is.
func (u Unowned) Remove(ctx context.Context) error { return u.remove(ctx) }

// FindUnowned lists the keepers whose sandbox has no directory in any state directory, and the control
// groups that a dead owner has left. The kernel removes everything else of a sandbox with its processes.
// It lists nothing of another user, not even for root, and no group of a sandbox that one of the given
// state directories knows.
func FindUnowned(states ...string) ([]Unowned, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("look for keepers: %w", err)
	}
	host := cgroup.Probe()
	var list []Unowned
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if dir, ok := strayKeeper(pid); ok {
			list = append(list, Unowned{fmt.Sprintf("sandbox of keeper %d, whose directory %s is gone", pid, dir), func(ctx context.Context) error { return endKeeper(ctx, host, pid) }})
		}
	}
	keeps := func(name string) bool {
		return slices.ContainsFunc(states, func(state string) bool { return leadsTo(state, name) })
	}
	names, err := host.Abandoned(keeps)
	for _, name := range names {
		list = append(list, Unowned{fmt.Sprintf("control group of sandbox %s, whose owner is dead", name), func(context.Context) error {
			_, err := host.Sweep(func(other string) bool { return other != name || keeps(other) })
			return err
		}})
	}
	return list, err
}

// leadsTo reports whether a state directory has a sandbox of this name, of any tier; when in doubt it has.
func leadsTo(state, name string) bool {
	tiers, err := os.ReadDir(state)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	return slices.ContainsFunc(tiers, func(tier fs.DirEntry) bool {
		_, err := os.Lstat(filepath.Join(state, tier.Name(), name))
		return err == nil || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR)
	})
}

// strayKeeper reports whether a process is a keeper of this user that holds a directory which was removed,
// and gives the path that this had. A command of a sandbox can have the same name and user, but not the
// user namespace.
func strayKeeper(pid int) (dir string, ok bool) {
	proc := "/proc/" + strconv.Itoa(pid)
	line, err := os.ReadFile(proc + "/cmdline")
	if name, _, _ := bytes.Cut(line, []byte{0}); err != nil || string(name) != keeperArgv0 || !ownProcess(proc) {
		return "", false
	}
	held := proc + "/fd/" + strconv.Itoa(directoryDescriptor)
	info, err := os.Stat(held) // of what the process holds; no path is followed
	if err != nil || !unlinked(info) {
		return "", false
	}
	dir, _ = os.Readlink(held)
	return strings.TrimSuffix(dir, " (deleted)"), true
}

// ownProcess reports whether a process has this process's user and user namespace.
func ownProcess(proc string) bool {
	status, err := os.ReadFile(proc + "/status")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(status)) {
		if ids, ok := strings.CutPrefix(line, "Uid:"); ok {
			for _, id := range strings.Fields(ids) {
				if id != strconv.Itoa(os.Geteuid()) {
					return false
				}
			}
		}
	}
	mine, err := os.Readlink("/proc/self/ns/user")
	if err != nil {
		return false
	}
	its, err := os.Readlink(proc + "/ns/user")
	return err == nil && its == mine
}

// endKeeper kills a stray keeper, and the kernel its sandbox with it. It waits for the end of both.
func endKeeper(ctx context.Context, host *cgroup.Host, pid int) error {
	p, err := os.FindProcess(pid) // refers to this process, whatever gets its number later
	if err != nil {
		return fmt.Errorf("keeper %d: %w", pid, err)
	}
	defer func() { _ = p.Release() }()
	if _, still := strayKeeper(pid); !still {
		return nil
	}
	if err := p.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("keeper %d: %w", pid, err)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		// A zombie has no descriptors. Its parent reaps it.
		if _, still := strayKeeper(pid); !still {
			break
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("keeper %d does not end: %w", pid, EndKind(ctx.Err()))
		}
	}
	return host.SweepOf(ctx, pid)
}

// StatesOf returns the directories in which a caller with this environment usually keeps its sandboxes.
func StatesOf(environ []string) []string {
	env := newEnviron(environ)
	list := []string{defaultState(env)}
	data := defaultData(env, filepath.Join(list[0], "any"))
	list = append(list, filepath.Join(data, "server", "live"))
	if dir := env["PADDOCK_STATE"]; filepath.IsAbs(dir) {
		list = append(list, dir, filepath.Join(dir, "live"))
	}
	return list
}
