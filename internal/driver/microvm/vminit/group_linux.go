package vminit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// Groups are the machine's control groups: the agent's and the commands'. The agent adds
// processes to them.
type groups struct {
	dir string
	max *os.File // memory.max of the commands' group
}

// makeGroups makes the groups.
func makeGroups(dir string) (groups, error) {
	g := groups{dir: dir}
	if err := sys.MountGroups(dir); err != nil {
		return g, err
	}
	if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+memory +pids"), 0); err != nil {
		return g, err
	}
	err := errors.Join(os.Mkdir(g.agent(), 0o700), os.Mkdir(g.commands(), 0o700))
	if err == nil {
		g.max, err = os.OpenFile(filepath.Join(g.commands(), "memory.max"), os.O_WRONLY, 0)
	}
	return g, err
}

func (g groups) agent() string    { return filepath.Join(g.dir, "agent") }
func (g groups) commands() string { return filepath.Join(g.dir, "commands") }

// begin sets the memory limit before any command runs.
func (g groups) begin(bytes int64) error {
	if bytes < 1 {
		return fmt.Errorf("%d bytes of memory: %w", bytes, paddock.Invalid)
	}
	_, err := g.max.WriteAt(strconv.AppendInt(nil, bytes, 10), 0)
	return err
}

// bound sets the memory limit of commands. It refuses a limit below the memory in use that
// the kernel cannot reclaim, because that would kill commands.
func (g groups) bound(bytes int64) error {
	if bytes < 1 {
		return fmt.Errorf("%d bytes of memory: %w", bytes, paddock.Invalid)
	}
	limit := strconv.AppendInt(nil, bytes, 10)
	write := func(name string, value []byte) error {
		return os.WriteFile(filepath.Join(g.commands(), name), value, 0)
	}
	err := write("memory.high", limit) // reclaims memory and kills nothing
	if err == nil {
		var now int64
		if now, _, _, err = g.usage(); err == nil && now > bytes {
			err = fmt.Errorf("commands have %d MiB of memory, more than %d: %w", now>>20, bytes>>20, paddock.Conflict)
		}
	}
	if err == nil {
		err = write("memory.max", limit)
	}
	return errors.Join(err, write("memory.high", []byte("max")))
}

// usage returns the memory of commands now, its peak, and the number of OOM kills.
func (g groups) usage() (now, peak, kills int64, err error) {
	read := func(name string) int64 {
		data, e := os.ReadFile(filepath.Join(g.commands(), name))
		if e == nil {
			var n int64
			if n, e = strconv.ParseInt(string(bytes.TrimSpace(data)), 10, 64); e == nil {
				return n
			}
		}
		err = errors.Join(err, e)
		return 0
	}
	now = read("memory.current")
	if _, e := os.Stat(filepath.Join(g.commands(), "memory.peak")); !errors.Is(e, fs.ErrNotExist) { // since Linux 5.19
		peak = read("memory.peak")
	}
	kills, e := field(filepath.Join(g.commands(), "memory.events"), "oom_kill")
	return now, max(now, peak), kills, errors.Join(err, e)
}

// freeze freezes groups, and waits until they are frozen.
func (g groups) freeze(ctx context.Context, which ...string) error {
	for _, group := range which {
		err := os.WriteFile(filepath.Join(group, "cgroup.freeze"), []byte("1"), 0)
		for err == nil {
			var frozen int64
			if frozen, err = field(filepath.Join(group, "cgroup.events"), "frozen"); frozen == 1 || err != nil {
				break
			}
			select {
			case <-time.After(500 * time.Microsecond):
			case <-ctx.Done():
				err = fmt.Errorf("processes do not come to rest: %w", paddock.Unavailable)
			}
		}
		if err != nil {
			return errors.Join(err, g.thaw(which...))
		}
	}
	return nil
}

// thaw undoes freeze.
func (g groups) thaw(which ...string) error {
	var errs []error
	for _, group := range which {
		errs = append(errs, os.WriteFile(filepath.Join(group, "cgroup.freeze"), []byte("0"), 0))
	}
	return errors.Join(errs...)
}

// field reads a number from a file of names and numbers.
func field(file, name string) (int64, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		if key, value, _ := strings.Cut(strings.TrimSpace(line), " "); key == name {
			return strconv.ParseInt(value, 10, 64)
		}
	}
	return 0, fmt.Errorf("%s has no field %s: %w", file, name, paddock.Internal)
}
