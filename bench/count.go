//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// things are what sandboxes could leave behind.
type things struct {
	processes, mounts, groups, descriptors int
}

func (t things) minus(o things) things {
	return things{t.processes - o.processes, t.mounts - o.mounts, t.groups - o.groups, t.descriptors - o.descriptors}
}

func (t things) String() string {
	return fmt.Sprintf("%d processes, %d mounts, %d control groups, %d descriptors", t.processes, t.mounts, t.groups, t.descriptors)
}

// count counts this process's own things: others work on this machine too.
func count() things {
	return things{
		processes:   len(descendants()),
		mounts:      strings.Count(word("/proc/self/mountinfo"), "\n"),
		groups:      groups(),
		descriptors: entries("/proc/self/fd"),
	}
}

// groups counts the control groups whose names say that this process owns them.
func groups() int {
	n := 0
	mark := fmt.Sprintf("-%d-", os.Getpid())
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // groups of others vanish while we look
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), "paddock-") && strings.Contains(d.Name(), mark) {
			n++
		}
		return nil
	})
	return n
}

func entries(dir string) int {
	list, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	return len(list)
}

// descendants gives the processes below this one, zombies too.
func descendants() map[int]bool {
	parents := map[int]int{}
	dirs, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil
	}
	for _, name := range dirs {
		data, err := os.ReadFile(name)
		if err != nil {
			continue // it ended
		}
		// "pid (name) state parent …": the name may hold anything.
		_, rest, ok := strings.Cut(string(data[bytes.LastIndexByte(data, ')')+1:]), " ")
		fields := strings.Fields(rest)
		if !ok || len(fields) < 2 {
			continue
		}
		pid, err1 := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		parent, err2 := strconv.Atoi(fields[1])
		if err1 == nil && err2 == nil {
			parents[pid] = parent
		}
	}
	below := map[int]bool{}
	for pid := range parents {
		for at, ok := pid, true; ok && at > 1; at, ok = parents[at] {
			if parents[at] == os.Getpid() {
				below[pid] = true
				break
			}
		}
	}
	return below
}

// memory is what processes take, in bytes.
type memory struct {
	proportional int64 // what they share is divided among all who share it
	private      int64 // what nobody else has
	processes    int
}

// memoryBut sums up this process's descendants that are not among known ones.
func memoryBut(known map[int]bool) (m memory) {
	seen := map[string]bool{}
	for pid := range descendants() {
		if known[pid] {
			continue
		}
		text := word(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if seen[text] {
			// The same addresses with the same in them: gVisor has processes
			// that share their memory, and would count once for each.
			continue
		}
		seen[text] = true
		for line := range strings.Lines(text) {
			fields := strings.Fields(line)
			if len(fields) != 3 {
				continue
			}
			kilobytes, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil {
				continue
			}
			switch fields[0] {
			case "Pss:":
				m.proportional += kilobytes << 10
				m.processes++
			case "Private_Clean:", "Private_Dirty:":
				m.private += kilobytes << 10
			}
		}
	}
	return m
}
