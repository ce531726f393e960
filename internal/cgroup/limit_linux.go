package cgroup

import (
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/paddock-sandbox/paddock"
)

const (
	period   = 100_000 // microseconds over which processor time is dealt out
	minQuota = 1_000   // the kernel's own least
	maxCPUs  = 1 << 16
)

// check refuses limits that no kernel could keep.
func check(l paddock.Limits) error {
	switch {
	case l.Memory < 0 || l.PIDs < 0 || l.IO < 0 || l.CPUs < 0 || math.IsNaN(l.CPUs):
		return fmt.Errorf("a negative limit: %w", paddock.Invalid)
	case l.CPUs > 0 && l.CPUs*period < minQuota:
		return fmt.Errorf("a limit of %v processors is below %v: %w", l.CPUs, float64(minQuota)/period, paddock.Invalid)
	case l.CPUs > maxCPUs:
		return fmt.Errorf("a limit of %v processors is above %d: %w", l.CPUs, maxCPUs, paddock.Invalid)
	}
	return nil
}

// A change is one write to a control file.
type change struct {
	file, value string
	undo        string // what to write to go back; filled in by Update

	// optional tells that an error of the write means no weaker a limit.
	optional func(error) bool
	// wrap words an error.
	wrap func(error) error
}

func (c change) apply() error {
	err := writeFile(c.file, c.value)
	if err == nil || (c.optional != nil && c.optional(err)) {
		return nil
	}
	if c.wrap != nil {
		return c.wrap(err)
	}
	return classify(err)
}

