package admission_test

import (
	"errors"
	"os"
	"runtime"
	"testing"
	"testing/fstest"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/wrap/admission"
)

func files(all map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, text := range all {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

const meminfo = "MemTotal:       1000 kB\nMemFree:        1 kB\nMemAvailable:   600 kB\n"

func TestMemoryIsWhatControlGroupsLeave(t *testing.T) {
	const kib = 1 << 10
	for name, c := range map[string]struct {
		files            map[string]string
		total, available int64
	}{
		"no control groups": {map[string]string{}, 1000 * kib, 600 * kib},
		"version 2, the parent limits": {map[string]string{
			"proc/self/cgroup":                "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max":    "max\n",
			"sys/fs/cgroup/a/memory.max":      "409600\n",
			"sys/fs/cgroup/a/memory.current":  "307200\n",
			"sys/fs/cgroup/a/memory.stat":     "anon 1\ninactive_file 102400\n",
			"sys/fs/cgroup/a/b/memory.events": "x",
		}, 400 * kib, 200 * kib},
		"version 2 in a container": {map[string]string{
			"proc/self/cgroup":             "0::/\n",
			"sys/fs/cgroup/memory.max":     "512000\n",
			"sys/fs/cgroup/memory.current": "102400\n",
		}, 500 * kib, 400 * kib},
		"version 1, whose group is the mount's root": {map[string]string{
			"proc/self/cgroup":                           "5:cpu,cpuacct:/\n4:memory:/docker/abc\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "512000\n",
			"sys/fs/cgroup/memory/memory.usage_in_bytes": "512000\n",
			"sys/fs/cgroup/memory/memory.stat":           "inactive_file 1\ntotal_inactive_file 2048\n",
		}, 500 * kib, 2 * kib},
		"version 1 without a limit": {map[string]string{
			"proc/self/cgroup":                           "4:memory:/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
			"sys/fs/cgroup/memory/memory.usage_in_bytes": "512000\n",
		}, 1000 * kib, 600 * kib},
	} {
		t.Run(name, func(t *testing.T) {
			c.files["proc/meminfo"] = meminfo
			total, available, err := admission.Host(files(c.files)).Memory()
			if err != nil || total != c.total || available != c.available {
				t.Errorf("%d, %d, %v; want %d, %d", total, available, err, c.total, c.available)
			}
		})
	}
}

func TestAMachineThatDoesNotTellIsUnsupported(t *testing.T) {
	for _, text := range []string{"", "MemTotal: 0 kB\nMemAvailable: 0 kB\n", "MemTotal: x kB\n", "MemTotal: 9223372036854775807 kB\nMemAvailable: 1 kB\n"} {
		if _, _, err := admission.Host(files(map[string]string{"proc/meminfo": text})).Memory(); !errors.Is(err, paddock.Unsupported) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, _, err := admission.Host(files(nil)).Memory(); !errors.Is(err, paddock.Unsupported) {
		t.Errorf("nothing: %v", err)
	}
}

func TestThisMachineTells(t *testing.T) {
	m := admission.Host(os.DirFS("/"))
	total, available, err := m.Memory()
	if runtime.GOOS != "linux" {
		if !errors.Is(err, paddock.Unsupported) {
			t.Errorf("memory: %v", err)
		}
		return
	}
	if err != nil || total < 1<<20 || available <= 0 || available > total {
		t.Errorf("memory: %d, %d, %v", total, available, err)
	}
	if free, err := m.Disk(t.TempDir()); err != nil || free < 0 {
		t.Errorf("disk: %d, %v", free, err)
	}
	if _, err := m.Disk("/nowhere/at/all"); err == nil {
		t.Error("the disk of nowhere")
	}
}

func FuzzMemory(f *testing.F) {
	f.Add(meminfo, "0::/a/b\n", "409600\n", "307200\n", "inactive_file 102400\n")
	f.Add(meminfo, "4:memory:/../..\n", "max", "-1", "")
	f.Add("MemTotal: 1 kB\nMemAvailable: 2 kB", "0::\n::\n0::/\x00", "1e9", "9223372036854775807", "inactive_file")
	f.Fuzz(func(t *testing.T, info, own, limit, usage, stat string) {
		all := map[string]string{"proc/meminfo": info, "proc/self/cgroup": own}
		for _, dir := range []string{"sys/fs/cgroup/", "sys/fs/cgroup/a/", "sys/fs/cgroup/memory/"} {
			all[dir+"memory.max"], all[dir+"memory.limit_in_bytes"] = limit, limit
			all[dir+"memory.current"], all[dir+"memory.usage_in_bytes"] = usage, usage
			all[dir+"memory.stat"] = stat
		}
		total, available, err := admission.Host(files(all)).Memory()
		if err == nil && (total < 0 || available < 0) {
			t.Errorf("%d, %d", total, available)
		}
	})
}
