package cgroup

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/paddock-sandbox/paddock"
)

// devices gives the whole disks, as "major:minor", that hold the given paths.
func (h *Host) devices(paths []string) ([]string, error) {
	var list []string
	for _, p := range paths {
		var st syscall.Stat_t
		if err := again(func() error { return syscall.Stat(p, &st) }); err != nil {
			return nil, classify(&fs.PathError{Op: "stat", Path: p, Err: err})
		}
		d, err := h.disk(st.Dev)
		if err != nil {
			return nil, &paddock.MissingError{Finding: paddock.Finding{
				Control: paddock.ControlIO, Strength: paddock.Absent,
				Cause:  fmt.Sprintf("%q is on no disk that can be limited: %v", p, err),
				Remedy: "use a directory on a plain disk",
			}}
		}
		if !slices.Contains(list, d) {
			list = append(list, d)
		}
	}
	return list, nil
}

// disk gives the whole disk that holds a file system: limits cannot be set on
// a partition.
func (h *Host) disk(dev uint64) (string, error) {
	name := fmt.Sprintf("%d:%d", major(dev), minor(dev))
	if major(dev) == 0 {
		// A file system over several devices, or over none, has a number of its
		// own. Where one device is mounted its name is in the table of mounts.
		source, err := h.source(name)
		if err != nil {
			return "", err
		}
		var st syscall.Stat_t
		if err := syscall.Stat(source, &st); err != nil || st.Mode&syscall.S_IFMT != syscall.S_IFBLK {
			return "", fmt.Errorf("its file system is on %q, which is no block device", source)
		}
		name = fmt.Sprintf("%d:%d", major(st.Rdev), minor(st.Rdev))
	}
	block, err := filepath.EvalSymlinks(h.env.sys + "/dev/block/" + name)
	if err != nil {
		return "", fmt.Errorf("device %s: %w", name, err)
	}
	if !exists(block + "/partition") {
		return name, nil
	}
	b, err := os.ReadFile(filepath.Dir(block) + "/dev")
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(b)), nil
}

// source gives the device that the file system with a number was mounted from.
func (h *Host) source(number string) (string, error) {
	b, err := readFile(h.env.proc+"/self/mountinfo", large)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(b)) {
		head, tail, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
		f, about := strings.Fields(head), strings.Fields(tail)
		if len(f) < 6 || len(about) < 2 || f[2] != number {
			continue
		}
		if s := unescape(about[1]); strings.HasPrefix(s, "/dev/") {
			return s, nil
		}
		return "", fmt.Errorf("%s has no block device", about[0])
	}
	return "", fmt.Errorf("file system %s is not mounted here", number)
}

// The kernel's split of a device number.
func major(dev uint64) uint64 { return (dev>>8)&0xfff | (dev>>32)&^0xfff }
func minor(dev uint64) uint64 { return dev&0xff | (dev>>12)&^0xff }
