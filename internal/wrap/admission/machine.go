package admission

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// A Machine measures a host at the time of the call.
type Machine interface {
	// Memory returns the bytes of memory for this process and its sandboxes, and how many
	// of them are available now.
	Memory() (total, available int64, err error)

	// Disk returns the free bytes in the file system of a directory.
	Disk(dir string) (free int64, err error)
}

// Host returns this machine, measured by its /proc and /sys. root is its file tree, such as
// os.DirFS("/"). Outside Linux its methods return paddock.Unsupported.
func Host(root fs.FS) Machine { return host{root} }

type host struct{ root fs.FS }

// maxFile bounds how much of a file is read, in bytes.
const maxFile = 1 << 20

func (h host) read(name string) ([]byte, error) {
	f, err := h.root.Open(strings.TrimPrefix(path.Clean("/"+name), "/"))
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // the file was only read
	return io.ReadAll(io.LimitReader(f, maxFile))
}

func (h host) Disk(dir string) (int64, error) {
	free, _, err := sys.Space(dir)
	return free, err
}

func (h host) Memory() (total, available int64, err error) {
	info, err := h.read("/proc/meminfo")
	if err != nil {
		return 0, 0, fmt.Errorf("the amount of memory cannot be read; set it in the options: %w: %w", paddock.Unsupported, err)
	}
	total, ok := entry(info, "MemTotal:", 1<<10)
	available, have := entry(info, "MemAvailable:", 1<<10)
	if !ok || !have || total == 0 {
		return 0, 0, fmt.Errorf("/proc/meminfo does not have the amount of memory; set it in the options: %w", paddock.Unsupported)
	}
	own, err := h.read("/proc/self/cgroup")
	if errors.Is(err, fs.ErrNotExist) {
		return total, available, nil // a kernel without control groups
	}
	if err != nil {
		return 0, 0, fmt.Errorf("own control groups: %w", err)
	}
	for _, g := range groups(own) {
		for dir := g.own; ; dir = path.Dir(dir) {
			limit, left := h.group(g, dir)
			total, available = min(total, limit), min(available, left)
			if dir == "/" {
				break
			}
		}
	}
	return total, available, nil
}

// A grouping is a hierarchy of control groups that limits memory.
type grouping struct {
	own                 string // this process's group, relative to the root of the mount
	mount               string
	limit, usage, cache string // names of files, and of a field of memory.stat
}

// groups returns the hierarchies in /proc/self/cgroup.
func groups(text []byte) []grouping {
	var all []grouping
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) != 3 || !strings.HasPrefix(parts[2], "/") {
			continue
		}
		own := path.Clean(parts[2])
		switch {
		case parts[0] == "0" && parts[1] == "":
			all = append(all, grouping{own, "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"})
		case strings.Contains(","+parts[1]+",", ",memory,"):
			all = append(all, grouping{own, "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"})
		}
	}
	return all
}

const unlimited = 1<<63 - 1

// group returns the limit of a group and what is left of it. A group that is not visible,
// as in a container, or that has no limit does not bound anything.
func (h host) group(g grouping, dir string) (limit, left int64) {
	file := func(name string) []byte {
		b, err := h.read(path.Join(g.mount, dir, name))
		if err != nil {
			return nil
		}
		return b
	}
	limit, ok := count(file(g.limit))
	if !ok {
		return unlimited, unlimited
	}
	used, ok := count(file(g.usage))
	if !ok {
		return limit, limit
	}
	if cache, ok := entry(file("memory.stat"), g.cache, 1); ok {
		used -= min(used, cache) // the kernel reclaims it first
	}
	return limit, max(0, limit-used)
}

// count parses a file with one number. ok is false for a limit of none.
func count(text []byte) (int64, bool) {
	n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	return n, err == nil && n >= 0 && n < 1<<60
}

// entry returns the number of a field, in units.
func entry(text []byte, word string, unit int64) (int64, bool) {
	for line := range bytes.Lines(text) {
		fields := bytes.Fields(line)
		if len(fields) < 2 || string(fields[0]) != word {
			continue
		}
		n, ok := count(fields[1])
		if !ok || n > (1<<60)/unit {
			return 0, false
		}
		return n * unit, true
	}
	return 0, false
}