// changes lists the writes that bring limits about. Fields of zero are left out.
func (g *Group) changes(l paddock.Limits, paths []string) ([]change, error) {
	var list []change
	if l.Memory > 0 {
		more, err := g.memoryChanges(l.Memory)
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	if l.PIDs > 0 {
		f, ok := g.file(pids, "pids.max", "pids.max")
		if !ok {
			return nil, g.lacks(paddock.ControlPIDs)
		}
		list = append(list, change{file: f, value: strconv.Itoa(l.PIDs)})
	}
	if l.CPUs > 0 {
		f, ok := g.file(cpu, "cpu.cfs_quota_us", "cpu.max")
		if !ok {
			return nil, g.lacks(paddock.ControlCPU)
		}
		quota := strconv.FormatInt(int64(math.Ceil(l.CPUs*period)), 10)
		if path.Base(f) == "cpu.max" {
			list = append(list, change{file: f, value: quota + " " + strconv.Itoa(period)})
		} else {
			// The period of a new group is the one meant here. The kernel calls
			// a quota invalid that is above that of a group over it; then the
			// group's own is left open, and the stricter one holds.
			list = append(list, change{file: f, value: quota, optional: func(err error) bool {
				return errors.Is(err, syscall.EINVAL) && writeFile(f, "-1") == nil
			}})
		}
	}
	if l.IO > 0 {
		more, err := g.ioChanges(l.IO, paths)
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	return list, nil
}

// lacks is the error of a limit on a group that was made without its controller.
func (g *Group) lacks(c paddock.Control) error {
	if _, err := g.host.find(mechanismOf(c).controller); err != nil {
		return g.host.missing(c, err)
	}
	return fmt.Errorf("%s: the sandbox was made without it, and it cannot be added later: %w", c, paddock.Unsupported)
}

// socketFile limits the buffers of sockets on version 1.
const socketFile = "memory.kmem.tcp.limit_in_bytes"

// socketShare is the part of the memory limit that the buffers of TCP and UDP sockets may take in
// addition to it, on version 1, which counts them apart.
const socketShare = 4

// memoryChanges limits memory, and memory and swap together, to the same
// number, so that nothing escapes to swap.
func (g *Group) memoryChanges(limit int64) ([]change, error) {
	value := strconv.FormatInt(limit, 10)
	f, ok := g.file(memory, "memory.limit_in_bytes", "memory.max")
	if !ok {
		return nil, g.lacks(paddock.ControlMemory)
	}
	// Without swap, or without any in use, there is nothing to escape to.
	noSwap := func(err error) bool { return gone(err) && !g.host.swaps() }
	wrap := func(err error) error {
		if gone(err) && exists(f) {
			return &paddock.MissingError{Finding: g.host.finding(paddock.ControlMemory)}
		}
		if errors.Is(err, syscall.EBUSY) {
			return fmt.Errorf("%w: more than %d bytes are in use: %w", paddock.Conflict, limit, err)
		}
		return classify(err)
	}
	dir := path.Dir(f)
	if path.Base(f) == "memory.max" {
		return []change{
			{file: f, value: value, wrap: wrap},
			{file: path.Join(dir, "memory.swap.max"), value: "0", optional: noSwap, wrap: wrap},
		}, nil
	}
	list := []change{
		{file: f, value: value, wrap: wrap},
		{file: path.Join(dir, "memory.memsw.limit_in_bytes"), value: value, optional: noSwap, wrap: wrap},
	}
	// Memory alone may never be allowed more than memory and swap together.
	if now, err := readCount(f); err == nil && limit > now {
		slices.Reverse(list)
	}
	// Where the file is missing, the finding says so.
	return append(list, change{file: path.Join(dir, socketFile), value: strconv.FormatInt(limit/socketShare, 10), optional: gone, wrap: wrap}), nil
}

// ioChanges limits reading and writing, each, on the devices of paths.
func (g *Group) ioChanges(limit int64, paths []string) ([]change, error) {
	read, ok := g.file(blkio, "blkio.throttle.read_bps_device", "io.max")
	if !ok {
		return nil, g.lacks(paddock.ControlIO)
	}
	devices, err := g.host.devices(paths)
	if err != nil {
		return nil, err
	}
	modern := path.Base(read) == "io.max"
	if len(paths) == 0 {
		if devices, err = limited(read); err != nil {
			return nil, err
		}
	}
	if len(devices) == 0 {
		return nil, &paddock.MissingError{Finding: paddock.Finding{
			Control: paddock.ControlIO, Strength: paddock.Absent,
			Cause: "no disk was named to limit",
		}}
	}
	var list []change
	for _, d := range devices {
		wrap := func(err error) error {
			return &paddock.MissingError{Finding: paddock.Finding{
				Control: paddock.ControlIO, Strength: paddock.Absent,
				Cause:  fmt.Sprintf("the kernel refuses a limit on device %s: %v", d, err),
				Remedy: "use a directory on a plain disk",
			}}
		}
		if modern {
			list = append(list, change{file: read, wrap: wrap, value: fmt.Sprintf("%s rbps=%d wbps=%d", d, limit, limit)})
			continue
		}
		write := path.Join(path.Dir(read), "blkio.throttle.write_bps_device")
		value := fmt.Sprintf("%s %d", d, limit)
		list = append(list, change{file: read, value: value, wrap: wrap}, change{file: write, value: value, wrap: wrap})
	}
	return list, nil
}

// limited lists the devices that a file of limits names.
func limited(file string) ([]string, error) {
	b, err := readFile(file, small)
	if err != nil {
		return nil, classify(err)
	}
	var devices []string
	for line := range strings.Lines(string(b)) {
		if d, _, ok := strings.Cut(line, " "); ok {
			devices = append(devices, d)
		}
	}
	return devices, nil
}

// Update changes limits of the living group: all that are not zero, or none.
// Memory cannot be limited to less than is in use and cannot be reclaimed
// ([paddock.Conflict]). Without paths Limits.IO is for the devices that it was
// for before.
func (g *Group) Update(l paddock.Limits, paths ...string) error {
	if err := check(l); err != nil {
		return fmt.Errorf("update control group %s: %w", g.name, err)
	}
	changes, err := g.changes(l, paths)
	if err != nil {
		return fmt.Errorf("update control group %s: %w", g.name, classify(err))
	}
	for i := range changes {
		if err := changes[i].remember(); err != nil {
			return fmt.Errorf("update control group %s: %w", g.name, classify(err))
		}
	}
	if l.Memory > 0 {
		if err := g.reclaim(l.Memory); err != nil {
			return fmt.Errorf("update control group %s: %w", g.name, err)
		}
	}
	for i := range changes {
		err := changes[i].apply()
		if err == nil {
			continue
		}
		for _, c := range slices.Backward(changes[:i]) {
			if c.undo != "" {
				err = errors.Join(err, writeFile(c.file, c.undo))
			}
		}
		return fmt.Errorf("update control group %s: %w", g.name, err)
	}
	return nil
}

// remember notes what to write to undo the change.
func (c *change) remember() error {
	b, err := readFile(c.file, small)
	if err != nil {
		if c.optional != nil && c.optional(err) {
			return nil
		}
		return err
	}
	c.undo = strings.TrimSpace(string(b))
	device, _, ok := strings.Cut(c.value, " ")
	if !ok || !strings.Contains(device, ":") {
		return nil
	}
	// A file with a line for each device.
	c.undo = device + " 0"
	if path.Base(c.file) == "io.max" {
		c.undo = device + " rbps=max wbps=max"
	}
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, device+" ") {
			c.undo = strings.TrimSpace(line)
		}
	}
	return nil
}

// reclaim makes room below a lower limit on version 2, where the kernel would
// kill processes in place of refusing.
func (g *Group) reclaim(limit int64) error {
	f, ok := g.file(memory, "", "memory.current")
	if !ok {
		return nil
	}
	used, err := readCount(f)
	if err != nil || used <= limit {
		return classify(err)
	}
	high := path.Join(path.Dir(f), "memory.high")
	if err := writeFile(high, strconv.FormatInt(limit, 10)); err != nil {
		return classify(err)
	}
	used, err = readCount(f)
	err = errors.Join(err, writeFile(high, "max"))
	if err == nil && used > limit {
		err = fmt.Errorf("%w: %d bytes of memory are in use, more than %d", paddock.Conflict, used, limit)
	}
	return classify(err)
}
