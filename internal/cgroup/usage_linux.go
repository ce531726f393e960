package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// Usage tells what the group has used so far. What cannot be measured here is
// -1. Wall is -1: only the driver knows when the sandbox began. Memory is what
// the limit counts: with page cache, and with what the kernel holds on the
// group's behalf.
func (g *Group) Usage() (paddock.Usage, error) {
	u := paddock.Usage{Wall: -1, CPU: -1, Memory: -1, MemoryPeak: -1, PIDs: -1}
	ns, err := g.cpuTime()
	u.CPU = time.Duration(ns)
	now, e := g.count(memory, "memory.usage_in_bytes", "memory.current")
	err, u.Memory = errors.Join(err, e), now
	u.MemoryPeak, e = g.count(memory, "memory.max_usage_in_bytes", "memory.peak")
	err = errors.Join(err, e)
	n, e := g.count(pids, "pids.current", "pids.current")
	err, u.PIDs = errors.Join(err, e), int(n)
	if err != nil {
		return u, fmt.Errorf("usage of control group %s: %w", g.name, classify(err))
	}
	return u, nil
}

// count reads a file of one number, or -1 where the group has none such. A
// group that is gone is an error.
func (g *Group) count(controller, v1, v2 string) (int64, error) {
	f, ok := g.file(controller, v1, v2)
	if !ok {
		return -1, nil
	}
	v, err := readCount(f)
	if err != nil {
		if gone(err) && exists(path.Dir(f)) {
			return -1, nil // an older kernel (memory.peak is from 5.19)
		}
		return -1, err
	}
	return v, nil
}

// cpuTime gives user and system time in nanoseconds.
func (g *Group) cpuTime() (int64, error) {
	// Version 2 counts time without any controller.
	if dir, ok := g.whole(); ok {
		us, err := readKey(dir+"/cpu.stat", "usage_usec")
		if err != nil {
			return -1, err
		}
		return us * int64(time.Microsecond), nil
	}
	if f, ok := g.file(cpuacct, "cpuacct.usage", ""); ok {
		return readCount(f)
	}
	return -1, nil
}

// OOM returns the number of processes that the kernel's OOM killer ended at the group's memory limit,
// and the peak of used memory in bytes; -1 if it cannot be measured.
func (g *Group) OOM() (kills, peak int64, err error) {
	if kills, err = g.Kills(); err != nil {
		return -1, -1, err
	}
	if peak, err = g.count(memory, "memory.max_usage_in_bytes", "memory.peak"); err != nil {
		return -1, -1, fmt.Errorf("control group %s: %w", g.name, classify(err))
	}
	return kills, peak, nil
}

// Kills returns the number of OOM kills, as OOM does.
func (g *Group) Kills() (int64, error) {
	f, ok := g.file(memory, "memory.oom_control", "memory.events")
	if !ok {
		return -1, nil
	}
	n, err := readKey(f, "oom_kill")
	if err != nil {
		return -1, fmt.Errorf("control group %s: %w", g.name, classify(err))
	}
	return n, nil
}

// PIDsHit returns how often the limit refused a new process or thread; -1 if it cannot be measured.
func (g *Group) PIDsHit() (int64, error) {
	f, ok := g.file(pids, "pids.events", "pids.events")
	if !ok {
		return -1, nil
	}
	n, err := readKey(f, "max")
	if err != nil {
		return -1, fmt.Errorf("control group %s: %w", g.name, classify(err))
	}
	return n, nil
}

// A Record is a file in which the kernel tells of a group. The kernel lets nobody write it.
type Record int

const (
	MemoryUsed  Record = iota // bytes of memory now
	MemoryParts               // the same by kinds
	PIDsPeak                  // the largest number of processes and threads so far
	PIDsEvents                // how often the limit refused one
)

// Open opens a record for reading; nil if the kernel does not have it here.
func (g *Group) Open(r Record) (*os.File, error) {
	names := [...]struct{ controller, v1, v2 string }{
		MemoryUsed: {memory, "memory.usage_in_bytes", "memory.current"}, MemoryParts: {memory, "memory.stat", "memory.stat"},
		PIDsPeak: {pids, "pids.peak", "pids.peak"}, PIDsEvents: {pids, "pids.events", "pids.events"},
	}
	name, ok := g.file(names[r].controller, names[r].v1, names[r].v2)
	if !ok {
		return nil, nil
	}
	f, err := os.Open(name)
	if err != nil && gone(err) && exists(path.Dir(name)) {
		return nil, nil // an older kernel (pids.peak is from 6.6)
	}
	if err != nil {
		return nil, fmt.Errorf("control group %s: %w", g.name, classify(err))
	}
	return f, nil
}
