package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"syscall"

	"github.com/paddock-sandbox/paddock"
)

// PIDs lists the processes in the group and in groups below it, in ascending
// order. A process that is just starting a child in it is not one of them. A
// group that is gone has none.
func (g *Group) PIDs() ([]int, error) {
	var all []int
	for _, p := range g.parts {
		found, err := g.members(p.path, p.v2)
		if err != nil {
			return nil, fmt.Errorf("processes of control group %s: %w", g.name, classify(err))
		}
		all = append(all, found...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

func (g *Group) members(dir string, v2 bool) ([]int, error) {
	found, err := readPIDs(dir + "/cgroup.procs")
	if err != nil {
		if gone(err) {
			return nil, nil
		}
		return nil, err
	}
	if !v2 && len(found) > 0 {
		if found, err = g.whollyInside(dir, found); err != nil {
			return nil, err
		}
	}
	below, err := children(dir)
	if err != nil && !gone(err) {
		return nil, err
	}
	for _, name := range below {
		more, err := g.members(path.Join(dir, name), v2)
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	return found, nil
}

// whollyInside drops processes of which only a thread is inside, as Start does
// it on version 1. In such a process the main thread lives and is elsewhere. A
// guest cannot look like that: it has no way out, so a main thread that is not
// listed has ended while other threads of it go on.
func (g *Group) whollyInside(dir string, found []int) ([]int, error) {
	threads, err := readPIDs(dir + "/tasks")
	if err != nil {
		if gone(err) {
			return nil, nil
		}
		return nil, err
	}
	slices.Sort(threads)
	return slices.DeleteFunc(found, func(pid int) bool {
		if pid == g.host.env.pid {
			return true
		}
		if _, in := slices.BinarySearch(threads, pid); in {
			return false
		}
		b, err := readFile(fmt.Sprintf("%s/%d/stat", g.host.env.proc, pid), small)
		if err != nil {
			return true // gone by now
		}
		s, err := parseStat(b)
		return err == nil && !s.dead()
	}), nil
}

func readPIDs(file string) ([]int, error) {
	b, err := readFile(file, large)
	if err != nil {
		return nil, err
	}
	list, err := parsePIDs(b)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return list, nil
}

// Kill ends every process in the group and answers when none is left. The
// group stays and can be used again. Killing an empty group is fine.
func (g *Group) Kill(ctx context.Context) error {
	wait := newBackoff()
	for round := 0; ; round++ {
		left, err := g.kill(round)
		if err != nil {
			return fmt.Errorf("kill control group %s: %w", g.name, classify(err))
		}
		if left == 0 {
			return nil
		}
		if err := wait.pause(ctx); err != nil {
			return fmt.Errorf("kill control group %s: %d processes are left: %w", g.name, left, err)
		}
	}
}

// patience is how many rounds a kill of the whole group gets before processes
// that it may not have covered are killed one by one.
const patience = 4

// kill sends one round of signals and counts who was there.
func (g *Group) kill(round int) (int, error) {
	dir, atOnce := g.whole()
	if atOnce {
		err := writeFile(dir+"/cgroup.kill", "1")
		if err != nil && !gone(err) {
			return 0, err
		}
		atOnce = err == nil // not before 5.14
	}
	list, err := g.PIDs()
	if err != nil || len(list) == 0 || (atOnce && round < patience) {
		return len(list), err
	}
	// Frozen processes make no new ones while we go through them. Where the
	// group is not frozen at once, the next round finds the new ones.
	if f, v2, ok := g.freezer(); ok && !atOnce {
		value := "FROZEN"
		if v2 {
			value = "1"
		}
		if err := writeFile(f, value); err != nil && !gone(err) {
			return 0, err
		}
		defer func() { _ = g.Thaw() }()
	}
	for batch := range slices.Chunk(list, 256) {
		if err := g.signal(batch); err != nil {
			return 0, err
		}
	}
	return len(list), nil
}

// signal kills processes if they are still in the group: a number may have
// become another's in the meantime.
func (g *Group) signal(list []int) error {
	held := map[int]*os.Process{}
	for _, pid := range list {
		if pid == 0 {
			return fmt.Errorf("a process of another pid namespace is inside: %w", paddock.Denied)
		}
		// It holds on to the process, not to the number.
		if p, err := os.FindProcess(pid); err == nil {
			held[pid] = p
			defer p.Release()
		}
	}
	inside, err := g.PIDs()
	if err != nil {
		return err
	}
	for _, pid := range inside {
		p := held[pid]
		if p == nil {
			continue
		}
		err := p.Signal(syscall.SIGKILL)
		if errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("%w: %w", paddock.Denied, err)
		}
		if err != nil && !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return nil
}
