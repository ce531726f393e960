package cgroup

import (
	"context"
	"errors"
	"fmt"
	"path"
	"runtime"
	"syscall"

	"github.com/paddock-sandbox/paddock"
)

// ErrStranded is in the error of a Start whose thread could not be taken back
// out of the group. The calling goroutine then stays locked to that thread and
// must end, which ends the thread.
var ErrStranded = errors.New("the thread is still in the sandbox's control group")

// Start calls start, which must start one child from the calling goroutine,
// with attr, and return its error. The child and all that descends from it are
// in the group from the first instruction.
//
// On version 2 the kernel puts the child there (attr gets UseCgroupFD for the
// time of the call, so start must really use attr). On version 1 the calling
// thread enters the group, and leaves it again before Start returns: moving a
// thread that moves itself costs microseconds, moving another process tens of
// milliseconds. With both, both.
//
// A cgroup namespace that is made in the same call (CLONE_NEWCGROUP) has its
// root at the group, on both versions.
//
// An error of start is returned as it is. A group that is frozen is
// [paddock.Conflict], one that was removed [paddock.NotFound]. If the error is
// [ErrStranded] there may be a child, which the caller must end.
func (g *Group) Start(attr *syscall.SysProcAttr, start func() error) (err error) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	frozen, err := g.frozen()
	if err != nil {
		return fmt.Errorf("start in control group %s: %w", g.name, classify(err))
	}
	if frozen {
		// The child would stop before it executes, and we would wait for it.
		return fmt.Errorf("start in control group %s: it is frozen: %w", g.name, paddock.Conflict)
	}
	if dir, ok := g.whole(); ok {
		const oPath = 0x200000
		fd, err := openFile(dir, oPath|syscall.O_DIRECTORY)
		if err != nil {
			return fmt.Errorf("start in control group %s: %w", g.name, classify(err))
		}
		attr.UseCgroupFD, attr.CgroupFD = true, fd
		defer func() {
			attr.UseCgroupFD, attr.CgroupFD = false, 0
			_ = syscall.Close(fd)
		}()
	}
	leave, err := g.enter()
	if err != nil {
		return err
	}
	defer func() {
		if stuck := leave(); stuck != nil {
			err = errors.Join(err, stuck)
		}
	}()
	return start()
}

// enter moves the calling thread into the groups of version 1; leave undoes it.
func (g *Group) enter() (leave func() error, err error) {
	runtime.LockOSThread()
	inside := 0
	var old []part
	for _, p := range g.parts {
		if !p.v2 {
			old = append(old, p)
		}
	}
	leave = func() error {
		var stuck error
		for ; inside > 0; inside-- {
			// Back to where we were when the host was probed.
			stuck = errors.Join(stuck, writeFile(path.Join(old[inside-1].dir, "tasks"), "0"))
		}
		if stuck != nil {
			return fmt.Errorf("leave control group %s: %w: %w", g.name, ErrStranded, stuck)
		}
		runtime.UnlockOSThread()
		return nil
	}
	for _, p := range old {
		if err := writeFile(path.Join(p.path, "tasks"), "0"); err != nil {
			return nil, errors.Join(fmt.Errorf("enter control group %s: %w", g.name, classify(err)), leave())
		}
		inside++
	}
	return leave, nil
}

// frozen tells whether the group is frozen, or on its way there.
func (g *Group) frozen() (bool, error) {
	f, v2, ok := g.freezer()
	if !ok {
		return false, nil
	}
	b, err := readFile(f, small)
	if err != nil {
		return false, err
	}
	if v2 {
		return string(b) == "1\n", nil
	}
	return string(b) != "THAWED\n", nil
}

// freezer names the file that freezes the group.
func (g *Group) freezer() (file string, v2, ok bool) {
	if dir, ok := g.whole(); ok {
		return dir + "/cgroup.freeze", true, true
	}
	file, ok = g.file(freezer, "freezer.state", "")
	return file, false, ok
}

// Freeze stops everything in the group and answers when all has stopped. If
// ctx ends before, the group runs again and the error is [paddock.Timeout] or
// [paddock.Canceled]. Freezing twice is fine.
func (g *Group) Freeze(ctx context.Context) error {
	f, v2, ok := g.freezer()
	if !ok {
		return fmt.Errorf("freeze control group %s: no freezer here: %w", g.name, paddock.Unsupported)
	}
	wait := newBackoff()
	for !g.mu.TryLock() {
		if err := wait.pause(ctx); err != nil {
			return fmt.Errorf("freeze control group %s: %w", g.name, err)
		}
	}
	defer g.mu.Unlock()
	value := "FROZEN"
	if v2 {
		value = "1"
	}
	for wait := newBackoff(); ; {
		// On version 1 writing again also catches processes that were missed.
		err := writeFile(f, value)
		var done bool
		if err == nil {
			done, err = g.stopped(f, v2)
		}
		if err == nil && done {
			return nil
		}
		if err == nil {
			err = wait.pause(ctx)
		}
		if err != nil {
			return fmt.Errorf("freeze control group %s: %w", g.name, errors.Join(classify(err), g.Thaw()))
		}
	}
}

func (g *Group) stopped(f string, v2 bool) (bool, error) {
	if v2 {
		n, err := readKey(path.Join(path.Dir(f), "cgroup.events"), "frozen")
		return n == 1, err
	}
	b, err := readFile(f, small)
	return string(b) == "FROZEN\n", err
}

// Thaw undoes Freeze. Thawing what is not frozen is fine.
func (g *Group) Thaw() error {
	f, v2, ok := g.freezer()
	if !ok {
		return nil
	}
	value := "THAWED"
	if v2 {
		value = "0"
	}
	if err := writeFile(f, value); err != nil {
		return fmt.Errorf("thaw control group %s: %w", g.name, classify(err))
	}
	return nil
}
