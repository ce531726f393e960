package guestinit

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// A count bounds the number of the commands' processes and threads, by a control group of
// the guest kernel that only the agent can reach. The host's control group cannot do it,
// because it only counts the guest kernel's own threads.
type count struct {
	// Files of the group: cgroup.procs, pids.max and pids.current. The opener's permissions
	// decide what may be written.
	procs, max, now *os.File

	// pids.events, if the kernel counts refusals; otherwise nil.
	refused *os.File

	// memory.events, if the groups also bound memory; otherwise nil.
	events *os.File

	most atomic.Int64 // the value of max
}

// newCount makes the group. It mounts the control groups at dir, and covers dir afterwards.
func newCount(dir string) (*count, error) {
	if err := sys.MountGroups(dir); err != nil {
		return nil, err
	}
	group := dir + "/commands"
	c := &count{}
	for _, step := range []func() error{
		// A group that distributes a controller to children cannot contain processes
		// itself.
		func() error { return makeGroup(dir + "/agent") },
		func() error { return write(dir+"/agent/cgroup.procs", strconv.Itoa(os.Getpid())) },
		func() error { return write(dir+"/cgroup.subtree_control", "+pids") },
		func() error { return makeGroup(group) },
		func() (err error) { c.procs, err = os.OpenFile(group+"/cgroup.procs", os.O_WRONLY, 0); return err },
		func() (err error) { c.max, err = os.OpenFile(group+"/pids.max", os.O_WRONLY, 0); return err },
		func() (err error) { c.now, err = os.Open(group + "/pids.current"); return err },
		func() (err error) {
			if c.refused, err = os.Open(group + "/pids.events"); errors.Is(err, fs.ErrNotExist) {
				c.refused, err = nil, nil
			}
			return err
		},
		func() (err error) {
			if c.events, err = os.Open(group + "/memory.events"); errors.Is(err, fs.ErrNotExist) {
				c.events, err = nil, nil
			}
			return err
		},
		// A process that makes a user namespace may mount the groups again. Commands must
		// not be able to change them there.
		func() error { return notTheirs(dir+"/agent", group) },
		func() error { return sys.MountEmpty(dir) },
	} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("make a control group: %w", err)
		}
	}
	return c, nil
}

// makeGroup makes a group, unless the process that started the agent has made it to set
// further limits.
func makeGroup(path string) error {
	if err := os.Mkdir(path, 0o700); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// notTheirs gives groups to a user that no command is or can map, and removes access for
// all others.
func notTheirs(groups ...string) error {
	for _, group := range groups {
		if err := os.Lchown(group, nobody(), nobody()); err != nil {
			return err
		}
	}
	return nil
}

func write(file, text string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// bound sets the maximum number.
func (c *count) bound(n int) error {
	if _, err := c.max.WriteAt([]byte(strconv.Itoa(n)), 0); err != nil {
		return fmt.Errorf("bound the processes: %w", err)
	}
	c.most.Store(int64(n))
	return nil
}

// read returns the present number.
func (c *count) read() (int, error) {
	buf := make([]byte, 32)
	n, err := c.now.ReadAt(buf, 0)
	if n == 0 && err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(buf[:n])))
}

// crowded reports whether the maximum was reached, so that there was no further process. A kernel that does
// not count refusals only knows the present number: gVisor's.
func (c *count) crowded() bool {
	if c.refused == nil {
		n, err := c.read()
		return err == nil && int64(n)+1 >= c.most.Load() // the program that found no room may have ended
	}
	n, err := field(c.refused, "max")
	return err == nil && n > 0
}

// killed returns how many of the commands' processes were killed for lack of memory.
func (c *count) killed() (int64, error) { return field(c.events, "oom_kill") }

// field returns the number after a name in a file of a control group.
func field(f *os.File, name string) (int64, error) {
	buf := make([]byte, 512)
	n, err := f.ReadAt(buf, 0)
	if n == 0 && err != nil {
		return 0, err
	}
	for line := range bytes.Lines(buf[:n]) {
		if text, ok := bytes.CutPrefix(line, []byte(name+" ")); ok {
			return strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
		}
	}
	return 0, fmt.Errorf("%s has no %s: %w", f.Name(), name, paddock.Unsupported)
}
