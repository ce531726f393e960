package drivertest

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Held lists what a driver holds on this host. It lists processes that descend from this
// process, or that carry the name of the state directory or of a sandbox of the suite. It
// lists their network namespaces, mounts, control groups, named sockets, open descriptors,
// files in the state directory, and goroutines. It leaves out what belongs to another
// driver under test.
func Held(t testing.TB, state, name string) Counts {
	t.Helper()
	mine := processes(state, name)
	c := Counts{
		"process":       nil,
		"net namespace": netNamespaces(mine),
		"mount":         slices.Concat(lines("/proc/self/mountinfo", state), lines("/proc/self/mountinfo", name)),
		"control group": controlGroups(name),
		"socket":        slices.Concat(lines("/proc/net/unix", state), lines("/proc/net/unix", name)),
		"descriptor":    descriptors(),
		"file":          files(state),
		"goroutine":     goroutines(),
	}
	for pid, what := range mine {
		c["process"] = append(c["process"], fmt.Sprintf("%d %s", pid, what))
	}
	return c
}

// processes returns the processes that belong to the driver, with descriptions. It leaves
// out a process that ends meanwhile.
func processes(state, name string) map[int]string {
	names, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil
	}
	parents := make(map[int]int)
	what := make(map[int]string)
	mine := make(map[int]bool)
	self := os.Getpid()
	ours, _ := os.Readlink("/proc/self/ns/mnt")
	for _, dir := range names {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == self {
			continue
		}
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			continue
		}
		// The name in parentheses may hold any character, including parentheses.
		end := bytes.LastIndexByte(stat, ')')
		if end < 0 {
			continue
		}
		fields := strings.Fields(string(stat[end+1:]))
		if len(fields) < 2 {
			continue
		}
		parent, err := strconv.Atoi(fields[1])
		if err != nil {
			continue
		}
		parents[pid] = parent
		args := read(dir, "cmdline")
		comm := stat[bytes.IndexByte(stat, '(') : end+1]
		if what[pid] = fmt.Sprintf("%s %q", comm, clip(args)); fields[0] == "Z" {
			what[pid] = fmt.Sprintf("%s that nobody waits for", comm)
		}
		text := args + read(dir, "environ") + read(dir, "cgroup")
		if ns, err := os.Readlink(filepath.Join(dir, "ns/mnt")); err == nil && ns != ours {
			text += read(dir, "mountinfo")
		}
		mine[pid] = strings.Contains(text, state) || strings.Contains(text, name)
	}
	found := make(map[int]string)
	for pid := range parents {
		for p, ok := pid, true; ok; p, ok = parents[p] {
			if mine[p] || parents[p] == self {
				found[pid] = what[pid]
				break
			}
		}
	}
	return found
}

func read(dir, name string) string {
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return "" // ended, or not readable for this user
	}
	return string(data)
}

// netNamespaces returns the network namespaces of the processes that differ from this
// process's own, and the named ones.
func netNamespaces(pids map[int]string) []string {
	own, _ := os.Readlink("/proc/self/ns/net")
	found := make(map[string]bool)
	for pid := range pids {
		if ns, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid)); err == nil && ns != own {
			found[ns] = true
		}
	}
	named, err := filepath.Glob("/run/netns/*")
	if err != nil {
		return nil
	}
	for _, n := range named {
		found[n] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// lines returns the lines of a file that contain text.
func lines(file, text string) []string {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	var found []string
	for l := range strings.Lines(string(data)) {
		if strings.Contains(l, text) {
			found = append(found, strings.TrimSpace(l))
		}
	}
	return found
}

func controlGroups(name string) []string {
	var found []string
	_ = filepath.WalkDir("/sys/fs/cgroup", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return fs.SkipDir // removed meanwhile
		}
		if d.IsDir() && strings.Contains(p, name) {
			found = append(found, p)
		}
		return nil
	})
	return found
}

func descriptors() []string {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil
	}
	var found []string
	for _, e := range entries {
		// The descriptor that reads the directory is closed by now.
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil {
			found = append(found, target)
		}
	}
	return found
}

func files(dir string) []string {
	var found []string
	_ = filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		if err == nil {
			found = append(found, p)
		}
		return nil
	})
	return found
}

// pss returns the memory of the driver's processes, with shared pages counted
// proportionally.
func pss(state, name string) (int64, bool) {
	var sum int64
	for pid := range processes(state, name) {
		f, err := os.Open(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			continue
		}
		sc := bufio.NewScanner(f)
		for sc.Scan() {
			var kib int64
			if n, _ := fmt.Sscanf(sc.Text(), "Pss: %d kB", &kib); n == 1 {
				sum += kib << 10
			}
		}
		_ = f.Close() // the file was only read
	}
	return sum, true
}

// rss returns the resident memory of this process.
func rss() int64 {
	var size, resident int64
	if _, err := fmt.Sscan(read("/proc/self", "statm"), &size, &resident); err != nil {
		return 0
	}
	return resident * int64(os.Getpagesize())
}
