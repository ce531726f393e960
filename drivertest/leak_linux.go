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

// Held counts what a driver holds on this host: processes that descend from
// this one or carry the state directory or a sandbox of the suite, their
// network namespaces, mounts, control groups, sockets with a name, open
// descriptors, files in the state directory, and goroutines. What belongs to
// another driver that is tested meanwhile is not counted.
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

// processes gives the processes that belong to the driver, each described. A
// process that ends meanwhile is none.
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
		// The name in brackets may hold anything, brackets too.
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
		return "" // gone, or not ours to read
	}
	return string(data)
}

// netNamespaces gives the namespaces of processes other than this one's, and
// those that have a name.
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

// lines gives the lines of a file that hold text.
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
			return fs.SkipDir // gone meanwhile
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
		// The one that reads the directory is gone by now.
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

// pss gives the memory of the driver's processes, each shared page counted in
// parts.
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
		_ = f.Close() // only read
	}
	return sum, true
}

// rss gives the resident memory of this process.
func rss() int64 {
	var size, resident int64
	if _, err := fmt.Sscan(read("/proc/self", "statm"), &size, &resident); err != nil {
		return 0
	}
	return resident * int64(os.Getpagesize())
}
